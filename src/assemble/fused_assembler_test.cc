// SPDX-License-Identifier: Apache-2.0
#include "assemble/fused_assembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "trace/conservation.h"

namespace culprit::assemble::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

class MemoryTarget final : public EventTarget {
 public:
  Status Add(const Event& event) override {
    trace.events.push_back(event);
    return {};
  }
  void AddInstance(const trace::Instance& instance) override {
    trace.instances.push_back(instance);
  }
  trace::Dictionary& dictionary() override { return trace.dictionary; }
  trace::Metadata& metadata() override { return trace.metadata; }

  std::vector<Event> Of(EventKind kind) const {
    std::vector<Event> events;
    std::copy_if(trace.events.begin(), trace.events.end(), std::back_inserter(events),
                 [&](const Event& event) { return event.kind == kind; });
    return events;
  }
  int64_t TimeOf(EventKind kind) const {
    int64_t total_ns = 0;
    for (const Event& event : Of(kind)) total_ns += event.dur_ns;
    return total_ns;
  }

  trace::Trace trace;
};

TEST(FusedAssembler, OneRecordBecomesRunningWaitUnwaitAndReady) {
  MemoryTarget target;
  FusedAssembler a(target, 1000);
  ASSERT_TRUE(a.OffCpu({.tid = 7,
                        .out_ns = 1500,
                        .in_ns = 3000,
                        .in_cpu = 1,
                        .out_cpu = 0,
                        .wake = WakeFact{.time_ns = 2500, .waker_tid = 9, .cpu = 0}})
                  .ok());
  ASSERT_TRUE(a.Finish(4000).ok());
  const auto runs = target.Of(EventKind::kRunning);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].time_ns, 1000);
  EXPECT_EQ(runs[0].dur_ns, 500);
  EXPECT_EQ(runs[0].cpu, 0);
  EXPECT_EQ(runs[1].time_ns, 3000);
  EXPECT_EQ(runs[1].dur_ns, 1000);
  EXPECT_EQ(runs[1].cpu, 1);
  const auto waits = target.Of(EventKind::kWait);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].dur_ns, 1000);
  const auto unwaits = target.Of(EventKind::kUnwait);
  ASSERT_EQ(unwaits.size(), 1u);
  EXPECT_EQ(unwaits[0].time_ns, waits[0].end_ns());
  EXPECT_EQ(unwaits[0].thread, waits[0].peer);
  EXPECT_EQ(unwaits[0].peer, waits[0].thread);
  EXPECT_EQ(target.TimeOf(EventKind::kReady), 500);
  EXPECT_TRUE(trace::CheckConservation(target.trace).ok());
}

TEST(FusedAssembler, APreemptedThreadDidNotWait) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  ASSERT_TRUE(a.OffCpu({.tid = 7, .out_ns = 10, .in_ns = 30, .runnable = true}).ok());
  ASSERT_TRUE(a.Finish(50).ok());
  EXPECT_TRUE(target.Of(EventKind::kWait).empty());
  const auto ready = target.Of(EventKind::kReady);
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_EQ(ready[0].flags, trace::kPreempted);
}

TEST(FusedAssembler, AWakingBeforeTheSwitchOutMakesAWaitOfNoLength) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  ASSERT_TRUE(
      a.OffCpu(
           {.tid = 7, .out_ns = 100, .in_ns = 130, .wake = WakeFact{.time_ns = 90, .waker_tid = 9}})
          .ok());
  ASSERT_TRUE(a.Finish(200).ok());
  ASSERT_EQ(target.Of(EventKind::kWait).size(), 1u);
  EXPECT_EQ(target.Of(EventKind::kWait)[0].dur_ns, 0);
  EXPECT_EQ(target.TimeOf(EventKind::kReady), 30);
}

TEST(FusedAssembler, InterruptsAndTheIdleTaskAreDevices) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  const auto wait = [&](int64_t out_ns, const WakeFact& wake) {
    ASSERT_TRUE(a.OffCpu({.tid = 7, .out_ns = out_ns, .in_ns = out_ns + 10, .wake = wake}).ok());
  };
  wait(100, {.time_ns = 105, .waker_tid = 9, .context = WakeContext::kInterrupt});
  wait(200, {.time_ns = 205, .waker_tid = 0});
  wait(300,
       {.time_ns = 305, .waker_tid = 9, .context = WakeContext::kInterrupt, .device = "timer"});
  ASSERT_TRUE(a.Finish(400).ok());
  const auto waits = target.Of(EventKind::kWait);
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(target.trace.dictionary.ThreadLabel(waits[0].peer), "[interrupt]");
  EXPECT_EQ(waits[1].peer, waits[0].peer);
  EXPECT_EQ(target.trace.dictionary.ThreadLabel(waits[2].peer), "[timer]");
}

