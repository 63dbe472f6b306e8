// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unit_tracker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "guard/runtime/guard_hit.h"
#include "guard/runtime/hook.h"
#include "guard/runtime/near_words.h"
#include "guard/runtime/sample_batch.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/tracked_thread.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_cut.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kHourNs = 3600'000 * kMs;

uint64_t Bits(std::initializer_list<uint32_t> bits) {
  uint64_t word = 0;
  for (const uint32_t bit : bits) word |= uint64_t{1} << bit;
  return word;
}

class UnitTracker : public TrackedThread {
 protected:
  // By contexts 0 and 1, and by 2 and 3.
  void AddQuickAndSlowType() {
    AddType(wire::UnitKind::kIteration, kMs, Bits({0, 1}));
    AddType(wire::UnitKind::kIteration, kHourNs, Bits({2, 3}));
    MakePlan();
  }
};

TEST_F(UnitTracker, ATailIsJudgedPerReadyEventAndReportedWhole) {
  AddType(wire::UnitKind::kTail, 2 * kMs, 0);
  MakePlan();
  const uint64_t before_ns = MonotonicNs();
  Begin(4);
  usleep(20'000);
  End();
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 1u);
  const wire::Violation& tail = Violation(0);
  EXPECT_EQ(tail.unit_kind, static_cast<uint32_t>(wire::UnitKind::kTail));
  EXPECT_GE(tail.wall_ns, 20 * kMs);
  EXPECT_EQ(tail.threshold_ns, 8 * kMs);
  EXPECT_GE(tail.begin_ns + 10'000, before_ns);
  EXPECT_LE(tail.begin_ns + tail.wall_ns, tail.told_ns);
  // The same for so many events that it is within the threshold.
  Begin(4'000'000);
  usleep(20'000);
  End();
  EXPECT_EQ(Records(wire::RecordKind::kViolation).size(), 1u);
}

TEST_F(UnitTracker, AUnitPastItsDeadlineIsToldAtOnceAndOnceMoreAtItsEnd) {
  AddType(wire::UnitKind::kIteration, kMs, Bits({1, 2}));
  AddType(wire::UnitKind::kIteration, kMs / 2, Bits({1}));
  MakePlan();
  Begin(1);
  slot_.contexts[0] = Bits({1});
  usleep(5'000);
  HitGuard();
  HitGuard();
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 1u);
  slot_.contexts[0] = Bits({1, 2});
  usleep(20'000);
  End();
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 2u);
  const wire::Violation& first = Violation(0);
  const wire::Violation& end = Violation(1);
  EXPECT_EQ(first.flags, wire::Violation::kStillRunning);
  EXPECT_GT(first.frames, 0u);
  EXPECT_EQ(end.flags, wire::Violation::kEndOfRunning | wire::Violation::kStackFromSite);
  EXPECT_EQ(end.begin_ns, first.begin_ns);
  EXPECT_EQ(end.type, 0u) << "by all that it did";
  EXPECT_GE(end.wall_ns, 25 * kMs);
  EXPECT_LT(first.wall_ns, end.wall_ns);
  EXPECT_EQ(header_.violations.load(), 1u);
}

TEST_F(UnitTracker, AUnitThatKeepsItsThresholdInTheEndIsNoViolation) {
  AddType(wire::UnitKind::kIteration, kMs, Bits({1}));
  AddType(wire::UnitKind::kIteration, kHourNs, Bits({2, 3, 4}));
  MakePlan();
  Begin(1);
  slot_.contexts[0] = Bits({1});
  usleep(5'000);
  HitGuard();
  slot_.contexts[0] = Bits({1, 2, 3, 4});
  End();
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 2u) << "culprit must take it back";
  EXPECT_EQ(Violation(1).flags, wire::Violation::kEndOfRunning | wire::Violation::kStackFromSite);
  EXPECT_EQ(Violation(1).type, 1u);
  EXPECT_EQ(Violation(1).threshold_ns, kHourNs);
  EXPECT_EQ(header_.violations.load(), 0u);
}

TEST_F(UnitTracker, WhatTheRuntimeTookDoesNotMakeItAskAtEveryHit) {
  AddType(wire::UnitKind::kIteration, 100'000 * kMs, 0);
  MakePlan();
  Begin(1);
  const uint64_t long_ticks = TicksOfNs(1000'000 * kMs);
  slot_.begin_ticks -= long_ticks;
  state_->own_ticks = long_ticks;
  HitGuard();
  EXPECT_GT(slot_.deadline_ticks, ReadTicks());
  EXPECT_GT(state_->own_ticks, long_ticks) << "what the question took is not the unit's";
  EXPECT_TRUE(Records(wire::RecordKind::kViolation).empty());
}

// Hits of guards, as trampolines make them.
class LateUnit : public UnitTracker {
 protected:
  LateUnit() {
    AddType(wire::UnitKind::kIteration, kMs, 0);
    AddType(wire::UnitKind::kIteration, kMs, Bits({1}));
    MakePlan();
    plan_.excessive_hits = UINT64_MAX;
    g_near.plan.store(&plan_);
    before_ = std::exchange(t_words, {state_.get(), nullptr});
    state_->owner = &t_words;
    Begin(1);
    usleep(5'000);
  }
  ~LateUnit() override {
    t_words = before_;
    g_near.plan.store(nullptr);
  }
  size_t ReportedAfterHits(uint64_t sp) {
    for (uint32_t i = 0; i < 2 * kHitsToACall; ++i) GuardHit(t_words.unit, sp, 2, &guard_);
    return Records(wire::RecordKind::kViolation).size();
  }

  ContextRule rule_ = {.depth = 64, .flags = 0, .bit = 1, .return_address = 0};
  GuardRecord guard_ = {.rules = &rule_, .count = 1};
  ThreadWords before_;
};

TEST_F(LateUnit, IsToldOfByAHitOfAContext) {
  EXPECT_EQ(ReportedAfterHits(slot_.base_sp - 64), 1u);
  EXPECT_EQ(slot_.contexts[0], Bits({1}));
}

TEST_F(LateUnit, IsToldOfByAHitOfNoContext) {
  EXPECT_EQ(ReportedAfterHits(slot_.base_sp - 128), 1u);
  EXPECT_EQ(Violation(0).flags & wire::Violation::kStillRunning, wire::Violation::kStillRunning);
  EXPECT_EQ(slot_.contexts[0], 0u);
}

TEST_F(LateUnit, IsNotToldOfByAHitOutsideOfItsLoop) {
  EXPECT_EQ(ReportedAfterHits(slot_.base_sp + 64), 0u);
}

TEST_F(UnitTracker, AUnitThatWasToldOfStaysOverdue) {
  AddType(wire::UnitKind::kIteration, kMs, 0);
  MakePlan();
  Begin(1);
  usleep(5'000);
  HitGuard();
  EXPECT_EQ(slot_.deadline_ticks, UINT64_MAX) << "no guard asks again";
  EXPECT_LT(slot_.overdue_ticks, ReadTicks()) << "culprit goes on to look at it";
}

TEST_F(UnitTracker, ReadsThreadTimesByWhatUnitsTook) {
  AddType(wire::UnitKind::kIteration, kHourNs, 0);
  MakePlan();
  Begin(1);
  const uint64_t first = state_->at_begin.read_ticks;
  EXPECT_NE(first, 0u);
  state_->at_begin.run_delay_ns = 1;  // what a reading would replace
  state_->at_begin.cpu_ns = 1;
  for (int i = 0; i < 10; ++i) {
    End();
    usleep(2000);
    state_->unread_ticks = 0;
    Begin(1);
  }
  EXPECT_EQ(state_->at_begin.cpu_ns, 1u) << "a thread that mostly waits reads nothing";
  EXPECT_EQ(slot_.read_ns, state_->at_begin.read_ns);
  End();
  state_->unread_ticks = state_->read_after_ticks;
  Begin(1);
  EXPECT_NE(state_->at_begin.cpu_ns, 1u);
  EXPECT_EQ(state_->unread_ticks, 0u);
  End();
}

TEST_F(UnitTracker, ReadsThreadTimesMoreSeldomWhileNothingWaitsForACpu) {
  AddType(wire::UnitKind::kIteration, kHourNs, 0);
  MakePlan();
  Begin(1);
  const uint64_t first = state_->read_after_ticks;
  // Units that took a hundred milliseconds, of which they were so long without a CPU.
  const auto read = [&](uint64_t delay_ns) {
    End();
    ThreadTimes now;
    ReadThreadTimes(*state_, now);
    state_->at_begin.run_delay_ns = now.run_delay_ns - delay_ns;  // by 2^64, where it is less
    state_->at_begin.cpu_ns = now.cpu_ns - 100'000'000;
    state_->unread_ticks = TicksOfNs(100'000'000);
    Begin(1);
    return (state_->read_after_ticks + first / 2) / first;  // so many times as long
  };
  EXPECT_EQ(read(0), 2u);
  EXPECT_EQ(read(1'000'000), 4u);
  EXPECT_EQ(read(0), 4u);
  EXPECT_EQ(read(20'000'000), 1u);
  EXPECT_EQ(read(0), 2u);
  End();
}

TEST_F(UnitTracker, ReadsThreadTimesMoreSeldomWhereUnitsMostlyWait) {
  AddType(wire::UnitKind::kIteration, kHourNs, 0);
  MakePlan();
  Begin(1);
  const uint64_t busy = state_->read_after_ticks;
  usleep(20'000);
  End();
  Begin(1);
  EXPECT_GT(state_->read_after_ticks, busy);
  EXPECT_LE(state_->read_after_ticks, 17 * busy);
  End();
}

TEST_F(UnitTracker, TheTimesReadAtTheEndOfASlowUnitAreWhereTheNextBegins) {
  AddType(wire::UnitKind::kIteration, kMs, 0);
  MakePlan();
  Begin(1);
  const uint64_t first = state_->at_begin.read_ticks;
  usleep(5'000);
  End();
  const uint64_t at_end = state_->at_begin.read_ticks;
  EXPECT_GT(at_end, first);
  Begin(1);
  EXPECT_EQ(state_->at_begin.read_ticks, at_end);
  EXPECT_EQ(state_->at_iteration_begin.read_ticks, at_end);
  End();
}

TEST_F(UnitTracker, OnlyWhatIsLongForItsOwnTypeIsLookedAt) {
  AddQuickAndSlowType();
  Begin(1);
  slot_.contexts[0] = Bits({2, 3});
  slot_.begin_ticks -= TicksOfNs(3 * kMs / 2);  // long for the other type
  End();
  EXPECT_EQ(state_->at_end.read_ticks, 0u);
  Begin(1);
  slot_.contexts[0] = Bits({0, 1});
  usleep(5'000);
  End();
  EXPECT_NE(state_->at_end.read_ticks, 0u);
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 1u);
  EXPECT_EQ(Violation(0).type, 0u);
}

// What it waited for a CPU would be taken off the next one.
TEST_F(UnitTracker, AfterALongUnitTheTimesAreReadWhateverItsType) {
  AddQuickAndSlowType();
  Begin(1);
  slot_.contexts[0] = Bits({2, 3});
  usleep(5'000);
  End();
  EXPECT_NE(state_->at_end.read_ticks, 0u);
  EXPECT_EQ(state_->at_begin.read_ticks, state_->at_end.read_ticks);
  EXPECT_TRUE(Records(wire::RecordKind::kViolation).empty());
}

TEST_F(UnitTracker, HitsThatAreOnlyMarkedAreCountedByTheSamples) {
  constexpr uint32_t kEvery = 10;
  AddType(wire::UnitKind::kIteration, kHourNs, Bits({1, 2, 3}));
  MakePlan(kEvery);
  plan_.uncounted[0] = Bits({1, 2});
  for (uint32_t i = 0; i < 3 * kEvery; ++i) {
    Begin(1);
    slot_.contexts[0] = Bits({1, 2, 3});
    slot_.hits += 1;  // the third is counted when it is hit
    End();
  }
  EXPECT_EQ(slot_.hits, 3 * kEvery * 3);
}

TEST_F(UnitTracker, QuietPartsAreCutAndCountedWithoutALook) {
  AddType(wire::UnitKind::kHandler, kHourNs, Bits({1}));
  AddType(wire::UnitKind::kTail, kHourNs, 0);
  MakePlan();
  constexpr wire::UnitKind kHandler = wire::UnitKind::kHandler;
  constexpr uint32_t kBegins = wire::PlanContext::kBoundary, kEnds = wire::PlanContext::kTail;
  Begin(2);
  EXPECT_EQ(slot_.kind, static_cast<uint32_t>(wire::UnitKind::kTail));
  slot_.contexts[0] = Bits({5});
  EXPECT_TRUE(CutQuietly(*state_, kBegins, kHandler, ReadTicks()));
  EXPECT_EQ(slot_.kind, static_cast<uint32_t>(wire::UnitKind::kHandler));
  EXPECT_EQ(slot_.contexts[0], 0u);
  EXPECT_EQ(slot_.units, 0u) << "the tail goes on later";
  EXPECT_TRUE(CutQuietly(*state_, kBegins, kHandler, ReadTicks()));
  EXPECT_EQ(slot_.done, 2u);
  EXPECT_TRUE(CutQuietly(*state_, kEnds, kHandler, ReadTicks()));
  EXPECT_EQ(slot_.kind, static_cast<uint32_t>(wire::UnitKind::kTail));
  EXPECT_EQ(slot_.contexts[0], Bits({5})) << "the tail's own";
  End();
  EXPECT_EQ(slot_.units, 3u) << "two handlers and the tail";
  EXPECT_EQ(slot_.begin_ticks, 0u);
  EXPECT_EQ(slot_.sequence.load() % 2, 0u);
  EXPECT_EQ(ring_.head.load(), 0u);
  Begin(1);
  const uint64_t units = slot_.units;
  EXPECT_FALSE(CutQuietly(*state_, kBegins, kHandler, state_->quiet_until_ticks));
  EXPECT_EQ(slot_.done, 0u) << "the long way is due, and nothing was changed";
  EXPECT_EQ(slot_.units, units);
  End();
}

// A loop that looks for work, waits if there is none, and may find some at once.
class TurningLoop : public UnitTracker {
 protected:
  void MakeTurningPlan(uint64_t threshold_ns) {
    AddType(wire::UnitKind::kIteration, threshold_ns, Bits({1}));
    limits_.has_turns = true;
    MakePlan();
  }
  // The hit of the guard where it looks for work.
  void Turn() {
    if (!IsTurn(state_->limits, wire::PlanContext::kTurn)) return;
    if (!TurnQuietly(*state_, ReadTicks())) {
      TurnLoop(*state_, {.entry_sp = kSp, .return_address = 2, .entry = 1});
    }
  }
};

TEST_F(TurningLoop, UnitsEndAtTurnsAndWhatLeadsToAWaitIsNone) {
  MakeTurningPlan(kHourNs);
  Begin(1);
  slot_.contexts[0] = Bits({1, 3});
  Turn();
  EXPECT_EQ(slot_.units, 1u);
  EXPECT_EQ(slot_.contexts[0], 0u) << "another unit";
  EXPECT_NE(slot_.begin_ticks, 0u);
  Turn();
  EXPECT_EQ(slot_.units, 2u);
  End();
  EXPECT_EQ(slot_.units, 2u) << "there was no work";
  EXPECT_EQ(slot_.begin_ticks, 0u);
  // The wait returned, but somebody else had the work: no turn, so as in any loop.
  Begin(1);
  End();
  EXPECT_EQ(slot_.units, 3u);
  EXPECT_EQ(ring_.head.load(), 0u);
}

TEST_F(TurningLoop, ASlowUnitIsReportedAtItsTurn) {
  MakeTurningPlan(kMs);
  Begin(1);
  Turn();
  slot_.contexts[0] = Bits({1});
  usleep(5'000);
  Turn();
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 1u);
  EXPECT_GE(Violation(0).wall_ns, 4 * kMs);
  EXPECT_EQ(Violation(0).type, 0u);
  slot_.contexts[0] = Bits({1});
  Turn();
  End();
  EXPECT_EQ(Records(wire::RecordKind::kViolation).size(), 1u) << "the next one was quick";
  EXPECT_EQ(slot_.units, 3u);
}

TEST_F(TurningLoop, ALongSearchIsNoSlowUnit) {
  MakeTurningPlan(kMs);
  Begin(1);
  Turn();
  usleep(5'000);
  End();
  EXPECT_TRUE(Records(wire::RecordKind::kViolation).empty());
  EXPECT_EQ(slot_.units, 1u);
  // Told of while it ran, it is taken back.
  Begin(1);
  Turn();
  slot_.contexts[0] = Bits({1});
  usleep(5'000);
  HitGuard();
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 1u);
  End();
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 2u);
  EXPECT_NE(Violation(1).flags & wire::Violation::kEndOfRunning, 0u);
  EXPECT_LT(Violation(1).wall_ns, Violation(1).threshold_ns);
  EXPECT_EQ(Violation(1).begin_ns, Violation(0).begin_ns);
  EXPECT_EQ(header_.violations.load(), 0u);
}

TEST_F(TurningLoop, TurnsOfAnotherLoopAreNone) {
  MakeTurningPlan(kHourNs);
  limits_.has_turns = false;
  Begin(1);
  Turn();
  EXPECT_EQ(slot_.units, 0u);
  EXPECT_EQ(slot_.done, 0u);
  End();
  EXPECT_EQ(slot_.units, 1u);
}

TEST_F(UnitTracker, OneUnitInSoManyIsASample) {
  AddType(wire::UnitKind::kIteration, kHourNs, 0);
  MakePlan(5);
  for (int i = 0; i < 50; ++i) {
    Begin(1);
    End();
  }
  FlushSamples(*state_);
  uint32_t samples = 0;
  for (const wire::Cell* cell : Records(wire::RecordKind::kSamples)) samples += cell->count;
  EXPECT_EQ(samples, 10u);
  EXPECT_EQ(slot_.units, 50u);
}

TEST_F(UnitTracker, AnIterationThatIsAUnitIsHeldAgainstItsTypeOnly) {
  AddType(wire::UnitKind::kIteration, kHourNs, 0);
  MakePlan();
  plan_.iteration_ticks = TicksOfNs(kMs);  // of another loop, which is cut
  Begin(1);
  usleep(5'000);
  End();
  EXPECT_TRUE(Records(wire::RecordKind::kViolation).empty());
}

TEST_F(UnitTracker, ASampleIsGivenBeforeTheThreadWaitsAndHasTheUnitsBegin) {
  AddType(wire::UnitKind::kIteration, kMs, 0);
  MakePlan(1);
  Begin(1);
  usleep(5'000);
  End();
  ASSERT_EQ(Records(wire::RecordKind::kSamples).size(), 1u);
  ASSERT_EQ(Records(wire::RecordKind::kViolation).size(), 1u);
  const wire::Cell& samples = *Records(wire::RecordKind::kSamples)[0];
  ASSERT_EQ(samples.count, 1u);
  EXPECT_EQ(samples.samples[0].begin_ns, Violation(0).begin_ns);
  EXPECT_EQ(samples.samples[0].wall_ns, Violation(0).wall_ns);
}

TEST_F(UnitTracker, ABusyThreadFillsItsBatchOfSamples) {
  state_->samples_flushed_ticks = 1000;
  AddSample(*state_, {});
  FlushSamplesBeforeWait(*state_, 1000 + TicksOfNs(10 * kMs));
  EXPECT_TRUE(Records(wire::RecordKind::kSamples).empty());
  FlushSamplesBeforeWait(*state_, 1000 + TicksOfNs(100 * kMs));
  EXPECT_EQ(Records(wire::RecordKind::kSamples).size(), 1u);
  for (uint32_t i = 0; i < kSamplesACell; ++i) AddSample(*state_, {});
  EXPECT_EQ(Records(wire::RecordKind::kSamples).size(), 2u);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
