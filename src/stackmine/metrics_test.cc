// SPDX-License-Identifier: Apache-2.0
//
// Costs, times and coverage of labels, held against a naive reader that walks
// the events of the area of interest one by one.
#include "stackmine/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "stackmine/clusters.h"
#include "stackmine/reduce.h"
#include "waitgraph/timelines_random.h"

namespace culprit::stackmine::TEST_FILE {
namespace {

using waitgraph::AreaEvent;
using waitgraph::SegmentKind;

trace::Trace MakeTrace(uint64_t seed, bool faulty) {
  trace::Trace trace =
      waitgraph::RandomSchedule({.seed = seed, .threads = 5, .steps = 80, .faulty = faulty}).Make();
  const int64_t begin_ns = trace.metadata.begin_ns;
  const int64_t dur_ns = trace.metadata.end_ns - begin_ns;
  const StringId scenario = trace.dictionary.Intern("S");
  for (size_t i = 0; i < 5; ++i) {
    const auto step = static_cast<int64_t>(i);
    trace.instances.push_back({.scenario = scenario,
                               .thread = trace::ThreadId(i),
                               .t0_ns = begin_ns + dur_ns * step / 10,
                               .t1_ns = begin_ns + dur_ns * (step + 6) / 10});
  }
  return trace;
}

bool Contains(const std::vector<std::string>& stack, const std::vector<std::string>& pattern) {
  size_t found = 0;
  for (const std::string& frame : stack) {
    if (found < pattern.size() && frame == pattern[found]) ++found;
  }
  return found == pattern.size();
}

// The area of interest again, without any of the evidence's tables.
struct NaiveReader {
  explicit NaiveReader(const trace::Trace& from)
      : trace(from),
        timelines(from),
        area(waitgraph::AreaOfInterest(timelines, from.instances, {})) {}

  bool Has(const AreaEvent& event, const Cluster& cluster, const Evidence& evidence) const {
    const bool wait = event.kind == SegmentKind::kWait;
    if (wait != (cluster.kind == StackKind::kWait)) return false;
    if (!wait && event.kind != SegmentKind::kRunning) return false;
    std::vector<std::string> stack;
    for (const trace::FrameId frame : trace.dictionary.StackFrames(event.stack)) {
      stack.push_back(trace.dictionary.FrameName(frame));
    }
    const auto holds = [&](const std::vector<FrameSymbol>& frames) {
      std::vector<std::string> names;
      for (const FrameSymbol f : frames) names.emplace_back(evidence.stacks.FrameName(f));
      return Contains(stack, names);
    };
    if (cluster.anchor && holds(cluster.anchor->closure)) return true;
    return std::any_of(cluster.patterns.begin(), cluster.patterns.end(),
                       [&](const MinedPattern& p) { return holds(p.frames); });
  }

  bool HasAbove(const AreaEvent& event, const Cluster& cluster, const Evidence& evidence) const {
    for (uint32_t at = event.parent; at != UINT32_MAX; at = area.events[at].parent) {
      if (Has(area.events[at], cluster, evidence)) return true;
    }
    return false;
  }

  // The time of each event that any instance was charged for, piece by piece
  // between all begins and ends of the charges.
  int64_t Distinct(const Cluster& cluster, const Evidence& evidence) const {
    std::map<waitgraph::EventIndex, std::vector<const AreaEvent*>> charges;
    for (const AreaEvent& event : area.events) {
      if (Has(event, cluster, evidence)) charges[event.event].push_back(&event);
    }
    int64_t distinct_ns = 0;
    for (const auto& [event, parts] : charges) {
      std::set<int64_t> edges_ns;
      for (const AreaEvent* part : parts) {
        edges_ns.insert({part->begin_ns, part->begin_ns + part->cost_ns});
      }
      for (auto from = edges_ns.begin(); std::next(from) != edges_ns.end(); ++from) {
        const bool charged = std::any_of(parts.begin(), parts.end(), [&](const AreaEvent* part) {
          return part->begin_ns <= *from && *from < part->begin_ns + part->cost_ns;
        });
        if (charged) distinct_ns += *std::next(from) - *from;
      }
    }
    return distinct_ns;
  }