TEST(FusedAssembler, WhatIsLeftOutKeepsItsSums) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  const trace::StackId stack =
      target.dictionary().InternStack({}, target.dictionary().InternFrame("m", "f"));
  ASSERT_TRUE(a.Sample(150, 0, 7, stack).ok());
  ASSERT_TRUE(
      a.LeftOut(
           {.tid = 7, .end_ns = 1000, .run_ns = 300, .wait_ns = 600, .ready_ns = 100, .count = 5})
          .ok());
  ASSERT_TRUE(a.OffCpu({.tid = 7, .out_ns = 1000, .in_ns = 2000}).ok());
  ASSERT_TRUE(a.Finish(2500).ok());
  EXPECT_EQ(target.TimeOf(EventKind::kRunning), 300 + 500);
  EXPECT_EQ(target.TimeOf(EventKind::kWait), 600 + 1000);
  EXPECT_EQ(target.TimeOf(EventKind::kReady), 100);
  EXPECT_EQ(target.Of(EventKind::kRunning)[0].stack, stack);
  EXPECT_EQ(target.Of(EventKind::kRunning)[0].cpu, kNoCpu);
  EXPECT_TRUE(trace::CheckConservation(target.trace).ok());
  EXPECT_EQ(a.diagnostics().total(), 5u);
}

TEST(FusedAssembler, WhatIsLeftOutHasTheStackOfOneOfThem) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  trace::Dictionary& dictionary = target.dictionary();
  const trace::StackId stack = dictionary.InternStack({}, dictionary.InternFrame("m", "f"));
  ASSERT_TRUE(a.LeftOut({.tid = 7, .end_ns = 1000, .run_ns = 1000}).ok());
  ASSERT_TRUE(a.LeftOut({.tid = 7, .end_ns = 2000, .wait_ns = 1000, .count = 9, .waits = 8}).ok());
  ASSERT_TRUE(a.LeftOut({.tid = 7,
                         .end_ns = 3000,
                         .wait_ns = 900,
                         .ready_ns = 100,
                         .count = 5,
                         .waits = 4,
                         .stack = stack})
                  .ok());
  ASSERT_TRUE(a.Finish(3000).ok());
  const auto waits = target.Of(EventKind::kWait);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(dictionary.StackText(waits[0].stack), kLeftOutFunction);
  EXPECT_EQ(waits[1].stack, stack);
  EXPECT_EQ(waits[0].arg0, 8);
  EXPECT_EQ(waits[1].arg0, 4);
  EXPECT_EQ(target.TimeOf(EventKind::kReady), 100);
}

TEST(FusedAssembler, AMissingSwitchOutWasWhenAnotherThreadGotTheCpu) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  ASSERT_TRUE(
      a.OffCpu({.tid = 7, .out_ns = 0, .in_ns = 100, .in_cpu = 0, .since_begin = true}).ok());
  ASSERT_TRUE(
      a.OffCpu({.tid = 8, .out_ns = 0, .in_ns = 300, .in_cpu = 0, .since_begin = true}).ok());
  ASSERT_TRUE(
      a.OffCpu({.tid = 7, .out_ns = 100, .in_ns = 900, .in_cpu = 1, .out_lost = true}).ok());
  ASSERT_TRUE(a.Finish(1000).ok());
  EXPECT_TRUE(trace::CheckConservation(target.trace).ok())
      << trace::CheckConservation(target.trace).first_problem;
  EXPECT_EQ(target.TimeOf(EventKind::kRunning), 200 + 700 + 100);
}

TEST(FusedAssembler, AWakerThatEndedMeanwhileIsNotTheNextThreadOfThatId) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  a.Name(5, 5, "first");
  ASSERT_TRUE(a.OffCpu({.tid = 5, .out_ns = 0, .in_ns = 10, .since_begin = true}).ok());
  ASSERT_TRUE(a.Gone(100, 5).ok());
  a.Fork(200, 1, 5, 5);
  a.Name(5, 5, "second");
  ASSERT_TRUE(
      a.OffCpu(
           {.tid = 7, .out_ns = 20, .in_ns = 300, .wake = WakeFact{.time_ns = 50, .waker_tid = 5}})
          .ok());
  ASSERT_TRUE(a.OffCpu({.tid = 7,
                        .out_ns = 310,
                        .in_ns = 400,
                        .wake = WakeFact{.time_ns = 350, .waker_tid = 5}})
                  .ok());
  ASSERT_TRUE(a.Finish(500).ok());
  const auto unwaits = target.Of(EventKind::kUnwait);
  const auto name = [&](trace::ThreadId id) {
    return std::string(
        target.trace.dictionary.Text(target.trace.dictionary.threads()[id.value].name));
  };
  ASSERT_EQ(unwaits.size(), 2u);
  EXPECT_EQ(name(unwaits[0].thread), "first");
  EXPECT_EQ(name(unwaits[1].thread), "second");
}

