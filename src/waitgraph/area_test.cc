// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/area.h"

#include <gtest/gtest.h>

#include <set>

#include "trace/random_trace.h"
#include "waitgraph/timelines_random.h"
#include "waitgraph/wait_graph.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;
using trace::SmallTrace;
using trace::ThreadId;
using trace::ThreadKind;

std::vector<trace::Instance> RandomInstances(const trace::Trace& trace, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto end_ns = static_cast<uint64_t>(std::max<int64_t>(1, trace.metadata.end_ns));
  std::vector<trace::Instance> instances;
  for (int i = 0; i < 5; ++i) {
    const auto t0_ns = static_cast<int64_t>(random() % end_ns);
    instances.push_back({.scenario = {},
                         .thread = ThreadId(random() % 5),
                         .t0_ns = t0_ns,
                         .t1_ns = t0_ns + static_cast<int64_t>(random() % end_ns)});
  }
  return instances;
}

TEST(Area, AccountsConserveTimeOnAnyTrace) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const trace::Trace trace =
        seed % 10 == 0
            ? trace::RandomTrace({.seed = seed})
            : RandomSchedule({.seed = seed, .steps = 150, .faulty = seed % 2 == 0}).Make();
    const Timelines timelines(trace);
    const auto instances = RandomInstances(trace, seed);
    for (const Scope scope : {Scope::kCriticalPath, Scope::kThread}) {
      const Area area = AreaOfInterest(timelines, instances, {.scope = scope});
      ASSERT_EQ(area.accounts.size(), instances.size());
      std::vector<int64_t> leaves_ns(instances.size());
      for (const AreaEvent& e : area.events) {
        const bool leaf = scope == Scope::kThread || e.kind != SegmentKind::kWait;
        if (leaf) leaves_ns[e.instance] += e.cost_ns;
      }
      for (size_t i = 0; i < instances.size(); ++i) {
        const AreaAccount& a = area.accounts[i];
        EXPECT_EQ(a.total_ns, instances[i].dur_ns());
        EXPECT_EQ(a.running_ns + a.ready_ns + a.hardware_ns + a.wait_ns + a.unattributed_ns,
                  a.total_ns)
            << seed;
        EXPECT_EQ(leaves_ns[i] + a.unattributed_ns, a.total_ns) << seed;
        EXPECT_LE(a.kept_ns, a.total_ns);
        EXPECT_EQ(a.kept_events, a.events);
      }
    }
  }
}

TEST(Area, ParentsStandBeforeTheirChildrenInTheSameInstance) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const trace::Trace trace = RandomSchedule({.seed = seed, .steps = 150}).Make();
    const auto instances = RandomInstances(trace, seed);
    for (const Scope scope : {Scope::kCriticalPath, Scope::kGraph}) {
      AreaOptions options = {.scope = scope};
      if (seed % 2 == 0) options.with = {"app!A"};
      const Area area = AreaOfInterest(Timelines(trace), instances, options);
      for (size_t i = 0; i < area.events.size(); ++i) {
        const AreaEvent& e = area.events[i];
        if (i > 0) {
          EXPECT_GE(e.instance, area.events[i - 1].instance);
        }
        if (e.parent == UINT32_MAX) continue;
        ASSERT_LT(e.parent, i);
        EXPECT_EQ(area.events[e.parent].instance, e.instance);
        EXPECT_EQ(area.events[e.parent].kind, SegmentKind::kWait);
        if (scope == Scope::kCriticalPath) {
          EXPECT_LE(e.cost_ns, area.events[e.parent].cost_ns);
        }
      }
    }
  }
}

// a waits for the lock that b holds over a disk read and some work.
class TwoThreads : public ::testing::Test {
 protected:
  TwoThreads() {
    small.Thread("[disk]", ThreadKind::kDevice);
    small.Add(EventKind::kRunning, "a", 0, 10, "app!Main");
    small
        .Add(EventKind::kWait, "a", 10, 80,
             "app!Main;db!Commit;libc.so.6!pthread_mutex_lock;[kernel]!futex_do_wait")
        .peer = small.Thread("b");
    small.Add(EventKind::kRunning, "a", 80, 100, "app!Main");
    small.Add(EventKind::kRunning, "b", 0, 20, "db!Flush");
    small
        .Add(EventKind::kWait, "b", 20, 60,
             "db!Flush;libc.so.6!fdatasync;[kernel]!folio_wait_bit_common;[kernel]!io_schedule")
        .peer = small.Thread("[disk]");
    small.Add(EventKind::kReady, "b", 60, 65, "db!Flush");
    small.Add(EventKind::kRunning, "b", 65, 100, "db!Flush");
    instances = {
        {.scenario = {}, .thread = small.Thread("a"), .t0_ns = 0, .t1_ns = 100},
    };
  }
  Area Of(const AreaOptions& options) {
    return AreaOfInterest(Timelines(small.trace), instances, options);
  }

