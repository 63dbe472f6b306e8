// SPDX-License-Identifier: Apache-2.0
#include "causality/set_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>

namespace culprit::causality::TEST_FILE {
namespace {

std::set<uint32_t> AsSet(const SetTable& table, SetId id) {
  const auto items = table.Items(id);
  return {items.begin(), items.end()};
}

TEST(SetTable, HoldsEverySetOnceAndAgreesWithStdSet) {
  SetTable table;
  std::mt19937_64 random(1);
  std::map<std::set<uint32_t>, SetId> known = {{{}, kEmptySet}};
  std::vector<SetId> ids = {kEmptySet};
  for (int i = 0; i < 20'000; ++i) {
    const SetId a = ids[random() % ids.size()];
    const SetId b = ids[random() % ids.size()];
    const std::set<uint32_t> left = AsSet(table, a);
    const std::set<uint32_t> right = AsSet(table, b);
    std::set<uint32_t> expected;
    SetId actual = kEmptySet;
    const auto into = std::inserter(expected, expected.end());
    switch (random() % 4) {
      case 0: {
        const auto item = static_cast<uint32_t>(random() % 9);
        expected = left;
        expected.insert(item);
        actual = table.With(a, item);
        EXPECT_EQ(table.Has(a, item), left.count(item) == 1);
        break;
      }
      case 1:
        std::ranges::set_union(left, right, into);
        actual = table.Union(a, b);
        break;
      case 2:
        std::ranges::set_intersection(left, right, into);
        actual = table.Intersection(a, b);
        break;
      default:
        std::ranges::set_difference(left, right, into);
        actual = table.Difference(a, b);
        break;
    }
    ASSERT_EQ(AsSet(table, actual), expected);
    ASSERT_EQ(table.IsSubset(a, b), std::ranges::includes(right, left));
    const auto [it, added] = known.try_emplace(expected, actual);
    ASSERT_EQ(it->second, actual);
    if (added) ids.push_back(actual);
  }
  EXPECT_EQ(table.size(), known.size());
  EXPECT_GT(known.size(), 200U);
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
