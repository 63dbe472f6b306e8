// SPDX-License-Identifier: Apache-2.0
#include "record/breather.h"

#include <gtest/gtest.h>

#include "record/machine.h"

namespace culprit::record::TEST_FILE {
namespace {

constexpr int64_t kStepNs = 5'000;
constexpr int64_t kLookNs = kStepNs * Breather::kStepsToLook;

// By a clock of its own, on which a step takes five microseconds.
class BreatherTest : public testing::Test {
 protected:
  void Work(int64_t work_ns) {
    breather_.Begin();
    for (; work_ns > 0; work_ns -= kStepNs) {
      now_ns_ += kStepNs;
      breather_.Step();
    }
  }

  bool is_urgent_ = false;
  int64_t late_ns_ = 60'000;
  int64_t now_ns_ = 1'000'000'000;
  int sleeps_ = 0;
  int64_t slept_ns_ = 0;
  Breather breather_{[this] { return is_urgent_; },
                     {.now_ns = [this] { return now_ns_; },
                      .sleep_ns =
                          [this](int64_t dur_ns) {
                            ++sleeps_;
                            slept_ns_ += dur_ns;
                            now_ns_ += dur_ns + late_ns_;
                          }}};
};

TEST_F(BreatherTest, SleepsTwiceAsLongAsItWorks) {
  constexpr int kPieces = 40;
  Work(kPieces * (Breather::kWorkNs + kLookNs));
  EXPECT_GE(sleeps_, kPieces);
  EXPECT_LE(sleeps_, kPieces * 2);
  EXPECT_EQ(slept_ns_, sleeps_ * Breather::kSleepNs);
}

TEST_F(BreatherTest, ShortWorkIsDoneAtOnce) {
  for (int i = 0; i < 100; ++i) {
    Work(Breather::kWorkNs - kStepNs);
    now_ns_ += 50'000'000;
  }
  EXPECT_EQ(sleeps_, 0);
}

TEST_F(BreatherTest, DoesNotSleepWhileTheWorkIsUrgent) {
  is_urgent_ = true;
  Work(100 * Breather::kWorkNs);
  EXPECT_EQ(sleeps_, 0);
  is_urgent_ = false;
  Work(2 * Breather::kWorkNs);
  EXPECT_GT(sleeps_, 0);
}

TEST_F(BreatherTest, DoesNotSleepForAWhileWhereOthersHaveTheCpus) {
  late_ns_ = Breather::kLateNs;
  Work(100 * Breather::kWorkNs);
  EXPECT_EQ(sleeps_, 8);
  // It tries again, and finds them free.
  late_ns_ = 0;
  now_ns_ += Breather::kCrowdedNs;
  Work(100 * Breather::kWorkNs);
  EXPECT_GE(sleeps_, 8 + 50);
}

TEST_F(BreatherTest, AFewLateSleepsAreNoCrowd) {
  for (int i = 0; i < 100; ++i) {
    late_ns_ = i % 4 == 0 ? 20 * Breather::kLateNs : 0;
    Work(Breather::kWorkNs + kLookNs);
  }
  EXPECT_GE(sleeps_, 100);
}

TEST(Breather, HasTheMachinesClock) {
  int asked = 0;
  Breather breather([&] { return ++asked > 1; });
  const int64_t begin_ns = MonotonicNs();
  breather.Begin();
  while (asked < 2) breather.Step();
  // Two pieces of work, and a sleep between them.
  EXPECT_GE(MonotonicNs() - begin_ns, 2 * Breather::kWorkNs + Breather::kSleepNs);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
