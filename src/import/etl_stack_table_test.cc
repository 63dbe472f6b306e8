// SPDX-License-Identifier: Apache-2.0
#include "import/etl_stack_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>

namespace culprit::import_::TEST_FILE {
namespace {

std::vector<uint64_t> Copy(std::span<const uint64_t> addresses) {
  return {addresses.begin(), addresses.end()};
}

TEST(EtlStackTable, PartsOfOneEventAreFoundTogether) {
  EtlStackTable table;
  const std::vector<uint64_t> user = {7, 8};
  const std::vector<uint64_t> kernel = {1, 2, 3};
  table.AddWalk(11, 100, true, user);
  table.AddWalk(11, 100, false, kernel);
  table.AddWalk(12, 100, false, user);
  Diagnostics diagnostics;
  table.Finish(diagnostics);
  const EtlStack stack = table.Find(11, 100);
  EXPECT_EQ(Copy(table.Addresses(stack.kernel)), kernel);
  EXPECT_EQ(Copy(table.Addresses(stack.user)), user);
  EXPECT_EQ(table.Find(12, 100).user, EtlStack::kNone);
  EXPECT_TRUE(table.Find(11, 101).empty());
  EXPECT_TRUE(table.Find(10, 100).empty());
  EXPECT_TRUE(diagnostics.empty());
}

TEST(EtlStackTable, EqualPartsAreOne) {
  EtlStackTable table;
  const std::vector<uint64_t> walk = {1, 2, 3};
  table.AddWalk(11, 100, false, walk);
  table.AddWalk(12, 200, false, walk);
  Diagnostics diagnostics;
  table.Finish(diagnostics);
  EXPECT_EQ(table.Find(11, 100).kernel, table.Find(12, 200).kernel);
}

// Switch-ins with and without a stack, other stacks between them: held against
// a plain search.
TEST(EtlStackTable, TheStackOfASwitchOutIsThatOfTheNextSwitchIn) {
  std::mt19937 random(7);
  EtlStackTable table;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> stacks;  // of switch-ins; 0: none
  for (int i = 0; i < 2000; ++i) {
    const auto tid = static_cast<uint32_t>(1 + random() % 5);
    const uint64_t time = random() % 10'000;
    const std::vector<uint64_t> walk = {1 + random() % 50};
    const bool is_switch = random() % 2 == 0;
    if (stacks.contains({tid, time})) continue;
    if (is_switch) {
      table.AddSwitchIn(tid, time * 2);
      stacks[{tid, time}] = random() % 4 == 0 ? 0 : walk[0];
    }
    if (!is_switch || stacks[{tid, time}] != 0) {
      // A stack of another event must not fall on a switch-in's time.
      table.AddWalk(tid, is_switch ? time * 2 : time * 2 + 1, false, walk);
    }
  }
  Diagnostics diagnostics;
  table.Finish(diagnostics);
  for (uint32_t tid = 0; tid <= 6; ++tid) {
    for (uint64_t time = 0; time < 10'100; time += 7) {
      const auto next = stacks.upper_bound({tid, time});
      const bool found = next != stacks.end() && next->first.first == tid && next->second != 0;
      const EtlStack stack = table.FindSwitchedOut(tid, time * 2);
      ASSERT_EQ(stack.empty(), !found) << tid << " " << time;
      if (found) {
        ASSERT_EQ(table.Addresses(stack.kernel)[0], next->second);
      }
    }
  }
}

TEST(EtlStackTable, KeysMeanWhatIsSaidNextOrWasSaidLast) {
  EtlStackTable table;
  const std::vector<uint64_t> first = {1};
  const std::vector<uint64_t> second = {2};
  table.DefineKey(9, 150, first);
  table.DefineKey(9, 250, second);
  table.AddReference(11, 100, false, 9, 101);
  table.AddReference(11, 200, false, 9, 201);
  table.AddReference(11, 300, false, 9, 301);
  table.AddReference(11, 400, false, 8, 401);
  Diagnostics diagnostics;
  table.Finish(diagnostics);
  EXPECT_EQ(table.Addresses(table.Find(11, 100).kernel)[0], 1u);
  EXPECT_EQ(table.Addresses(table.Find(11, 200).kernel)[0], 2u);
  EXPECT_EQ(table.Addresses(table.Find(11, 300).kernel)[0], 2u);
  EXPECT_TRUE(table.Find(11, 400).empty());
  EXPECT_EQ(diagnostics.total(), 1u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