  SmallTrace small{0, 100};
  std::vector<trace::Instance> instances;
};

TEST_F(TwoThreads, TheCriticalPathLooksThroughTheWait) {
  const Area area = Of({});
  const AreaAccount& a = area.accounts[0];
  EXPECT_EQ(a.running_ns, 10 + 20 + 10 + 15);
  EXPECT_EQ(a.ready_ns, 5);
  EXPECT_EQ(a.hardware_ns, 40);
  EXPECT_EQ(a.unattributed_ns, 0);
  EXPECT_EQ(a.kept_ns, 100);
  ASSERT_EQ(area.events.size(), 8U);
  EXPECT_EQ(area.events[1].kind, SegmentKind::kWait);
  EXPECT_EQ(area.events[1].wait_class, WaitClass::kLock);
  EXPECT_EQ(area.events[3].wait_class, WaitClass::kDisk);
  EXPECT_EQ(area.events[3].parent, 1U);
  EXPECT_EQ(area.events[4].kind, SegmentKind::kHardware);
  EXPECT_EQ(area.events[4].parent, 3U);
}

TEST_F(TwoThreads, TheThreadAloneLeavesTheWaitWhole) {
  const Area area = Of({.scope = Scope::kThread});
  EXPECT_EQ(area.accounts[0].running_ns, 30);
  EXPECT_EQ(area.accounts[0].wait_ns, 70);
  EXPECT_EQ(area.events.size(), 3U);
}

TEST_F(TwoThreads, TheGraphCountsEventsClippedToTheInstanceAlone) {
  const Area area = Of({.scope = Scope::kGraph});
  // b's running up to 20, its wait, its ready; its last run ends after the wait.
  EXPECT_EQ(area.accounts[0].running_ns, 30 + 20);
  EXPECT_EQ(area.accounts[0].wait_ns, 70 + 40);
  EXPECT_EQ(area.accounts[0].ready_ns, 5);
  EXPECT_EQ(area.events.size(), 6U);
}

TEST_F(TwoThreads, ContentKeepsEventsWithAFrame) {
  const Area area = Of({.with = {"db!Flush"}});
  // b's three segments and the device, whose stack is that of the wait.
  EXPECT_EQ(area.accounts[0].kept_events, 5U);
  EXPECT_EQ(area.accounts[0].kept_ns, 70);
  EXPECT_EQ(area.accounts[0].events, 8U);
  for (const AreaEvent& e : area.events) {
    // a's wait was not kept: nothing stands above them but b's own wait.
    EXPECT_TRUE(e.parent == UINT32_MAX || e.kind == SegmentKind::kHardware);
  }
  EXPECT_EQ(Of({.without = {"db!*"}}).accounts[0].kept_ns, 30);
}

TEST_F(TwoThreads, ANanosecondUnderTwoKeptWaitsIsKeptOnce) {
  const Area area = Of({.with = {"[kernel]!*"}});
  EXPECT_EQ(area.accounts[0].kept_ns, 70);
  EXPECT_EQ(area.accounts[0].kept_events, 3U);
}

TEST_F(TwoThreads, ClassesKeepOnlyTheirWaits) {
  const Area disk = Of({.classes = {WaitClass::kDisk}});
  ASSERT_EQ(disk.events.size(), 1U);
  EXPECT_EQ(disk.events[0].cost_ns, 40);
  EXPECT_EQ(disk.accounts[0].kept_ns, 40);
  EXPECT_EQ(Of({.classes = {WaitClass::kNet}}).events.size(), 0U);
}

TEST_F(TwoThreads, WhatIsOverTheBoundIsCountedAsDropped) {
  instances.push_back(instances[0]);
  const Area area = Of({.max_events = 10});
  EXPECT_EQ(area.events.size(), 10U);
  EXPECT_EQ(area.accounts[0].dropped_events, 0U);
  EXPECT_EQ(area.accounts[1].kept_events, 2U);
  EXPECT_EQ(area.accounts[1].dropped_events, 6U);
  EXPECT_EQ(area.accounts[1].running_ns + area.accounts[1].ready_ns + area.accounts[1].hardware_ns,
            100);
}

TEST_F(TwoThreads, AccountsAddUp) {
  instances.push_back(instances[0]);
  const Area area = Of({});
  AreaAccount sum;
  for (const AreaAccount& a : area.accounts) sum.Add(a);
  EXPECT_EQ(sum.total_ns, 200);
  EXPECT_EQ(sum.hardware_ns, 80);
  EXPECT_EQ(sum.events, 16U);
  EXPECT_EQ(area.events[8].parent, UINT32_MAX);
  EXPECT_EQ(area.events[11].parent, 9U);
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
