// SPDX-License-Identifier: Apache-2.0
//
// Clusters of hand-made traces: what is joined, what is not, how it is ranked,
// and input that has nothing to find.
#include "stackmine/clusters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "stackmine/reduce.h"
#include "stackmine/summary.h"
#include "trace/random_trace.h"
#include "trace/small_trace.h"

namespace culprit::stackmine::TEST_FILE {
namespace {

using trace::EventKind;
using trace::SmallTrace;

MineOptions Lambda(int64_t cost_ns) {
  MineOptions options;
  options.patterns.lambda = {.kind = LambdaRule::Kind::kCost, .cost_ns = cost_ns};
  return options;
}

// One wait and one run an instance, one after the other.
class TraceOfWaits {
 public:
  void Add(const std::string& stack, int64_t dur_ns, const std::string& scenario = "S") {
    const int64_t begin_ns = now_ns_;
    small_.Add(EventKind::kWait, "ui", begin_ns, begin_ns + dur_ns, stack).flags =
        trace::kWakerUnknown;
    small_.Add(EventKind::kRunning, "ui", begin_ns + dur_ns, begin_ns + dur_ns + 1, "app!main");
    now_ns_ = begin_ns + dur_ns + 1;
    small_.AddInstance(scenario, "ui", begin_ns, now_ns_);
    small_.trace.metadata.end_ns = now_ns_;
  }
  Evidence Reduce(const ReduceOptions& options = {}) const {
    return ReduceTrace(small_.trace, "t", options);
  }

