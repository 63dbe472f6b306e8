// SPDX-License-Identifier: Apache-2.0
#include "base/flat_map.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

namespace culprit::TEST_FILE {
namespace {

// All keys share a few homes, so that every search runs through others' slots.
struct CrowdedHash {
  uint64_t operator()(int64_t key) const { return static_cast<uint64_t>(key) & 3; }
};

template <class Map>
void CompareWithStdMap(uint32_t seed, int64_t keys) {
  std::mt19937 random(seed);
  Map map;
  std::map<int64_t, int> naive;
  for (int step = 0; step < 20'000; ++step) {
    const int64_t key = static_cast<int64_t>(random() % static_cast<uint32_t>(keys)) - keys / 2;
    switch (random() % 4) {
      case 0:
        ASSERT_EQ(map.Erase(key), naive.erase(key) == 1);
        break;
      case 1: {
        const auto [value, is_new] = map.Insert(key);
        ASSERT_EQ(is_new, naive.try_emplace(key, 0).second);
        *value = step;
        naive[key] = step;
        break;
      }
      default: {
        const int* found = map.Find(key);
        const auto expected = naive.find(key);
        ASSERT_EQ(found != nullptr, expected != naive.end());
        if (found != nullptr) {
          ASSERT_EQ(*found, expected->second);
        }
      }
    }
    ASSERT_EQ(map.size(), naive.size());
  }
  std::map<int64_t, int> all;
  map.ForEach([&](int64_t key, int value) { all[key] = value; });
  EXPECT_EQ(all, naive);
  map.Clear();
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.Find(1), nullptr);
}

TEST(FlatMapTest, AgreesWithStdMap) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    CompareWithStdMap<FlatMap<int64_t, int>>(seed, 3);
    CompareWithStdMap<FlatMap<int64_t, int>>(seed, 500);
  }
}

TEST(FlatMapTest, AgreesWithStdMapWhereAllCollide) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    CompareWithStdMap<FlatMap<int64_t, int, CrowdedHash>>(seed, 60);
  }
}

TEST(FlatMapTest, ValuesMayBeMovable) {
  FlatMap<uint64_t, std::unique_ptr<int>> map;
  for (int i = 0; i < 1000; ++i)
    *map.Insert(static_cast<uint64_t>(i)).first = std::make_unique<int>(i);
  for (uint64_t i = 0; i < 1000; i += 2) EXPECT_TRUE(map.Erase(i));
  for (uint64_t i = 1; i < 1000; i += 2) EXPECT_EQ(**map.Find(i), static_cast<int>(i));
}

}  // namespace
}  // namespace culprit::TEST_FILE
