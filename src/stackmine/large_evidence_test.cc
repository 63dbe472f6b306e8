// SPDX-License-Identifier: Apache-2.0
// Evidence that does not fit the bound on memory (base/large_memory.h) is the same
// evidence, and what is mined from it the same result.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/large_memory.h"
#include "stackmine/clusters.h"
#include "stackmine/evidence.h"
#include "stackmine/evidence_codec.h"
#include "stackmine/metrics.h"

namespace culprit::stackmine::TEST_FILE {
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

// Ten behaviours in 30,000 instances, whose traces need not follow each other.
Evidence ManyInstances(bool in_order) {
  constexpr uint32_t kInstances = 30'000;
  constexpr uint32_t kTraces = 300;
  std::mt19937_64 random(7);
  Evidence evidence;
  evidence.scenarios = {"Open", "Close"};
  for (uint32_t t = 0; t < kTraces; ++t) evidence.traces.push_back({.name = std::to_string(t)});
  for (uint32_t i = 0; i < kInstances; ++i) {
    InstanceFacts instance;
    instance.trace = in_order ? i / (kInstances / kTraces) : i % kTraces;
    instance.scenario = i % 2;
    for (uint32_t b = 0; b < 10; ++b) {
      if (random() % 4 == 0) continue;
      const FrameSymbol frame = evidence.stacks.InternFrame("app!F" + std::to_string(b), 4, true);
      const NodeIndex node = evidence.forest.Intern(
          {.parent = kNoNode, .stack = evidence.stacks.InternStack(kNoStack, frame)});
      const auto cost_ns = static_cast<int64_t>(random() % 1'000'000);
      evidence.rows.push_back({.node = node, .events = 1, .cost_ns = cost_ns});
      instance.dur_ns += cost_ns;
    }
    instance.rows_end = evidence.rows.size();
    evidence.instances.push_back(instance);
  }
  evidence.distinct_wait_ns.assign(evidence.stacks.stacks(), 0);
  evidence.distinct_run_ns.assign(evidence.stacks.stacks(), 0);
  return evidence;
}

// Each stack is a label.
std::vector<Metrics> MeasureStacks(const Evidence& evidence) {
  StackLabels labels;
  labels.wait.resize(evidence.stacks.stacks());
  labels.run.resize(evidence.stacks.stacks());
  for (uint32_t s = 0; s < labels.wait.size(); ++s) labels.wait[s] = {s};
  return Measure(evidence, labels, MakeCover(evidence, labels, false), labels.wait.size());
}

// The metrics of a label, one instance after the other.
void ExpectMeasured(const Evidence& evidence, uint32_t label, const Metrics& metrics) {
  std::vector<int64_t> times;
  std::map<uint32_t, int64_t> traces;
  std::map<uint32_t, int64_t> scenarios;
  RowCursor rows(evidence.rows);
  for (uint32_t i = 0; i < evidence.instances.size(); ++i) {
    const InstanceFacts& instance = evidence.instances[i];
    int64_t time_ns = 0;
    for (const PathRow& row : rows.Read(evidence.rows_begin(i), instance.rows_end)) {
      if (evidence.forest.nodes()[row.node].stack == label) time_ns += row.cost_ns;
    }
    if (time_ns == 0) continue;
    times.push_back(time_ns);
    traces[instance.trace] += time_ns;
    scenarios[instance.scenario] += time_ns;
  }
  std::sort(times.begin(), times.end());
  EXPECT_EQ(metrics.instances, times.size());
  EXPECT_EQ(metrics.max_ns, times.back());
  EXPECT_EQ(metrics.p50_ns, times[(times.size() * 50 + 99) / 100 - 1]);
  EXPECT_EQ(metrics.p95_ns, times[(times.size() * 95 + 99) / 100 - 1]);
  ASSERT_EQ(metrics.by_trace.size(), traces.size());
  EXPECT_EQ(metrics.traces, traces.size());
  size_t at = 0;
  for (const auto& [trace, time_ns] : traces) {
    EXPECT_EQ(metrics.by_trace[at++], (TraceTime{trace, time_ns}));
  }
  for (const auto& [scenario, time_ns] : metrics.scenarios) {
    EXPECT_EQ(scenarios.at(scenario), time_ns);
  }
}

TEST(LargeEvidence, LabelsOfManyInstancesAreMeasuredInFilesAsInMemory) {
  for (const bool in_order : {true, false}) {
    const Evidence evidence = ManyInstances(in_order);
    for (const bool bounded : {false, true}) {
      LargeMemory::SetBound(bounded ? LargeMemory::heap_bytes() + 1 : 0);
      const std::vector<Metrics> metrics = MeasureStacks(evidence);
      LargeMemory::SetBound(0);
      // Out of order a label has as many pieces of time as instances: a table that is kept.
      EXPECT_EQ(LargeMemory::mapped_bytes() > 0, bounded && !in_order);
      ASSERT_EQ(metrics.size(), 10U);
      for (uint32_t label = 0; label < 10; ++label) {
        SCOPED_TRACE(testing::Message() << label << (in_order ? "" : " out of order"));
        ExpectMeasured(evidence, label, metrics[label]);
      }
    }
  }
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
