// SPDX-License-Identifier: Apache-2.0
#include "record/life_events.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace culprit::record::TEST_FILE {
namespace {

std::string Record(uint32_t type, uint16_t misc, std::string_view body, uint64_t time_ns) {
  ByteWriter out;
  out.U32(type);
  out.U16(misc);
  out.U16(static_cast<uint16_t>(8 + body.size() + 24));
  out.Bytes(body);
  out.U64(0);
  out.U64(time_ns);
  out.U64(0);
  return out.Take();
}

TEST(LifeEvents, ReadsAMappingWithItsBuildId) {
  ByteWriter body;
  body.U32(10);
  body.U32(11);
  body.U64(0x1000);
  body.U64(0x2000);
  body.U64(0x3000);
  body.U8(4);
  body.Bytes(std::string(3, '\0'));
  body.Bytes("\x01\x02\xab\xcd");
  body.Bytes(std::string(16, '\0'));
  body.U64(0);
  body.Bytes(std::string("/bin/x\0\0", 8));
  const auto event =
      ParseLifeEvent(Record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, body.bytes(), 77));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, LifeEvent::Kind::kMap);
  EXPECT_EQ(event->time_ns, 77);
  EXPECT_EQ(event->pid, 10);
  EXPECT_EQ(event->start, 0x1000u);
  EXPECT_EQ(event->size, 0x2000u);
  EXPECT_EQ(event->file_offset, 0x3000u);
  EXPECT_EQ(event->text, "/bin/x");
}

TEST(LifeEvents, TellsAnExecFromARename) {
  ByteWriter body;
  body.U32(10);
  body.U32(10);
  body.Bytes(std::string("app\0\0\0\0\0", 8));
  EXPECT_EQ(ParseLifeEvent(Record(PERF_RECORD_COMM, 0, body.bytes(), 1))->kind,
            LifeEvent::Kind::kName);
  EXPECT_EQ(
      ParseLifeEvent(Record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, body.bytes(), 1))->kind,
      LifeEvent::Kind::kExec);
}

TEST(LifeEvents, ACutRecordIsNothing) {
  ByteWriter body;
  body.U32(10);
  const std::string whole = Record(PERF_RECORD_FORK, 0, body.bytes(), 1);
  for (size_t size = 0; size <= whole.size(); ++size) {
    EXPECT_FALSE(ParseLifeEvent(whole.substr(0, size)).has_value()) << size;
  }
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
