// SPDX-License-Identifier: Apache-2.0
// Evidence that does not fit the bound on memory (base/large_memory.h) is the same
// evidence, and what is mined from it the same result.
#include <gtest/gtest.h>

#include <random>

#include "base/large_memory.h"
#include "stackmine/clusters.h"
#include "stackmine/evidence.h"
#include "stackmine/evidence_codec.h"

namespace culprit::stackmine {
namespace {

constexpr uint64_t kStacks = 50'000;  // of a part; of all parts they are several megabytes
constexpr uint64_t kParts = 4;

// One trace with one instance that waited at each of many stacks.
Evidence Part(uint64_t seed) {
  std::mt19937_64 random(seed);
  Evidence part;
  InstanceFacts instance;
  part.scenarios = {"Open"};
  for (uint64_t i = 0; i < kStacks; ++i) {
    StackIndex stack = kNoStack;
    for (int depth = 0; depth < 5; ++depth) {
      const std::string name = "app!F" + std::to_string(random() % (depth == 4 ? 900 : 12));
      stack = part.stacks.InternStack(stack, part.stacks.InternFrame(name, 4, true));
    }
    const NodeIndex node = part.forest.Intern({.parent = kNoNode, .stack = stack});
    const auto cost_ns = static_cast<int64_t>(random() % 1000);
    part.rows.push_back({.node = node, .events = 1, .cost_ns = cost_ns});
    instance.dur_ns += cost_ns;
  }
  part.occurrences.assign(part.stacks.stacks(), 1);
  part.distinct_wait_ns.assign(part.stacks.stacks(), 1);
  part.distinct_run_ns.assign(part.stacks.stacks(), 0);
  instance.rows_end = part.rows.size();
  part.instances.push_back(instance);
  part.traces.push_back(
      {.name = "t" + std::to_string(seed), .automatic = false, .events = kStacks});
  part.account.area.total_ns = instance.dur_ns;
  part.account.aoi_ns = instance.dur_ns;
  return part;
}

Evidence Sum() {
  Evidence sum;
  for (uint64_t seed = 0; seed < kParts; ++seed) {
    AddEvidence(Part(seed), sum);
    LargeMemory::KeepWithinBound();
  }
  return sum;
}

std::string Mined(const Evidence& evidence) {
  MineOptions options;
  options.patterns.lambda.share = kShareOne / 200;
  const MineResult result = MineClusters(evidence, options);
  std::string text = std::to_string(result.covered_ns);
  for (const Cluster& cluster : result.clusters) {
    text += "\n" + cluster.id + " " + std::to_string(cluster.metrics.cost_ns) + " " +
            std::to_string(cluster.gain_ns);
  }
  return text;
}

TEST(LargeEvidence, IsTheSameInFilesAsInMemory) {
  LargeMemory::SetBound(0);
  const Evidence plain = Sum();
  EXPECT_GT(plain.stacks.stacks(), 150'000U);
  const std::string bytes = EncodeEvidence(plain);
  const std::string mined = Mined(plain);
  for (const uint64_t more : {uint64_t{0}, uint64_t{3} << 20}) {
    LargeMemory::SetBound(LargeMemory::heap_bytes() + more + 1);
    {
      const Evidence bounded = Sum();
      EXPECT_GT(LargeMemory::mapped_bytes(), uint64_t{4} << 20);
      EXPECT_EQ(EncodeEvidence(bounded), bytes);
      EXPECT_EQ(Mined(bounded), mined);
      const auto decoded = DecodeEvidence(bytes);
      ASSERT_TRUE(decoded);
      EXPECT_EQ(EncodeEvidence(*decoded), bytes);
    }
    EXPECT_EQ(LargeMemory::mapped_bytes(), 0U);
    LargeMemory::SetBound(0);
  }
}

}  // namespace
}  // namespace culprit::stackmine