TEST(FusedAssembler, WaitsThatAreOpenAtTheEndReachToIt) {
  MemoryTarget target;
  FusedAssembler a(target, 1000);
  ASSERT_TRUE(a.Open({.tid = 7, .out_ns = 1000, .in_ns = 9000, .since_begin = true}).ok());
  ASSERT_TRUE(a.OpenRunning(8, 1000, 0).ok());
  ASSERT_TRUE(a.Finish(9000).ok());
  const auto waits = target.Of(EventKind::kWait);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].dur_ns, 8000);
  EXPECT_EQ(waits[0].flags, trace::kWakerUnknown);
  EXPECT_EQ(target.TimeOf(EventKind::kRunning), 8000);
}

// A scheduler of our own, whose every thread's times are known, told as the
// kernel programs would, with records left out at random.
TEST(FusedAssembler, TimesOfASimulatedSchedulerComeOutExactly) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&](int64_t n) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    };
    MemoryTarget target;
    FusedAssembler a(target, 0);
    std::map<int64_t, std::map<EventKind, int64_t>> truth;
    const int64_t end_ns = 1'000'000;
    for (int64_t tid = 1; tid <= 3; ++tid) {
      // One CPU a thread: who shares CPUs does not matter for the sums.
      int64_t now_ns = 0;
      LeftOutFact left{.tid = tid};
      int64_t in_ns = 0;
      while (true) {
        const int64_t run_ns = upto(3000);
        const int64_t wait_ns = upto(3000);
        const int64_t ready_ns = upto(300);
        if (now_ns + run_ns + wait_ns + ready_ns >= end_ns) break;
        const int64_t out_ns = now_ns + run_ns;
        const int64_t next_ns = out_ns + wait_ns + ready_ns;
        truth[tid][EventKind::kRunning] += run_ns;
        truth[tid][EventKind::kWait] += wait_ns;
        truth[tid][EventKind::kReady] += ready_ns;
        for (int64_t t = now_ns; t < out_ns && upto(3) == 0; t += 100) {
          ASSERT_TRUE(a.Sample(t, static_cast<uint16_t>(tid), tid, {}).ok());
        }
        left.run_ns += run_ns;
        if (upto(2) == 0) {
          left.wait_ns += wait_ns;
          left.ready_ns += ready_ns;
          ++left.count;
        } else {
          if (left.count > 0) {
            left.end_ns = out_ns;
            ASSERT_TRUE(a.LeftOut(left).ok());
          }
          left = {.tid = tid};
          ASSERT_TRUE(a.OffCpu({.tid = tid,
                                .out_ns = out_ns,
                                .in_ns = next_ns,
                                .in_cpu = static_cast<uint16_t>(tid),
                                .wake = WakeFact{.time_ns = out_ns + wait_ns, .waker_tid = 99}})
                          .ok());
          in_ns = next_ns;
        }
        now_ns = next_ns;
      }
      if (left.count > 0) {
        left.end_ns = now_ns;
        ASSERT_TRUE(a.LeftOut(left).ok());
      }
      truth[tid][EventKind::kRunning] += end_ns - now_ns;
      ASSERT_LE(in_ns, end_ns);
    }
    ASSERT_TRUE(a.Finish(end_ns).ok());
    const auto report = trace::CheckConservation(target.trace);
    EXPECT_TRUE(report.ok()) << seed << ": " << report.first_problem;
    std::map<int64_t, std::map<EventKind, int64_t>> found;
    for (const Event& event : target.trace.events) {
      if (!trace::IsTile(event.kind)) continue;
      found[target.trace.dictionary.threads()[event.thread.value].tid][event.kind] += event.dur_ns;
    }
    EXPECT_EQ(found, truth) << seed;
  }
}

// A thread whose switch-out the kernel hides, and whose record waited for its stack
// while others got that CPU.
TEST(FusedAssembler, AHiddenSwitchOutIsWhenTheNextThreadGotTheCpuHoweverLateTheRecord) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  for (int64_t tid = 2; tid < 6; ++tid) {
    ASSERT_TRUE(
        a.OffCpu({.tid = tid, .out_ns = 0, .in_ns = tid * 100, .in_cpu = 0, .since_begin = true})
            .ok());
    ASSERT_TRUE(a.OffCpu({.tid = tid, .out_ns = tid * 100 + 10, .in_ns = 900 + tid}).ok());
  }
  ASSERT_TRUE(
      a.OffCpu({.tid = 1, .out_ns = 0, .in_ns = 150, .in_cpu = 0, .since_begin = true}).ok());
  ASSERT_TRUE(
      a.OffCpu({.tid = 1, .out_ns = 150, .in_ns = 800, .in_cpu = 1, .out_lost = true}).ok());
  ASSERT_TRUE(a.Finish(1000).ok());
  const auto report = trace::CheckConservation(target.trace);
  EXPECT_TRUE(report.ok()) << report.first_problem;
  for (const trace::Event& event : target.trace.events) {
    const bool of_first = target.trace.dictionary.threads()[event.thread.value].tid == 1;
    if (of_first && event.kind == trace::EventKind::kRunning && event.time_ns == 150) {
      EXPECT_EQ(event.end_ns(), 200);
    }
  }
}

