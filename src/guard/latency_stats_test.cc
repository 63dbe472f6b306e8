// SPDX-License-Identifier: Apache-2.0
#include "guard/latency_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "guard/thresholds.h"

namespace culprit::guard::TEST_FILE {
namespace {

std::vector<uint64_t> RandomTimes(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> times;
  for (size_t i = 0; i < count; ++i) times.push_back(random() >> (20 + random() % 44));
  return times;
}

TEST(LatencyStats, BucketsCoverAllValuesWithinOnePercent) {
  for (const uint64_t value : RandomTimes(1, 20'000)) {
    const uint32_t bucket = LatencyStats::BucketOf(value);
    ASSERT_LT(bucket, LatencyStats::kBuckets);
    const uint64_t kept = std::min(value, LatencyStats::kLongest);
    EXPECT_LE(LatencyStats::LowerEndNs(bucket), kept);
    EXPECT_GE(LatencyStats::UpperEndNs(bucket), kept);
    EXPECT_LE((LatencyStats::UpperEndNs(bucket) - kept) * 128, kept);
  }
  for (uint32_t bucket = 0; bucket < LatencyStats::kBuckets; ++bucket) {
    EXPECT_EQ(LatencyStats::BucketOf(LatencyStats::LowerEndNs(bucket)), bucket);
    EXPECT_EQ(LatencyStats::BucketOf(LatencyStats::UpperEndNs(bucket)), bucket);
  }
  EXPECT_EQ(LatencyStats::UpperEndNs(LatencyStats::kBuckets - 1), LatencyStats::kLongest);
}

TEST(LatencyStats, AgreesWithTheSamplesThemselves) {
  for (uint64_t seed = 1; seed < 40; ++seed) {
    std::vector<uint64_t> times = RandomTimes(seed, 1 + seed * 37 % 700);
    LatencyStats stats;
    for (const uint64_t time : times) stats.Add(time);
    for (uint64_t& time : times) time = std::min(time, LatencyStats::kLongest);
    std::sort(times.begin(), times.end());
    long double sum = 0;
    for (const uint64_t time : times) sum += static_cast<long double>(time);
    const long double mean = sum / static_cast<long double>(times.size());
    long double around = 0;
    for (const uint64_t time : times) {
      around += (static_cast<long double>(time) - mean) * (static_cast<long double>(time) - mean);
    }
    const long double sigma = std::sqrt(around / static_cast<long double>(times.size()));
    EXPECT_EQ(stats.count(), times.size());
    EXPECT_EQ(stats.max_ns(), times.back());
    EXPECT_NEAR(static_cast<double>(stats.mean_ns()), static_cast<double>(mean), 1.0);
    EXPECT_NEAR(static_cast<double>(stats.sigma_ns()), static_cast<double>(sigma),
                2.0 + static_cast<double>(sigma) * 1e-9);
    for (const uint64_t share : {1ULL, 500'000ULL, 900'000ULL, 999'900ULL, 1'000'000ULL}) {
      const size_t rank = (times.size() * share + 999'999) / 1'000'000;
      const uint64_t exact = times[std::max<size_t>(rank, 1) - 1];
      EXPECT_GE(stats.QuantileNs(share), exact);
      EXPECT_LE((stats.QuantileNs(share) - exact) * 128, exact);
    }
  }
}

TEST(LatencyStats, MergingIsAddingAllSamplesInAnyOrder) {
  const std::vector<uint64_t> times = RandomTimes(9, 500);
  LatencyStats whole;
  LatencyStats parts[3];
  for (size_t i = 0; i < times.size(); ++i) {
    whole.Add(times[i]);
    parts[i % 3].Add(times[i]);
  }
  parts[2].Merge(parts[0]);
  parts[2].Merge(parts[1]);
  EXPECT_EQ(whole, parts[2]);
}

TEST(LatencyStats, PartsThatContradictEachOtherAreRefused) {
  LatencyStats stats;
  for (const uint64_t time : RandomTimes(3, 50)) stats.Add(time);
  LatencyStats again;
  ASSERT_TRUE(LatencyStats::FromParts(stats.sum(), stats.squares(), stats.max_ns(),
                                      stats.histogram(), again));
  EXPECT_EQ(stats, again);
  EXPECT_FALSE(LatencyStats::FromParts(stats.sum() * 2, stats.squares(), stats.max_ns(),
                                       stats.histogram(), again));
  EXPECT_FALSE(LatencyStats::FromParts(stats.sum(), 1, stats.max_ns(), stats.histogram(), again));
  EXPECT_FALSE(LatencyStats::FromParts(stats.sum(), stats.squares(), 1, stats.histogram(), again));
  EXPECT_FALSE(LatencyStats::FromParts(stats.sum(), stats.squares(), stats.max_ns(),
                                       {{5, 1}, {5, 1}}, again));
}

constexpr uint64_t kMs = 1'000'000;

LatencyStats Same(uint64_t dur_ns, uint64_t times) {
  LatencyStats stats;
  stats.Add(dur_ns, times);
  return stats;
}

TEST(Thresholds, FollowTheNumberOfSamples) {
  const ThresholdOptions options;
  EXPECT_EQ(ThresholdNs(Same(2 * kMs, 4), options), 0U);
  EXPECT_EQ(ThresholdNs(Same(2 * kMs, 5), options), 4 * kMs);
  EXPECT_EQ(ThresholdNs(Same(2 * kMs, 99), options), 4 * kMs);
  EXPECT_EQ(ThresholdNs(Same(2 * kMs, 100), options), 3 * kMs);
  LatencyStats many = Same(2 * kMs, 99'999);
  many.Add(50 * kMs);
  // The one slow unit is beyond p99.99.
  EXPECT_GE(ThresholdNs(many, options), 3 * kMs);
  EXPECT_LE(ThresholdNs(many, options), 3 * kMs * 102 / 100);
  EXPECT_EQ(ThresholdNs(Same(10, 1000), options), kMs);  // the floor
}

TEST(Thresholds, MeanAndSigmaIsAnOption) {
  LatencyStats stats = Same(2 * kMs, 5000);
  stats.Add(4 * kMs, 5000);
  ThresholdOptions options;
  options.rule = ThresholdRule::kMeanAndSigma;
  EXPECT_EQ(ThresholdNs(stats, options), 7 * kMs);
  options.k = 2;
  EXPECT_EQ(ThresholdNs(stats, options), 5 * kMs);
}

TEST(Thresholds, SamplesGoToTheirTypesWithoutRunDelay) {
  Profile profile;
  profile.types.resize(2);
  wire::Sample sample = {};
  sample.wall_ns = 10 * kMs;
  sample.run_delay_ns = 8 * kMs;
  for (int i = 0; i < 10; ++i) {
    sample.type = 0;
    EXPECT_TRUE(AddSample(sample, profile));
    sample.type = wire::kUnknown;
    EXPECT_TRUE(AddSample(sample, profile));
  }
  sample.type = wire::kWholeIteration;
  EXPECT_TRUE(AddSample(sample, profile));
  sample.type = 2;
  EXPECT_FALSE(AddSample(sample, profile));
  SetThresholds(profile, {});
  EXPECT_EQ(profile.types[0].stats.mean_ns(), 2 * kMs);
  EXPECT_EQ(profile.types[0].threshold_ns, 4 * kMs);
  // Too few samples: like units of no type, judged by all samples together.
  EXPECT_EQ(profile.types[1].threshold_ns, profile.unknown_threshold_ns);
  EXPECT_EQ(profile.unknown_threshold_ns, 4 * kMs);
  EXPECT_EQ(profile.iteration.count(), 1U);
  EXPECT_EQ(profile.iteration_threshold_ns, 8 * kMs);
}

// Most units are quick; those of another type, of which there are fewer, are not.
TEST(Thresholds, WhatIsLikeNoTypeMayTakeTwiceTheTailOfAnyThatIsWellKnown) {
  Profile profile;
  profile.types.resize(3);
  for (int i = 0; i < 2'000'000; ++i) profile.types[0].stats.Add(2 * kMs);
  for (int i = 0; i < 99; ++i) profile.types[1].stats.Add(30 * kMs);
  SetThresholds(profile, {});
  EXPECT_LT(profile.types[0].threshold_ns, 4 * kMs);
  EXPECT_EQ(profile.types[1].threshold_ns, 60 * kMs);
  EXPECT_LT(profile.unknown_threshold_ns, 5 * kMs) << "99 units are not many";
  profile.types[1].stats.Add(30 * kMs);
  SetThresholds(profile, {});
  EXPECT_EQ(profile.types[1].threshold_ns, 45 * kMs);
  EXPECT_EQ(profile.unknown_threshold_ns, 60 * kMs);
  EXPECT_EQ(profile.types[2].threshold_ns, 60 * kMs) << "no sample at all";
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
