// SPDX-License-Identifier: Apache-2.0
// A file of version 1.1, as it was written then: it is still read.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "trace/small_trace.h"
#include "trace/syscall_operation.h"
#include "trace/trace_reader.h"

namespace culprit::trace::TEST_FILE {
namespace {

constexpr std::string_view kFile =
    "4354524143451a0a01000100000000004d45544199000000000000002079d6a5ef0a9fdd6552cb27076d6163"
    "68696e6500026f7300066b65726e656c0004617263680003617070000b6170705f76657273696f6e0006736f"
    "757263650005636c6f636b000d77616c6c5f73746172745f6e73013008626567696e5f6e73013006656e645f"
    "6e7304313030301073616d706c655f706572696f645f6e730130046370757301310c6861735f737769746368"
    "657301310a6861735f77616b6572730131444943545600000000000000f30eeb089c2b4ab47f2f4f7c5f5428"
    "b52ffd205f5d020092c40e1590471d404098357b5123faffffff636fe437d932053f70761c2f05b1fdfc98ec"
    "7f69fed891233d23b9a35c4b923d23540dad4846a095aba8c101050078c68238708c94ceb9963b494e535411"
    "00000000000000510c32ed6773b6f51d3c716f060f28b52ffd200631000001080100840745565453a8000000"
    "00000000a9c608ccfea8b35afa6eb62f0800d00f030101020001000002010501030109010102030005000300"
    "02090100000000000102000307040101000201030404010100011109020190f4640101010012050101050003"
    "190502009000011a030100041b030100021c0301000222030100032303010001240301000129070201649001"
    "00012a04010101022b04010101002c040101010038050200b0000439030100643a030100023d030100c43e03"
    "0100153f03010004494e44583a00000000000000c7dc5965fa2156c1be131d852f3828b52ffd202f79010004"
    "4d45544110b10144494354c1016e494e5354af022945565453d802c0010800d00f0301010200010000020105"
    "010318020000000000004354524143454e44";

std::string Bytes(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

SmallTrace FirstVersionTrace() {
  SmallTrace small(0, 1000);
  Event& wait = small.Add(EventKind::kWait, "a", 0, 400, "m!main;m!lock", 1);
  wait.peer = small.Thread("b");
  Event& unwait = small.Add(EventKind::kUnwait, "b", 400, 400, "m!main;m!unlock");
  unwait.peer = small.Thread("a");
  Event& ready = small.Add(EventKind::kReady, "a", 400, 500, "m!main;m!lock", 0);
  ready.peer = small.Thread("b");
  small.Add(EventKind::kRunning, "a", 500, 900, "m!main;m!work", 0);
  small.Add(EventKind::kRunning, "b", 0, 500, "", 0).flags = kNotSampled;
  small.Add(EventKind::kReady, "b", 500, 900, "m!main", 0).flags = kPreempted;
  small.Add(EventKind::kRunning, "b", 900, 1000, "m!main;m!unlock", 0);
  Event& call = small.Add(EventKind::kSyscall, "a", 600, 700, "m!main", 0);
  call.arg0 = PackCall(98, 3);
  call.arg1 = -11;
  small.AddInstance("request", "a", 0, 900);
  return small;
}

void ExpectRead(std::string bytes) {
  const Trace expected = FirstVersionTrace().trace;
  auto reader = TraceReader::FromBytes(std::move(bytes), "first");
  ASSERT_TRUE(reader.ok()) << reader.error().ToString();
  const Trace read = std::move(reader.value()).ReadAll();
  EXPECT_TRUE(read.diagnostics.empty());
  EXPECT_EQ(read.metadata, expected.metadata);
  EXPECT_EQ(read.instances, expected.instances);
  ASSERT_EQ(read.events.size(), expected.events.size());
  for (const Event& event : expected.events) {
    EXPECT_EQ(std::count(read.events.begin(), read.events.end(), event), 1)
        << Name(event.kind) << " at " << event.time_ns;
  }
}

TEST(FirstVersion, IsRead) { ExpectRead(Bytes(kFile)); }

TEST(FirstVersion, WhateverItsMinorVersion) {
  std::string bytes = Bytes(kFile);
  ASSERT_EQ(bytes[8], 1);
  ASSERT_EQ(bytes[10], 1);
  bytes[10] = 0;
  ExpectRead(std::move(bytes));
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