 private:
  SmallTrace small_{0, 0};
  int64_t now_ns_ = 0;
};

// 001 figure 5: three common segments, different ways between them.
std::string StartupStack(int way) {
  std::string stack = "app!main;app!Startup;app!InitComponents;";
  for (int i = 0; i < 9; ++i) {
    stack += "mod!Way" + std::string(1, static_cast<char>('A' + way)) +
             std::string(1, static_cast<char>('a' + i)) + "Step;";
  }
  return stack + "app!GetHashCode;kernel32!GetShortPathName;fs!Query;kernel!MmAccessFault";
}

TEST(Clusters, VariantsOfOneBehaviourAreOneClusterAndShowTheirWays) {
  TraceOfWaits trace;
  for (int way = 0; way < 4; ++way) trace.Add(StartupStack(way), 1000 + way);
  for (int i = 0; i < 12; ++i) {
    trace.Add("app!main;app!Other" + std::string(1, static_cast<char>('A' + i)) + ";lib!Work", 900);
  }
  const Evidence evidence = trace.Reduce();
  const MineResult result = MineClusters(evidence, Lambda(800));
  const auto bug =
      std::find_if(result.clusters.begin(), result.clusters.end(), [&](const Cluster& c) {
        return evidence.stacks.FrameName(c.common.back()) == "kernel!MmAccessFault";
      });
  ASSERT_NE(bug, result.clusters.end());
  EXPECT_EQ(bug->metrics.cost_ns, 4006);
  EXPECT_EQ(bug->patterns.size(), 4u);
  EXPECT_EQ(bug->common.size(), 7u);
  ASSERT_EQ(bug->segments.size(), 3u);
  EXPECT_EQ(bug->segments[1].variants.size(), 4u);
  EXPECT_EQ(bug->segments[1].variants[0].size(), 9u);
  EXPECT_EQ(evidence.stacks.FrameName(bug->segments[2].shared.front()), "app!GetHashCode");
  EXPECT_NE(Summarize(evidence, *bug).find("app!Startup"), std::string::npos)
      << Summarize(evidence, *bug);
}

TEST(Clusters, WithoutAnchorsOnlySimilarityJoins) {
  TraceOfWaits trace;
  for (int way = 0; way < 4; ++way) trace.Add(StartupStack(way), 1000 + way);
  for (int i = 0; i < 12; ++i) {
    trace.Add("app!main;app!Other" + std::string(1, static_cast<char>('A' + i)) + ";lib!Work", 900);
  }
  const Evidence evidence = trace.Reduce();
  MineOptions options = Lambda(800);
  options.anchors = false;
  options.clustering.cut = 0;
  const MineResult apart = MineClusters(evidence, options);
  EXPECT_EQ(apart.clusters.size(), apart.patterns);
  for (const Cluster& cluster : apart.clusters) EXPECT_FALSE(cluster.anchor.has_value());
}

TEST(Clusters, VariantsTooCheapToBePatternsAreCountedThroughTheAnchor) {
  TraceOfWaits trace;
  for (int way = 0; way < 4; ++way) trace.Add(StartupStack(way), way == 3 ? 100 : 1000);
  for (int i = 0; i < 12; ++i) {
    trace.Add("app!main;app!Other" + std::string(1, static_cast<char>('A' + i)) + ";lib!Work", 900);
  }
  const Evidence evidence = trace.Reduce();
  const MineResult result = MineClusters(evidence, Lambda(800));
  const auto bug =
      std::find_if(result.clusters.begin(), result.clusters.end(),
                   [](const Cluster& c) { return c.anchor && c.patterns.size() == 3; });
  ASSERT_NE(bug, result.clusters.end());
  EXPECT_EQ(bug->metrics.cost_ns, 3100);
}

TEST(Clusters, OneLongDelayRanksBeforeManyShortOnesOfTheSameSum) {
  TraceOfWaits trace;
  trace.Add("app!main;app!Slow", 100'000'000);
  for (int i = 0; i < 100; ++i) trace.Add("lib!start;lib!Often", 1'100'000);
  const Evidence evidence = trace.Reduce();
  const MineResult by_impact = MineClusters(evidence, Lambda(50'000'000));
  ASSERT_EQ(by_impact.clusters.size(), 2u);
  EXPECT_EQ(by_impact.clusters[0].metrics.cost_ns, 100'000'000);
  MineOptions options = Lambda(50'000'000);
  options.sort = SortBy::kCost;
  EXPECT_EQ(MineClusters(evidence, options).clusters[0].metrics.cost_ns, 110'000'000);
  options.sort = SortBy::kEvents;
  EXPECT_EQ(MineClusters(evidence, options).clusters[0].metrics.events, 100u);
  options.sort = SortBy::kAverage;
  EXPECT_EQ(MineClusters(evidence, options).clusters[0].metrics.average_ns(), 100'000'000);
}

// Costs are equal in pairs, so that only names can decide.
TEST(Clusters, DoNotDependOnTheOrderOfTraces) {
  std::vector<Evidence> parts;
  for (int way = 0; way < 8; ++way) {
    TraceOfWaits trace;
    trace.Add(StartupStack(way), 1000 + way / 2);
    trace.Add("app!main;app!Save" + std::to_string(way) + ";fs!Write;kernel!Flush", 1000);
    parts.push_back(trace.Reduce());
  }
  Evidence forward;
  Evidence backward;
  for (size_t i = 0; i < parts.size(); ++i) {
    AddEvidence(parts[i], forward);
    AddEvidence(parts[parts.size() - 1 - i], backward);
  }
  const auto text_of = [](const Evidence& evidence) {
    std::string text;
    for (const Cluster& cluster : MineClusters(evidence, Lambda(500)).clusters) {
      text += cluster.id + "\n";
      const auto add = [&](const std::vector<FrameSymbol>& frames) {
        for (const FrameSymbol f : frames) text += std::string(evidence.stacks.FrameName(f)) + ";";
        text += "\n";
      };
      for (const MinedPattern& pattern : cluster.patterns) add(pattern.frames);
      for (const ClusterSegment& segment : cluster.segments) {
        add(segment.shared);
        for (const auto& variant : segment.variants) add(variant);
      }
    }
    return text;
  };
  EXPECT_EQ(text_of(forward), text_of(backward));
}

TEST(Clusters, IdsComeFromTheContentNotFromTheRank) {
  TraceOfWaits few;
  few.Add("app!main;app!Slow", 1000);
  TraceOfWaits many;
  many.Add("app!main;app!Slow", 1000);
  for (int i = 0; i < 9; ++i) many.Add("lib!start;lib!Often", 2000);
  const Evidence a = few.Reduce();
  const Evidence b = many.Reduce();
  const std::string id = MineClusters(a, Lambda(500)).clusters.front().id;
  const MineResult other = MineClusters(b, Lambda(500));
  EXPECT_NE(other.clusters.front().id, id);
  EXPECT_EQ(other.clusters.back().id, id);
  EXPECT_EQ(id.size(), 10u);
}

TEST(Clusters, ScenarioAndDurationChooseInstancesAndTheRestIsCounted) {
  TraceOfWaits trace;
  trace.Add("app!main;app!Slow", 1000, "Open");
  trace.Add("app!main;app!Slow", 10, "Open");
  trace.Add("app!main;app!Slow", 1000, "Close");
  ReduceOptions options;
  options.scenarios = {"Op*"};
  options.slower_than_ns = 500;
  const Evidence evidence = trace.Reduce(options);
  EXPECT_EQ(evidence.instances.size(), 1u);
  EXPECT_EQ(evidence.account.area.total_ns, 1001);
  EXPECT_EQ(evidence.account.instances_left_out, 2u);
  EXPECT_EQ(evidence.account.instances_left_out_ns, 11 + 1001);
}

TEST(Clusters, WaitsWithoutStacksAreKnownByThreadAndWaker) {
  SmallTrace small(0, 1000);
  for (int i = 0; i < 3; ++i) {
    const std::string worker = "worker-" + std::to_string(i);
    small.Add(EventKind::kWait, worker, 0, 500).peer = small.Thread("db");
    small.Add(EventKind::kRunning, worker, 500, 600).flags = trace::kNotSampled;
    small.AddInstance("Job", worker, 0, 600);
  }
  small.Add(EventKind::kRunning, "db", 0, 500).flags = trace::kNotSampled;
  const Evidence evidence = ReduceTrace(small.trace, "t", {});
  EXPECT_EQ(evidence.account.waits_without_stack, 3u);
  const MineResult result = MineClusters(evidence, Lambda(100));
  EXPECT_TRUE(result.runs_by_thread);
  ASSERT_GE(result.clusters.size(), 2u);
  const Cluster& wait = result.clusters.front();
  EXPECT_EQ(wait.metrics.cost_ns, 1500);
  EXPECT_TRUE(Summarize(evidence, wait).ends_with("in thread worker-#, woken by db"))
      << Summarize(evidence, wait);
}

// Three stacks have the wide pattern and one that tells more each, which takes
// them: what is left of the wide one, a quarter, goes to the pattern that keeps
// at least half of its own.
TEST(Clusters, AStackIsNotGivenToAClusterThatGaveAwayMostOfItsTime) {
  const std::string wide = "app!Amber;app!Birch;app!Cedar;app!Delta";
  const std::string narrow = "app!Ember;app!Fjord";
  const std::vector<std::string> telling = {
      "app!Gravel;app!Harbor;app!Indigo;app!Jasper;app!Kelp;app!Lemon",
      "app!Maple;app!Nectar;app!Onyx;app!Pepper;app!Quartz;app!River",
      "app!Saddle;app!Timber;app!Umber;app!Velvet;app!Willow;app!Yarrow"};
  TraceOfWaits trace;
  for (const std::string& rest : telling) {
    trace.Add(wide + ";" + rest, 60);
    trace.Add(rest, 60);
  }
  trace.Add(wide + ";" + narrow, 60);
  trace.Add(narrow, 60);
  MineOptions options = Lambda(100);
  options.anchors = false;
  const Evidence evidence = trace.Reduce();
  const MineResult result = MineClusters(evidence, options);
  ASSERT_EQ(result.clusters.size(), 5u);
  for (const Cluster& cluster : result.clusters) {
    const std::string_view first = evidence.stacks.FrameName(cluster.common.front());
    EXPECT_EQ(cluster.metrics.time_ns, first == "app!Amber" ? 240 : 120) << first;
    EXPECT_EQ(cluster.own_ns, first == "app!Amber" ? 0 : 120) << first;
  }
}

TEST(Clusters, LambdaAboveEverythingFindsNothing) {
  TraceOfWaits trace;
  trace.Add("app!main;app!Slow", 1000);
  const Evidence evidence = trace.Reduce();
  const MineResult result = MineClusters(evidence, Lambda(INT64_MAX));
  EXPECT_TRUE(result.clusters.empty());
  EXPECT_EQ(result.rest_ns, 1001);
  EXPECT_EQ(result.wait_ns, 1000);
}

TEST(Clusters, NothingAtAllIsNoTrouble) {
  const Evidence empty;
  const MineResult result = MineClusters(empty, {});
  EXPECT_TRUE(result.clusters.empty());
  SmallTrace only_running(0, 100);
  only_running.Add(EventKind::kRunning, "ui", 0, 100, "app!main;app!Burn");
  only_running.AddInstance("S", "ui", 0, 100);
  const MineResult cpu = MineClusters(ReduceTrace(only_running.trace, "t", {}), Lambda(50));
  ASSERT_EQ(cpu.clusters.size(), 1u);
  EXPECT_EQ(cpu.clusters[0].kind, StackKind::kRun);
}

TEST(Clusters, ATenThousandFramesDeepStackIsMined) {
  std::string deep = "app!main";
  for (int i = 0; i < 10'000; ++i) deep += i % 2 == 0 ? ";app!Even" : ";app!Odd";
  TraceOfWaits trace;
  trace.Add(deep + ";kernel!wait", 1000);
  trace.Add("app!main;app!Other;kernel!wait", 10);
  const MineResult result = MineClusters(trace.Reduce(), Lambda(500));
  ASSERT_FALSE(result.clusters.empty());
  EXPECT_GE(result.clusters[0].metrics.cost_ns, 1000);
}

TEST(Clusters, AnyBytesThatAreATraceAreMinedWithoutHarm) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const trace::Trace trace =
        trace::RandomTrace({.seed = seed, .events = 400, .wild = seed % 2 == 1});
    const Evidence evidence = ReduceTrace(trace, "t", {});
    MineOptions options;
    options.patterns.max_patterns = 200;
    const MineResult result = MineClusters(evidence, options);
    EXPECT_EQ(result.covered_ns + result.rest_ns, evidence.account.area.total_ns);
  }
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
