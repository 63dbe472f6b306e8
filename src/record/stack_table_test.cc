// SPDX-License-Identifier: Apache-2.0
#include "record/stack_table.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "record/bpf/records.h"

namespace culprit::record::TEST_FILE {
namespace {

constexpr int64_t kPid = 77;

void MapTwoFiles(StackTable& table) {
  table.Map(kPid, 0x100000, 0x10000, 0, "/usr/bin/server", "aa");
  table.Map(kPid, 0x200000, 0x10000, 0x1000, "/usr/lib/libserver.so", "bb");
}

// Leaf first; some are in no file, some are none at all.
std::vector<uint64_t> RandomStack(std::mt19937& random) {
  std::vector<uint64_t> addresses;
  const size_t depth = 1 + random() % 12;
  for (size_t i = 0; i < depth; ++i) {
    const uint64_t start = random() % 2 == 0 ? 0x100000 : 0x200000;
    addresses.push_back(start + random() % 4);
    if (random() % 40 == 0) addresses.back() = 0x900000;
    if (random() % 40 == 0) addresses.back() = 12;
  }
  return addresses;
}

// What is known of former stacks of the process makes no difference.
TEST(StackTable, KeepsWhatWasToldUntilItIsFullForTheSecondTime) {
  trace::Dictionary names;
  StackTable table("", names, 2);
  MapTwoFiles(table);
  const std::vector<uint64_t> addresses = {0x100100};
  table.Define(1, kPid, addresses);
  EXPECT_FALSE(table.is_full());
  table.Define(2, kPid, addresses);
  EXPECT_TRUE(table.is_full());
  const trace::StackId stack = table.Stack(1, 0);
  ASSERT_TRUE(stack.valid());
  table.ForgetOlder();
  EXPECT_FALSE(table.is_full());
  EXPECT_EQ(table.Stack(1, 0), stack);
  table.Define(3, kPid, addresses);
  EXPECT_EQ(table.Stack(3, 0), stack);
  table.ForgetOlder();
  EXPECT_EQ(table.Stack(3, 0), stack);
  EXPECT_EQ(table.counts().undefined, 0u);
  EXPECT_FALSE(table.Stack(1, 0).valid());
  EXPECT_EQ(table.counts().undefined, 1u);
}

TEST(StackTable, NamesAStackAsATableThatHasSeenNoOther) {
  std::mt19937 random(1);
  trace::Dictionary all_names;
  StackTable all("", all_names);
  MapTwoFiles(all);
  for (uint64_t id = 1; id <= 3000; ++id) {
    const std::vector<uint64_t> addresses = RandomStack(random);
    trace::Dictionary names;
    StackTable fresh("", names);
    MapTwoFiles(fresh);
    all.Define(id, kPid, addresses);
    fresh.Define(id, kPid, addresses);
    ASSERT_EQ(all_names.StackText(all.Stack(id, 0)), names.StackText(fresh.Stack(id, 0))) << id;
  }
}

// Told by its callers, and then by its leaf alone, it is the stack that is told whole; also
// where frames are in no file, and where it was cut for its length.
TEST(StackTable, ALeafBelowCallersIsTheWholeStack) {
  std::mt19937 random(2);
  trace::Dictionary names;
  StackTable table("ffff800000001000 T do_wait\n", names);
  MapTwoFiles(table);
  constexpr uint64_t kKernel = 1 << 20;
  const std::vector<uint64_t> kernel = {0xffff800000001010};
  table.Define(kKernel, 0, kernel);
  for (uint64_t id = 1; id <= 1000; ++id) {
    std::vector<uint64_t> addresses = RandomStack(random);
    if (id % 50 == 0) addresses.resize(kMaxStackFrames, 0x100002);
    table.Define(id, kPid, addresses);
    const uint64_t leaf = std::exchange(addresses.front(), 0);
    table.Define(id << 32, kPid, addresses);
    ASSERT_EQ(names.StackText(table.StackBelow(id << 32, leaf, 0)),
              names.StackText(table.Stack(id, 0)));
    ASSERT_EQ(table.StackBelow(id << 32, leaf, kKernel), table.Stack(id, kKernel));
  }
  EXPECT_EQ(names.StackText(table.StackBelow(0, 0, kKernel)), "[kernel]!do_wait");
  EXPECT_EQ(table.counts().undefined, 0u);
  EXPECT_FALSE(table.StackBelow(77, 0x100000, 0).valid());
  EXPECT_EQ(table.counts().undefined, 1u);
}

TEST(StackTable, ForgetsWhatItKnewWhenOtherCodeIsMapped) {
  trace::Dictionary names;
  StackTable table("", names);
  MapTwoFiles(table);
  const std::vector<uint64_t> addresses = {0x100010, 0x200020};
  table.Define(1, kPid, addresses);
  table.Forget(kPid);
  table.Map(kPid, 0x100000, 0x10000, 0, "/usr/bin/other", "cc");
  table.Map(kPid, 0x200000, 0x10000, 0, "/usr/lib/libother.so", "dd");
  table.Define(2, kPid, addresses);
  EXPECT_EQ(names.StackText(table.Stack(1, 0)), "libserver.so!+0x101f;server!+0x10");
  EXPECT_EQ(names.StackText(table.Stack(2, 0)), "libother.so!+0x1f;other!+0x10");
}

TEST(StackTable, AStackThatWasNeverToldHasNoFrames) {
  trace::Dictionary names;
  StackTable table("", names);
  EXPECT_FALSE(table.Stack(5, 0).valid());
  EXPECT_EQ(table.counts().undefined, 1u);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