  const trace::Trace& trace;
  waitgraph::Timelines timelines;
  waitgraph::Area area;
};

class MetricsOracle : public testing::TestWithParam<uint64_t> {};

TEST_P(MetricsOracle, EveryClusterCostsWhatANaiveReaderFinds) {
  const trace::Trace trace = MakeTrace(GetParam(), GetParam() % 2 == 1);
  const Evidence evidence = ReduceTrace(trace, "t", {});
  MineOptions options;
  options.patterns.lambda = {.kind = LambdaRule::Kind::kShare, .share = kShareOne / 20};
  options.patterns.jobs = 1;
  options.clustering.jobs = 1;
  const MineResult result = MineClusters(evidence, options);
  const NaiveReader naive(trace);
  ASSERT_FALSE(result.clusters.empty());
  for (const Cluster& cluster : result.clusters) {
    // What has no stack is tested by hand (clusters_test.cc).
    if (IsPseudoFrame(evidence.stacks.FrameName(cluster.common.front()))) continue;
    int64_t cost_ns = 0;
    uint64_t events = 0;
    std::map<uint32_t, int64_t> by_instance;
    for (const AreaEvent& event : naive.area.events) {
      if (!naive.Has(event, cluster, evidence)) continue;
      cost_ns += event.cost_ns;
      ++events;
      if (!naive.HasAbove(event, cluster, evidence)) by_instance[event.instance] += event.cost_ns;
    }
    int64_t time_ns = 0;
    int64_t max_ns = 0;
    uint64_t instances = 0;
    for (const auto& [instance, ns] : by_instance) {
      time_ns += ns;
      max_ns = std::max(max_ns, ns);
      instances += ns > 0 ? 1 : 0;
    }
    EXPECT_EQ(cluster.metrics.cost_ns, cost_ns);
    EXPECT_EQ(cluster.metrics.events, events);
    EXPECT_EQ(cluster.metrics.time_ns, time_ns);
    EXPECT_EQ(cluster.metrics.instances, instances);
    EXPECT_EQ(cluster.metrics.max_ns, max_ns);
    EXPECT_GE(cluster.metrics.cost_ns, result.lambda_ns);
    EXPECT_EQ(cluster.metrics.distinct_ns, naive.Distinct(cluster, evidence));
    EXPECT_LE(cluster.metrics.p50_ns, cluster.metrics.p95_ns);
    const Composition& below = cluster.metrics.below;
    EXPECT_EQ(below.running_ns + below.ready_ns + below.hardware_ns + below.unexplained_ns,
              cluster.metrics.time_ns);
  }
}

TEST_P(MetricsOracle, GainsAndRestSumToTheTimeOfTheInstances) {
  const trace::Trace trace = MakeTrace(GetParam() + 1000, GetParam() % 2 == 0);
  const Evidence evidence = ReduceTrace(trace, "t", {});
  int64_t total_ns = 0;
  for (const trace::Instance& instance : trace.instances) total_ns += instance.dur_ns();
  EXPECT_EQ(evidence.account.area.total_ns, total_ns);
  for (const SortBy sort : {SortBy::kImpact, SortBy::kCost, SortBy::kP95}) {
    MineOptions options;
    options.patterns.lambda = {.kind = LambdaRule::Kind::kShare, .share = kShareOne / 30};
    options.sort = sort;
    const MineResult result = MineClusters(evidence, options);
    int64_t gains_ns = 0;
    int64_t own_ns = 0;
    for (const Cluster& cluster : result.clusters) {
      EXPECT_GE(cluster.gain_ns, 0);
      EXPECT_LE(cluster.gain_ns, cluster.metrics.time_ns);
      gains_ns += cluster.gain_ns;
      own_ns += cluster.own_ns;
    }
    EXPECT_EQ(gains_ns, result.covered_ns);
    EXPECT_EQ(result.covered_ns + result.rest_ns, total_ns);
    EXPECT_LE(own_ns, result.covered_ns);
    EXPECT_GE(result.rest_ns, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, MetricsOracle, testing::Range<uint64_t>(0, 24));

// Two users behind one lock, which its holder keeps while it reads the disk.
trace::SmallTrace Convoy() {
  trace::SmallTrace small(0, 1000);
  const trace::ThreadId disk = small.Thread("disk", trace::ThreadKind::kDevice);
  for (const char* user : {"a", "b"}) {
    small.Add(trace::EventKind::kWait, user, 100, 500, "app!main;app!take;kernel!lock").peer =
        small.Thread("holder");
    small.Add(trace::EventKind::kReady, user, 500, 520, "app!main;app!take;kernel!lock");
    small.Add(trace::EventKind::kRunning, user, 520, 600, "app!main;app!draw");
    small.AddInstance("Open", user, 100, 600);
    small.Add(trace::EventKind::kUnwait, "holder", 500, 500, "app!give").peer = small.Thread(user);
  }
  small.Add(trace::EventKind::kWait, "holder", 50, 450, "app!save;kernel!read").peer = disk;
  small.Add(trace::EventKind::kRunning, "holder", 450, 500, "app!save;app!pack");
  return small;
}

const Cluster* Find(const Evidence& evidence, const MineResult& result, std::string_view frame) {
  for (const Cluster& cluster : result.clusters) {
    for (const FrameSymbol f : cluster.common) {
      if (evidence.stacks.FrameName(f) == frame) return &cluster;
    }
  }
  return nullptr;
}

TEST(Metrics, AConvoyIsCountedBothWays) {
  const Evidence evidence = ReduceTrace(Convoy().trace, "t", {});
  EXPECT_EQ(evidence.account.area.total_ns, 1000);
  MineOptions options;
  options.patterns.lambda = {.kind = LambdaRule::Kind::kCost, .cost_ns = 50};
  const MineResult result = MineClusters(evidence, options);
  const Cluster* lock = Find(evidence, result, "kernel!lock");
  const Cluster* read = Find(evidence, result, "kernel!read");
  ASSERT_NE(lock, nullptr);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(lock->metrics.cost_ns, 800);
  EXPECT_EQ(lock->metrics.distinct_ns, 800);
  EXPECT_EQ(lock->metrics.instances, 2u);
  EXPECT_EQ(lock->metrics.ready_ns, 40);
  EXPECT_EQ(lock->metrics.p95_ns, 400);
  EXPECT_EQ(read->metrics.cost_ns, 700);
  EXPECT_EQ(read->metrics.distinct_ns, 350);
  EXPECT_EQ(read->own_ns, 0);
  ASSERT_NE(read->part_of, kNoCluster);
  EXPECT_EQ(result.clusters[read->part_of].id, lock->id);
  EXPECT_EQ(read->inside_ns, 700);
  EXPECT_EQ(evidence.InstanceName(lock->metrics.examples.front()), "t:0");
}

// Neither charge contains the other: 100 to 300 and 200 to 400.
TEST(Metrics, DistinctIsTheTimeThatAnyInstanceWasChargedFor) {
  trace::SmallTrace small(0, 1000);
  small.Add(trace::EventKind::kWait, "a", 100, 400, "app!main;kernel!lock").peer =
      small.Thread("holder");
  small.AddInstance("First", "a", 0, 300);
  small.AddInstance("Second", "a", 200, 500);
  const Evidence evidence = ReduceTrace(small.trace, "t", {});
  MineOptions options;
  options.patterns.lambda = {.kind = LambdaRule::Kind::kCost, .cost_ns = 50};
  const MineResult result = MineClusters(evidence, options);
  const Cluster* lock = Find(evidence, result, "kernel!lock");
  ASSERT_NE(lock, nullptr);
  EXPECT_EQ(lock->metrics.cost_ns, 400);
  EXPECT_EQ(lock->metrics.distinct_ns, 300);
}

TEST(Metrics, AddingEvidenceDoesNotDependOnHowItIsSplit) {
  std::vector<Evidence> parts;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    parts.push_back(ReduceTrace(MakeTrace(seed, false), "t" + std::to_string(seed), {}));
  }
  Evidence one_by_one;
  for (const Evidence& part : parts) AddEvidence(part, one_by_one);
  Evidence left;
  Evidence right;
  for (size_t i = 0; i < 6; ++i) AddEvidence(parts[i], i < 3 ? left : right);
  Evidence halves;
  AddEvidence(left, halves);
  AddEvidence(right, halves);
  MineOptions options;
  options.patterns.lambda = {.kind = LambdaRule::Kind::kShare, .share = kShareOne / 50};
  const MineResult a = MineClusters(one_by_one, options);
  options.patterns.jobs = 3;
  options.clustering.jobs = 3;
  const MineResult b = MineClusters(halves, options);
  ASSERT_EQ(a.clusters.size(), b.clusters.size());
  for (size_t i = 0; i < a.clusters.size(); ++i) {
    EXPECT_EQ(a.clusters[i].id, b.clusters[i].id);
    EXPECT_EQ(a.clusters[i].metrics.cost_ns, b.clusters[i].metrics.cost_ns);
    EXPECT_EQ(a.clusters[i].gain_ns, b.clusters[i].gain_ns);
    EXPECT_EQ(a.clusters[i].metrics.examples, b.clusters[i].metrics.examples);
  }
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
