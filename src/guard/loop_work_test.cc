// SPDX-License-Identifier: Apache-2.0
#include "guard/loop_work.h"

#include <gtest/gtest.h>

namespace culprit::guard::TEST_FILE {
namespace {

TEST(LoopWork, IsByTimeAndNotByCount) {
  Profile profile;
  profile.loops.resize(2);
  profile.types.resize(3);
  profile.types[0].stats.Add(100, 1'000'000);  // timers that find nothing: 0.1 s
  profile.types[1].stats.Add(50'000, 10'000);  // work: 0.5 s
  profile.types[2].stats.Add(900'000, 400);    // 0.36 s
  const std::vector<uint64_t> at_10 = UnitLengthsByTime(profile, 100'000);
  ASSERT_EQ(at_10.size(), 2u);
  EXPECT_LE(at_10[0], 100u);
  EXPECT_EQ(at_10[1], 0u) << "nothing is known of the other loop";
  const auto near = [](uint64_t length_ns, uint64_t expected_ns) {
    return length_ns <= expected_ns && length_ns >= expected_ns - expected_ns / 10;
  };
  EXPECT_TRUE(near(UnitLengthsByTime(profile, 200'000)[0], 50'000));
  EXPECT_TRUE(near(UnitLengthsByTime(profile, 500'000)[0], 50'000));
  EXPECT_TRUE(near(UnitLengthsByTime(profile, 900'000)[0], 900'000));
}

TEST(LoopWork, IsThatOfEachLoop) {
  Profile profile;
  profile.loops.resize(2);
  profile.types.resize(3);
  profile.types[0].stats.Add(1'000);
  profile.types[1].stats.Add(70'000);
  profile.types[1].loop = 1;
  profile.types[2].stats.Add(70'000);
  profile.types[2].loop = 7;  // there is no such loop
  const std::vector<uint64_t> lengths = UnitLengthsByTime(profile, 500'000);
  EXPECT_LE(lengths[0], 1'000u);
  EXPECT_GE(lengths[1], 60'000u);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
