// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/wait_graph.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "trace/random_trace.h"
#include "waitgraph/timelines_random.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;
using trace::SmallTrace;
using trace::ThreadId;
using trace::ThreadKind;

struct NaiveGraph {
  std::set<EventIndex> nodes;
  std::set<std::pair<EventIndex, EventIndex>> edges;
};

// 001 figure 2, line by line, with two differences: clipping instead of strict
// containment, and hardware events as the events of a device.
NaiveGraph Naive(const trace::Trace& trace, const trace::Instance& symptom) {
  const auto is_event_of = [&](const Event& e, ThreadId thread) {
    return e.thread == thread && (IsTile(e.kind) || e.kind == EventKind::kHardware);
  };
  const int64_t t0 = symptom.t0_ns;
  const int64_t t1 = symptom.t1_ns;
  NaiveGraph graph;                                       // line 1
  std::set<EventIndex> old;                               // V'
  for (EventIndex i = 0; i < trace.events.size(); ++i) {  // 2
    const Event& e = trace.events[i];
    if (e.thread != symptom.thread || !IsTile(e.kind)) continue;
    const bool overlaps = e.time_ns < t1 && (e.end_ns() > t0 || e.time_ns >= t0);
    if (overlaps) graph.nodes.insert(i);  // 3, 4
  }
  while (graph.nodes != old) {  // 14, 15
    const std::set<EventIndex> all = graph.nodes;
    for (const EventIndex i : all) {        // 5, 6
      if (!old.insert(i).second) continue;  // 7
      const Event& e = trace.events[i];
      if (e.kind != EventKind::kWait || !e.peer.valid()) continue;  // 8, 9
      const int64_t after = std::max(e.time_ns, t0);
      const int64_t until = std::min(e.end_ns(), t1);
      for (EventIndex k = 0; k < trace.events.size(); ++k) {  // 10
        const Event& other = trace.events[k];
        if (!is_event_of(other, e.peer)) continue;
        if (other.end_ns() <= after || other.end_ns() > until) continue;  // 11
        graph.nodes.insert(k);                                            // 12
        graph.edges.insert({i, k});                                       // 13
      }
    }
  }
  return graph;  // 16
}

NaiveGraph Unfold(const WaitGraph& graph) {
  NaiveGraph result;
  for (const GraphNode& node : graph.nodes) {
    EXPECT_TRUE(result.nodes.insert(node.event).second) << "a node twice";
    for (uint32_t i = node.children_begin; i < node.children_end; ++i) {
      result.edges.insert({node.event, graph.nodes[i].event});
    }
  }
  return result;
}

trace::Instance RandomInstance(const trace::Trace& trace, std::mt19937_64& random) {
  trace::Instance instance;
  instance.thread = ThreadId(random() % 2);
  const int64_t end_ns = std::max<int64_t>(1, trace.metadata.end_ns);
  instance.t0_ns = static_cast<int64_t>(random() % static_cast<uint64_t>(end_ns));
  instance.t1_ns =
      instance.t0_ns + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(end_ns));
  return instance;
}

TEST(WaitGraph, IsThatOfThePapersAlgorithmOnThousandsOfSchedules) {
  uint64_t nodes = 0;
  uint64_t edges = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    trace::Trace trace =
        RandomSchedule({.seed = seed, .threads = 2 + seed % 6, .steps = 50 + seed % 500}).Make();
    // A disk that wakes under its own name; "[disk]" as a name for all of them is
    // tested apart.
    std::erase_if(trace.events, [](const Event& e) { return e.kind == EventKind::kHardware; });
    const Timelines timelines(trace);
    WaitGraphBuilder builder(timelines);
    WaitGraph graph;
    std::mt19937_64 random(seed);
    for (int i = 0; i < 3; ++i) {
      const trace::Instance instance = RandomInstance(trace, random);
      builder.Build(instance, graph);
      const NaiveGraph expected = Naive(trace, instance);
      const NaiveGraph actual = Unfold(graph);
      ASSERT_EQ(actual.nodes, expected.nodes) << seed;
      ASSERT_EQ(actual.edges, expected.edges) << seed;
      nodes += expected.nodes.size();
      edges += expected.edges.size();
    }
  }
  EXPECT_GT(nodes, 50'000U);
  EXPECT_GT(edges, 30'000U);
}

TEST(WaitGraph, BreadthFirstReachesEveryNodeFromTheRoots) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const trace::Trace trace = RandomSchedule({.seed = seed, .steps = 120}).Make();
    std::mt19937_64 random(seed);
    const WaitGraph graph = BuildWaitGraph(Timelines(trace), RandomInstance(trace, random));
    ASSERT_EQ(graph.breadth_first.size(), graph.nodes.size());
    std::map<uint32_t, uint32_t> depth;
    uint32_t last = 0;
    for (const uint32_t i : graph.breadth_first) {
      const GraphNode& node = graph.nodes[i];
      const bool root = i >= graph.roots_begin && i < graph.roots_end;
      ASSERT_EQ(root, node.found_by == UINT32_MAX);
      if (!root) {
        ASSERT_TRUE(depth.contains(node.found_by));
        const GraphNode& by = graph.nodes[node.found_by];
        EXPECT_TRUE(i >= by.children_begin && i < by.children_end);
      }
      const uint32_t mine = root ? 0 : depth[node.found_by] + 1;
      EXPECT_GE(mine, last);
      EXPECT_TRUE(depth.emplace(i, mine).second);
      last = mine;
    }
  }
}

