// SPDX-License-Identifier: Apache-2.0
#include "guard/look_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace culprit::guard::TEST_FILE {
namespace {

struct Rounds {
  uint64_t rounds = 0;
  uint64_t cpu_ns = 0;
  uint64_t longest_ns = 0;
  uint64_t last_ns = 0;
};

// Rounds for `wall_ns`, each of which costs what `cost_ns` says of its moment.
Rounds RunFor(LookPace& pace, uint64_t wall_ns, double cpus,
              const std::function<uint64_t(uint64_t)>& cost_ns) {
  Rounds run;
  uint64_t now_ns = 1;
  pace.Next(now_ns, 0, 0, cpus);
  while (now_ns < wall_ns) {
    const uint64_t cost = cost_ns(now_ns);
    run.cpu_ns += cost;
    ++run.rounds;
    run.last_ns = pace.Next(now_ns, run.cpu_ns, 0, cpus);
    run.longest_ns = std::max(run.longest_ns, run.last_ns);
    now_ns += run.last_ns;
  }
  return run;
}

constexpr uint64_t kSecond = 1'000'000'000;

TEST(LookPace, CheapRoundsComeAsOftenAsTheyCan) {
  LookPace pace(5'000);
  const Rounds run = RunFor(pace, 6 * kSecond, 0, [](uint64_t) { return 5'000; });
  EXPECT_EQ(run.rounds, 2'000U);
  EXPECT_NEAR(static_cast<double>(pace.spent_ppm()), 3'333, 10);
}

TEST(LookPace, DearRoundsComeMoreSeldom) {
  LookPace pace(5'000);  // of half a CPU: 2.5 ms a second
  const Rounds run = RunFor(pace, 100 * kSecond, 0.1, [](uint64_t) { return 100'000; });
  // And once what there was at the begin, and what is owed.
  EXPECT_NEAR(static_cast<double>(run.cpu_ns) / 1e6, 250 + 10 + 3, 2);
  EXPECT_NEAR(static_cast<double>(run.last_ns), 40e6, 1e6);
}

TEST(LookPace, TheShareIsOfWhatTheProgramsTake) {
  LookPace pace(5'000);  // of two CPUs: 10 ms a second
  const Rounds run = RunFor(pace, 100 * kSecond, 2, [](uint64_t) { return 200'000; });
  EXPECT_NEAR(static_cast<double>(run.cpu_ns) / 1e6, 1'000 + 10 + 3, 2);
}

TEST(LookPace, WhatWasSavedIsForTheTimeOfTrouble) {
  LookPace pace(5'000);
  uint64_t in_trouble = 0;
  uint64_t last_ns = 0;
  const uint64_t begin_ns = 30 * kSecond;
  const Rounds run = RunFor(pace, begin_ns + 70'000'000, 0, [&](uint64_t now_ns) -> uint64_t {
    if (now_ns < begin_ns) return 5'000;
    ++in_trouble;
    last_ns = now_ns;
    return 1'000'000;
  });
  // Ten while more than half is there, then eight.
  EXPECT_NEAR(static_cast<double>(in_trouble), 18, 1);
  EXPECT_EQ(run.longest_ns, LookPace::kUsualNs);
  EXPECT_GE(last_ns, begin_ns + 60'000'000);
}

TEST(LookPace, AfterOneSlowUnitTheNextIsNotMissed) {
  LookPace pace(10'000);  // of half a CPU: 5 ms a second
  constexpr uint64_t kTroubleNs = 1 * kSecond;
  uint64_t longest_ns = 0;
  uint64_t last_ns = kTroubleNs;
  RunFor(pace, kTroubleNs + kSecond / 5, 0, [&](uint64_t now_ns) -> uint64_t {
    if (now_ns >= kTroubleNs) longest_ns = std::max(longest_ns, now_ns - last_ns);
    last_ns = std::max(now_ns, kTroubleNs);
    return now_ns >= kTroubleNs && now_ns < kTroubleNs + 40'000'000 ? 600'000 : 20'000;
  });
  EXPECT_LE(longest_ns, 20'000'000U);
}

TEST(LookPace, RareDearRoundsStayWithinTheShareToo) {
  LookPace pace(10'000);
  uint64_t round = 0;
  const Rounds run = RunFor(pace, 100 * kSecond, 0, [&](uint64_t) -> uint64_t {
    return ++round % 10 == 0 ? 2'000'000 : 20'000;
  });
  EXPECT_NEAR(static_cast<double>(run.cpu_ns) / 1e6, 500 + 10 + 3, 5);
}

TEST(LookPace, NeverStopsLooking) {
  LookPace pace(5'000);
  const Rounds run = RunFor(pace, 10 * kSecond, 0, [](uint64_t) { return 50'000'000; });
  EXPECT_EQ(run.longest_ns, LookPace::kLongestNs);
  EXPECT_NEAR(static_cast<double>(run.rounds), 100, 5);
}

TEST(LookPace, WhatItTakesToNameAReportDoesNotPutOffTheNextLook) {
  LookPace pace(5'000);
  pace.Next(kSecond, 0, 0, 0);
  EXPECT_EQ(pace.Next(2 * kSecond, 80'000'000, 79'995'000, 0), LookPace::kShortestNs);
  EXPECT_EQ(pace.spent_ppm(), 160'000U);
  EXPECT_GT(pace.Next(2 * kSecond + 10'000'000, 160'000'000, 79'995'000, 0), LookPace::kUsualNs);
}

TEST(LookPace, WithoutABudgetNothingIsBounded) {
  LookPace pace(0);
  const Rounds run = RunFor(pace, kSecond, 0, [](uint64_t) { return 5'000'000; });
  EXPECT_EQ(run.rounds, 334U);
}

TEST(LookPace, WhatIsLeftOverIsForShorterUnits) {
  LookPace pace(10'000);  // of half a CPU: 5 ms a second
  const Rounds run = RunFor(pace, 100 * kSecond, 0, [](uint64_t) { return 20'000; });
  // Of 25,000 that could be, a few less for what is kept.
  EXPECT_GT(run.rounds, 24'000U);
  EXPECT_LE(pace.spent_ppm(), 10'000U);
}

TEST(LookPace, ClocksThatGoBackCountAsNothing) {
  LookPace pace(5'000);
  pace.Next(kSecond, 100, 0, 1);
  EXPECT_EQ(pace.Next(kSecond / 2, 50, 0, 1), LookPace::kUsualNs);
  EXPECT_EQ(pace.spent_ppm(), 0U);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