// Somebody born while nobody looked: sampled first, told of as sums later.
TEST(FusedAssembler, ASampleDoesNotSaySinceWhenAThreadRuns) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  ASSERT_TRUE(a.Sample(700, 0, 1, {}).ok());
  ASSERT_TRUE(a.LeftOut({.tid = 1, .end_ns = 800, .run_ns = 150, .wait_ns = 50, .count = 2}).ok());
  ASSERT_TRUE(a.Gone(900, 1).ok());
  ASSERT_TRUE(a.Finish(1000).ok());
  int64_t first_ns = 1000;
  int64_t running_ns = 0;
  for (const trace::Event& event : target.trace.events) {
    first_ns = std::min(first_ns, event.time_ns);
    if (event.kind == trace::EventKind::kRunning) running_ns += event.dur_ns;
  }
  EXPECT_EQ(first_ns, 600);
  EXPECT_EQ(running_ns, 250);
}

// The record of a wait is made a moment after the thread got the CPU, and an interrupt can
// come in between.
TEST(FusedAssembler, ASampleAfterAWaitIsOfTheRunThatFollows) {
  MemoryTarget target;
  FusedAssembler a(target, 0);
  const trace::StackId before =
      target.dictionary().InternStack({}, target.dictionary().InternFrame("app", "before"));
  const trace::StackId after =
      target.dictionary().InternStack({}, target.dictionary().InternFrame("app", "after"));
  ASSERT_TRUE(a.Sample(150, 0, 1, before).ok());
  ASSERT_TRUE(a.Sample(510, 0, 1, after).ok());
  ASSERT_TRUE(a.LeftOut({.tid = 1, .end_ns = 200, .run_ns = 150, .wait_ns = 50, .count = 2}).ok());
  ASSERT_TRUE(a.OffCpu({.tid = 1, .out_ns = 300, .in_ns = 500, .in_cpu = 0, .out_cpu = 0}).ok());
  ASSERT_TRUE(a.Finish(600).ok());
  std::map<uint32_t, int64_t> run_ns;
  for (const Event& event : target.Of(EventKind::kRunning)) {
    run_ns[event.stack.value] += event.dur_ns;
  }
  EXPECT_EQ(run_ns[before.value], 150);
  EXPECT_EQ(run_ns[after.value], 100);
  EXPECT_TRUE(trace::CheckConservation(target.trace).ok());
}

TEST(FusedAssembler, TilesAbutWhateverComes) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&](int64_t n) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    };
    MemoryTarget target;
    FusedAssembler a(target, 100);
    for (int i = 0; i < 60; ++i) {
      const int64_t tid = upto(4);
      const int64_t out_ns = upto(1000);
      switch (upto(8)) {
        case 0:
          ASSERT_TRUE(a.Sample(out_ns, 0, tid, {}).ok());
          break;
        case 1:
          ASSERT_TRUE(a.LeftOut({.tid = tid,
                                 .end_ns = out_ns,
                                 .run_ns = upto(100),
                                 .wait_ns = upto(100),
                                 .ready_ns = upto(100),
                                 .count = 1})
                          .ok());
          break;
        case 2:
          ASSERT_TRUE(a.Gone(out_ns, tid).ok());
          break;
        case 3:
          a.Fork(out_ns, upto(4), tid, tid);
          break;
        case 4:
          a.Exit(out_ns, tid);
          break;
        default:
          ASSERT_TRUE(a.OffCpu({.tid = tid,
                                .out_ns = out_ns,
                                .in_ns = upto(1000),
                                .runnable = upto(3) == 0,
                                .is_new = upto(5) == 0,
                                .since_begin = upto(5) == 0,
                                .out_lost = upto(5) == 0,
                                .wake = WakeFact{.time_ns = upto(1000), .waker_tid = upto(5)},
                                .holder_tid = upto(5)})
                          .ok());
      }
    }
    ASSERT_TRUE(a.Finish(1000).ok());
    const auto report = trace::CheckConservation(target.trace);
    EXPECT_EQ(report.gaps, 0u) << seed << ": " << report.first_problem;
    EXPECT_EQ(report.overlaps, 0u) << seed << ": " << report.first_problem;
    EXPECT_EQ(report.out_of_range, 0u) << seed << ": " << report.first_problem;
  }
}

}  // namespace
}  // namespace culprit::assemble::TEST_FILE
