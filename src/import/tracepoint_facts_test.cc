// SPDX-License-Identifier: Apache-2.0
#include "import/tracepoint_facts.h"

#include <gtest/gtest.h>

#include "import/ring_buffer_sample.h"
#include "trace/syscall_operation.h"
#include "trace/trace_reader.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

std::string Field(std::string_view declaration, int offset, int size) {
  return "\tfield:" + std::string(declaration) + ";\toffset:" + std::to_string(offset) +
         ";\tsize:" + std::to_string(size) + ";\tsigned:1;\n";
}

// Feeds records of a few events and reads the trace back.
class TracepointFactsTest : public testing::Test {
 protected:
  TracepointFactsTest() {
    Add("raw_syscalls", "sys_enter", 1, Field("long id", 8, 8));
    Add("raw_syscalls", "sys_exit", 2, Field("long id", 8, 8) + Field("long ret", 16, 8));
    Add("syscalls", "sys_enter_read", 3, Field("int __syscall_nr", 8, 4));
    const std::string block = Field("dev_t dev", 8, 4) + Field("sector_t sector", 16, 8) +
                              Field("unsigned int nr_sector", 24, 4) + Field("char rwbs[8]", 28, 8);
    Add("block", "block_rq_issue", 4, block);
    Add("block", "block_rq_complete", 5, block);
    Add("ftrace", "funcgraph_entry", 6, Field("unsigned long func", 8, 8));
    Add("ftrace", "funcgraph_exit", 7, Field("unsigned long func", 8, 8));
    Add("other", "unused", 8, Field("int x", 8, 4));
  }

  void Add(std::string_view system, std::string_view name, int id, const std::string& fields) {
    facts_.AddFormat(*ParseEventFormat(RingSample::Common(name, id) + fields, system));
  }
  void Feed(int64_t time_ns, uint16_t id, const std::string& payload) {
    const std::string data = ring_.Record(id, 7) + payload;
    ASSERT_TRUE(facts_.Feed({.time_ns = time_ns, .cpu = 0, .data = data}).ok());
  }
  std::string Number(uint64_t value, size_t size = 8) { return ring_.Number(value, size); }
  trace::Trace Finish() {
    EXPECT_TRUE(facts_.Finish().ok());
    EXPECT_TRUE(assembler_.Finish(facts_.last_ns()).ok());
    EXPECT_TRUE(writer_.Finish().ok());
    return std::move(trace::TraceReader::FromBytes(bytes_, "t")).value().ReadAll();
  }

  RingSample ring_;
  std::string bytes_;
  trace::TraceWriter writer_{[this](std::string_view part) -> Status {
    bytes_.append(part);
    return {};
  }};
  assemble::Assembler assembler_{writer_};
  Diagnostics diagnostics_;
  TracepointFacts facts_{writer_, assembler_, diagnostics_, nullptr, ByteOrder::kLittle, 8};
};

TEST_F(TracepointFactsTest, SystemCallsAreCountedOnce) {
  Feed(100, 1, Number(63));
  Feed(101, 3, Number(63, 4));
  Feed(150, 2, Number(63) + Number(static_cast<uint64_t>(-11)));
  const trace::Trace trace = Finish();
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].kind, EventKind::kSyscall);
  EXPECT_EQ(trace.events[0].dur_ns, 50);
  EXPECT_EQ(trace.events[0].arg0, 63);
  EXPECT_EQ(trace.events[0].arg1, -11);
}

TEST_F(TracepointFactsTest, CallsHaveTheOperationOfTheirArguments) {
  writer_.metadata().arch = "aarch64";
  Add("raw_syscalls", "sys_enter", 11,
      Field("long id", 8, 8) + Field("unsigned long args[6]", 16, 48));
  std::string arguments = Number(98) + Number(0x1000) + Number(0x81);  // futex, wake, private
  for (int i = 0; i < 4; ++i) arguments += Number(7);
  Feed(100, 11, arguments);
  Feed(150, 2, Number(98) + Number(1));
  Feed(200, 11, Number(98));  // a record that is cut short
  Feed(250, 2, Number(98) + Number(1));
  const trace::Trace trace = Finish();
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].arg0, trace::PackCall(98, 1));
  EXPECT_EQ(trace::CallNumber(trace.events[1].arg0), 98);
}

TEST_F(TracepointFactsTest, TheEventOfASingleCallHasItsOperationToo) {
  writer_.metadata().arch = "aarch64";
  const std::string fields = Field("int __syscall_nr", 8, 4) + Field("u32 * uaddr", 16, 8) +
                             Field("int op", 24, 8) + Field("u32 val", 32, 8);
  Add("syscalls", "sys_enter_futex", 12, fields);
  Add("syscalls", "sys_exit_futex", 13, Field("int __syscall_nr", 8, 4) + Field("long ret", 16, 8));
  Feed(100, 12, Number(98) + Number(0x1000) + Number(0x189) + Number(7));
  Feed(150, 13, Number(98) + Number(0));
  const trace::Trace trace = Finish();
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].arg0, trace::PackCall(98, 9));
  EXPECT_EQ(trace.events[0].dur_ns, 50);
}

TEST_F(TracepointFactsTest, BlockRequestsAreHardware) {
  const std::string request = Number(8 << 20, 4) + Number(0, 4) + Number(2048) + Number(8, 4) +
                              std::string("WS\0\0\0\0\0\0", 8);
  Feed(100, 4, request);
  Feed(900, 5, request);
  const trace::Trace trace = Finish();
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].kind, EventKind::kHardware);
  EXPECT_EQ(trace.events[0].dur_ns, 800);
  EXPECT_EQ(trace.events[0].arg0, 4096);
  EXPECT_EQ(trace.events[0].arg1, 1);
}

TEST_F(TracepointFactsTest, TracedFunctionsAreCalls) {
  Feed(100, 6, Number(0x1000));
  Feed(110, 6, Number(0x2000));
  Feed(130, 7, Number(0x2000));
  Feed(200, 7, Number(0x1000));
  Feed(210, 7, Number(0x1000));
  Feed(220, 6, Number(0x3000));
  Feed(230, 8, Number(0, 4));
  const trace::Trace trace = Finish();
  ASSERT_EQ(trace.events.size(), 3u);
  EXPECT_EQ(trace.events[0].dur_ns, 100);
  EXPECT_EQ(trace.events[1].dur_ns, 20);
  EXPECT_EQ(trace.dictionary.StackFrames(trace.events[1].stack).size(), 2u);
  EXPECT_EQ(trace.events[2].flags, trace::kUnfinished);
  EXPECT_EQ(facts_.unused(), 1u);
  EXPECT_EQ(diagnostics_.rows().count("function exit without its entry"), 1u);
}

TEST_F(TracepointFactsTest, RecordsWithoutAFormatAreCounted) {
  Feed(100, 999, "");
  EXPECT_FALSE(facts_.any());
  EXPECT_EQ(diagnostics_.total(), 1u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