TEST(WaitGraph, AnyTraceHasOne) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const trace::Trace trace = seed % 2 == 0
                                   ? trace::RandomTrace({.seed = seed, .wild = seed % 4 == 0})
                                   : RandomSchedule({.seed = seed, .faulty = true}).Make();
    const Timelines timelines(trace);
    WaitGraphBuilder builder(timelines);
    WaitGraph graph;
    for (const trace::Instance& instance : trace.instances) builder.Build(instance, graph);
    builder.Build({.scenario = {}, .thread = ThreadId(0), .t0_ns = 0, .t1_ns = 1000}, graph);
    for (const GraphNode& node : graph.nodes) {
      EXPECT_GE(node.dur_ns(), 0);
      EXPECT_LE(node.children_end, graph.nodes.size());
    }
  }
}

// 001 figure 1: T1 waits for the lock that T2 holds while it runs R1 to R4.
TEST(WaitGraph, Figure1OfStackMine) {
  SmallTrace small(0, 8'000'000);
  small.Add(EventKind::kRunning, "T1", 0, 1'000'000);
  small.Add(EventKind::kWait, "T1", 1'000'000, 6'000'000, "Foo!WA;Foo!WC;Foo!WD;Foo!WF").peer =
      small.Thread("T2");
  small.Add(EventKind::kRunning, "T1", 6'000'000, 8'000'000);
  small.Add(EventKind::kReady, "T2", 0, 1'500'000);
  for (int i = 0; i < 4; ++i) {
    const int64_t begin_ns = 1'500'000 + i * 1'000'000;
    small.Add(EventKind::kRunning, "T2", begin_ns, begin_ns + 1'000'000, "Foo!RA;Foo!RB");
  }
  small.Add(EventKind::kRunning, "T2", 5'500'000, 7'000'000, "Foo!RZ");
  const WaitGraph graph = BuildWaitGraph(
      Timelines(small.trace),
      {.scenario = {}, .thread = small.Thread("T1"), .t0_ns = 500'000, .t1_ns = 7'500'000});
  // T1's three tiles; of T2 its turn to run and the four samples, but not
  // what it did after it let go.
  ASSERT_EQ(graph.nodes.size(), 8U);
  EXPECT_EQ(graph.roots_end - graph.roots_begin, 3U);
  const GraphNode& wait = graph.nodes[graph.roots_begin + 1];
  EXPECT_EQ(wait.children_end - wait.children_begin, 5U);
  EXPECT_EQ(graph.nodes[graph.roots_begin].dur_ns(), 500'000);
  EXPECT_EQ(graph.nodes[graph.roots_end - 1].dur_ns(), 1'500'000);
}

TEST(WaitGraph, AWaitEndedByADeviceLeadsToWhatThatDeviceServed) {
  SmallTrace small(0, 100);
  small.Thread("[disk]", ThreadKind::kDevice);
  small.Thread("[disk 8:0]", ThreadKind::kDevice);
  small.Add(EventKind::kWait, "a", 10, 50, "a!R").peer = small.Thread("[disk]");
  small.Add(EventKind::kHardware, "[disk 8:0]", 0, 9).peer = small.Thread("b");
  small.Add(EventKind::kHardware, "[disk 8:0]", 9, 30).peer = small.Thread("b");
  small.Add(EventKind::kHardware, "[disk 8:0]", 30, 50).peer = small.Thread("a");
  small.Add(EventKind::kHardware, "[disk 8:0]", 50, 60).peer = small.Thread("b");
  const trace::Instance instance = {
      .scenario = {}, .thread = small.Thread("a"), .t0_ns = 0, .t1_ns = 100};
  EXPECT_EQ(BuildWaitGraph(Timelines(small.trace), instance).nodes.size(), 3U);
  small.trace.events[0].peer = small.Thread("[disk 8:0]");
  EXPECT_EQ(Unfold(BuildWaitGraph(Timelines(small.trace), instance)).edges,
            Naive(small.trace, instance).edges);
}

// 1,000 threads hand one lock on, ten times round: the edges number ten
// millions, the nodes some ten thousands.
TEST(WaitGraph, AConvoyCostsItsNodesNotItsEdges) {
  constexpr int64_t kThreads = 1000;
  constexpr int64_t kRounds = 10;
  SmallTrace small(0, kThreads * kRounds * 10 + 10);
  for (int64_t i = 0; i < kThreads; ++i) {
    const std::string me = "t" + std::to_string(i);
    int64_t now_ns = 0;
    for (int64_t round = 0; round < kRounds; ++round) {
      const int64_t turn_ns = (round * kThreads + i) * 10;
      small.Add(EventKind::kWait, me, now_ns, turn_ns, "m!Lock").peer =
          small.Thread("t" + std::to_string((i + kThreads - 1) % kThreads));
      small.Add(EventKind::kRunning, me, turn_ns, turn_ns + 10, "m!Work");
      now_ns = turn_ns + 10;
    }
  }
  const Timelines timelines(small.trace);
  WaitGraphBuilder builder(timelines);
  WaitGraph graph;
  for (int64_t i = 0; i < kThreads; i += 100) {
    builder.Build({.scenario = {},
                   .thread = small.Thread("t" + std::to_string(i)),
                   .t0_ns = 0,
                   .t1_ns = kThreads * kRounds * 10},
                  graph);
    EXPECT_LE(graph.nodes.size(), 2U * kThreads * kRounds);
  }
  EXPECT_GT(graph.nodes.size(), size_t{kThreads * kRounds});
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
