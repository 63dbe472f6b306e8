// SPDX-License-Identifier: Apache-2.0
#include "trace/breakdown.h"

#include <gtest/gtest.h>

#include "trace/random_trace.h"
#include "trace/small_trace.h"

namespace culprit::trace::TEST_FILE {
namespace {

void ExpectConserved(const Breakdown& b) {
  EXPECT_EQ(b.running_ns + b.not_sampled_ns + b.wait_ns + b.ready_ns + b.unattributed_ns,
            b.total_ns);
  int64_t waits_ns = 0;
  for (const StackCost& cost : b.waits) waits_ns += cost.cost_ns;
  EXPECT_EQ(waits_ns, b.wait_ns);
  int64_t running_ns = 0;
  for (const StackCost& cost : b.running) running_ns += cost.cost_ns;
  EXPECT_EQ(running_ns, b.running_ns);
}

// ui runs 0-100, waits 100-400, is ready 400-450, runs 450-600 (no sample).
SmallTrace Example() {
  SmallTrace small(0, 1000);
  small.Add(EventKind::kRunning, "ui", 0, 100, "app!main;app!draw");
  small.Add(EventKind::kWait, "ui", 100, 400, "app!main;k!lock");
  small.Add(EventKind::kReady, "ui", 400, 450, "app!main;k!lock");
  small.Add(EventKind::kRunning, "ui", 450, 600).flags = kNotSampled;
  small.Add(EventKind::kWait, "other", 0, 1000, "app!worker;k!idle");
  return small;
}

TEST(Breakdown, ClipsTheInitiatingThreadsEventsToTheInstance) {
  SmallTrace small = Example();
  small.AddInstance("Draw", "ui", 50, 700);
  const Breakdown b = BreakdownOf(small.Reader(), BreakdownScope::kInstances);
  EXPECT_EQ(b.total_ns, 650);
  EXPECT_EQ(b.running_ns, 50);
  EXPECT_EQ(b.wait_ns, 300);
  EXPECT_EQ(b.ready_ns, 50);
  EXPECT_EQ(b.not_sampled_ns, 150);
  EXPECT_EQ(b.unattributed_ns, 100);
  ASSERT_EQ(b.waits.size(), 1u);
  EXPECT_EQ(b.dictionary.StackText(b.waits[0].stack), "app!main;k!lock");
  EXPECT_EQ(b.waits[0].instances, 1u);
  ExpectConserved(b);
}

TEST(Breakdown, AnEventCountsForEveryInstanceItOverlaps) {
  SmallTrace small = Example();
  small.AddInstance("Outer", "ui", 0, 600);
  small.AddInstance("Inner", "ui", 150, 250);
  small.AddInstance("After", "ui", 600, 800);
  const Breakdown b = BreakdownOf(small.Reader(), BreakdownScope::kInstances);
  EXPECT_EQ(b.instances, 3u);
  EXPECT_EQ(b.wait_ns, 300 + 100);
  EXPECT_EQ(b.waits[0].instances, 2u);
  EXPECT_EQ(b.unattributed_ns, 200);
  ExpectConserved(b);
}

TEST(Breakdown, WithoutInstancesEveryThreadCountsWhole) {
  const Breakdown b = BreakdownOf(Example().Reader(), BreakdownScope::kThreads);
  EXPECT_EQ(b.instances, 2u);
  EXPECT_EQ(b.total_ns, 2000);
  EXPECT_EQ(b.wait_ns, 1300);
  EXPECT_EQ(b.unattributed_ns, 400);
  EXPECT_EQ(b.dictionary.StackText(b.waits[0].stack), "app!worker;k!idle");
  ExpectConserved(b);
}

TEST(Breakdown, DevicesAreNobodysTime) {
  SmallTrace small(0, 100);
  small.Thread("disk", ThreadKind::kDevice);
  small.Add(EventKind::kHardware, "disk", 0, 50);
  EXPECT_EQ(BreakdownOf(small.Reader(), BreakdownScope::kThreads).total_ns, 0);
}

TEST(Breakdown, SumMatchesStacksByNameWhateverTheOrder) {
  SmallTrace first = Example();
  first.AddInstance("Draw", "ui", 0, 600);
  SmallTrace second(0, 1000);
  second.Add(EventKind::kWait, "x", 0, 10, "z!first;z!second");
  second.Add(EventKind::kWait, "ui", 0, 900, "app!main;k!lock");
  second.AddInstance("Draw", "ui", 0, 1000);
  const Breakdown a = BreakdownOf(first.Reader(), BreakdownScope::kInstances);
  const Breakdown b = BreakdownOf(second.Reader(), BreakdownScope::kInstances);
  for (const bool swapped : {false, true}) {
    BreakdownSum sum;
    sum.Add(swapped ? b : a);
    sum.Add(swapped ? a : b);
    const Breakdown both = std::move(sum).Finish();
    ExpectConserved(both);
    EXPECT_EQ(both.traces, 2u);
    EXPECT_EQ(both.total_ns, 1600);
    ASSERT_EQ(both.waits.size(), 1u);
    EXPECT_EQ(both.waits[0].cost_ns, 1200);
    EXPECT_EQ(both.waits[0].traces, 2u);
    EXPECT_EQ(both.waits[0].instances, 2u);
  }
}

TEST(Breakdown, AgreesWithANaiveSumOverRandomTraces) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Trace trace = RandomTrace({.seed = seed, .events = 400, .threads = 4});
    trace.instances.push_back({.scenario = trace.dictionary.Intern("S"),
                               .thread = ThreadId(1),
                               .t0_ns = 100'000,
                               .t1_ns = 600'000});
    auto reader = TraceReader::FromBytes(EncodeTrace(trace, {.block_events = 64}), "random");
    const Breakdown b = BreakdownOf(reader.value(), BreakdownScope::kInstances);
    int64_t wait_ns = 0;
    int64_t total_ns = 0;
    for (const Instance& instance : trace.instances) {
      total_ns += instance.dur_ns();
      for (const Event& event : trace.events) {
        if (event.thread != instance.thread || event.kind != EventKind::kWait) continue;
        wait_ns += std::max<int64_t>(
            0, std::min(event.end_ns(), instance.t1_ns) - std::max(event.time_ns, instance.t0_ns));
      }
    }
    EXPECT_EQ(b.wait_ns, wait_ns) << seed;
    EXPECT_EQ(b.total_ns, total_ns) << seed;
    ExpectConserved(b);
  }
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
