// SPDX-License-Identifier: Apache-2.0
#include "watch/eviction.h"

#include <gtest/gtest.h>

#include "corpus/slow_unit_labels.h"

namespace culprit::watch::TEST_FILE {
namespace {

corpus::TraceRow Row(const std::string& name, const std::string& type, int64_t added_ns) {
  corpus::TraceRow row;
  row.id = added_ns;
  row.name = name;
  row.bytes = 10;
  row.added_ns = added_ns;
  row.labels[corpus::kSlowTypeLabel] = type;
  return row;
}

TEST(Eviction, TakesTheOldestOfTheTypeThatHasMost) {
  const std::vector<corpus::TraceRow> rows = {Row("a1", "a", 1), Row("b1", "b", 2),
                                              Row("a2", "a", 3), Row("a3", "a", 4),
                                              Row("b2", "b", 5)};
  EXPECT_TRUE(ToEvict(rows, 50).empty());
  EXPECT_EQ(ToEvict(rows, 49), (std::vector<std::string>{"a1"}));
  EXPECT_EQ(ToEvict(rows, 20), (std::vector<std::string>{"a1", "a2", "b1"}));
  EXPECT_EQ(ToEvict(rows, 10), (std::vector<std::string>{"a1", "a2", "b1", "a3"}));
}

TEST(Eviction, NeverTakesTheLastTrace) {
  EXPECT_TRUE(ToEvict({Row("a", "a", 1)}, 0).empty());
  EXPECT_TRUE(ToEvict({}, 0).empty());
}

}  // namespace
}  // namespace culprit::watch::TEST_FILE
