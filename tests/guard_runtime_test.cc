// SPDX-License-Identifier: Apache-2.0
//
// The injected runtime from outside, in real processes: programs do what they did
// (programs/guard_habits.cc), whatever plan is in force; the training log says what the
// program did; slow units are reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "guard_hand_plan.h"

namespace culprit::guard::TEST_FILE {
namespace {

class GuardHabit : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string habit = GetParam();
    if (!kX86.empty() && (habit == "vfork" || habit == "cancel")) {
      GTEST_SKIP() << "the emulator starts other programs without itself, and cannot cancel";
    }
  }
};

TEST_P(GuardHabit, IsTheSameInTraining) {
  const ShellOutcome alone = RunHabit(GetParam());
  const SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  const ShellOutcome trained = RunHabit(GetParam(), session.path());
  EXPECT_EQ(trained.code, alone.code);
  EXPECT_EQ(trained.text, alone.text);
  ASSERT_FALSE(session.Processes().empty());
  for (const GuardedProcess& process : ProcessesOf(session)) {
    EXPECT_GT(process.Counters().patched, 1000u);
  }
}

TEST_P(GuardHabit, IsTheSameWithGuards) {
  const ShellOutcome alone = RunHabit(GetParam());
  const SessionFolder session = MakeSession(GuardPlan(SlowHabit(), 1'000).Bytes());
  const ShellOutcome guarded = RunHabit(GetParam(), session.path());
  EXPECT_EQ(guarded.code, alone.code);
  EXPECT_EQ(guarded.text, alone.text);
  const std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_FALSE(processes.empty());
  EXPECT_EQ(processes.front().Counters().patched, 1u);
  EXPECT_GT(processes.front().Counters().units, 0u);
}

TEST_P(GuardHabit, IsTheSameWhileCalibrating) {
  const ShellOutcome alone = RunHabit(GetParam());
  HandPlan plan = GuardPlan(SlowHabit(), 0);
  plan.header.mode = static_cast<uint32_t>(wire::Mode::kCalibrate);
  const SessionFolder session = MakeSession(plan.Bytes());
  const ShellOutcome guarded = RunHabit(GetParam(), session.path());
  EXPECT_EQ(guarded.code, alone.code);
  EXPECT_EQ(guarded.text, alone.text);
}

INSTANTIATE_TEST_SUITE_P(Habits, GuardHabit,
                         testing::Values("threads", "forks", "vfork", "signals", "exceptions",
                                         "longjmp", "recursion", "libraries", "seccomp", "errors",
                                         "closeall", "cancel"),
                         [](const auto& habit) { return std::string(habit.param); });

TEST(GuardTraining, LogsEveryEntryAndEveryWait) {
  const TrainedHabit& trained = SlowHabit();
  std::map<uint32_t, uint64_t> polls;
  uint64_t works = 0;
  uint64_t ready = 0;
  for (size_t i = 0; i < trained.records.size(); ++i) {
    const LogRecord& record = trained.records[i];
    if (record.kind == wire::LogKind::kEnter && record.a == trained.work_id) ++works;
    if (record.a != static_cast<uint32_t>(wire::WaitCall::kPoll)) continue;
    if (record.kind == wire::LogKind::kWaitEnter) ++polls[static_cast<uint32_t>(record.kind)];
    if (record.kind == wire::LogKind::kWaitExit) ready += record.b;
  }
  EXPECT_EQ(works, 220u);
  EXPECT_EQ(polls[static_cast<uint32_t>(wire::LogKind::kWaitEnter)], 200u);
  EXPECT_EQ(ready, 200u);
}

TEST(GuardTraining, EndsAtItsBoundAndTheProgramGoesOn) {
  HandPlan plan(wire::Mode::kTrain);
  plan.header.log_bytes = 64 << 10;
  const SessionFolder session = MakeSession(plan.Bytes());
  EXPECT_EQ(RunHabit("recursion", session.path()).text, RunHabit("recursion").text);
  EXPECT_LE(session.LogBytes(), 65u << 10);
}

TEST(GuardUnits, SlowOnesAreReportedWithTheirStacks) {
  const SessionFolder session = MakeSession(GuardPlan(SlowHabit(), 20'000'000).Bytes());
  EXPECT_EQ(RunHabit("slow", session.path()).code, 0);
  std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].Counters().units, 199u);  // the last ends at no wait
  EXPECT_TRUE(processes[0].Counters().ended);
  const std::vector<wire::Violation> violations = ViolationsOf(processes[0]);
  ASSERT_EQ(violations.size(), 3u);

  // Dawdle enters Work behind its delay: reported there, with what called it.
  EXPECT_EQ(violations[0].flags, wire::Violation::kStillRunning);
  EXPECT_EQ(violations[0].type, 0u);
  EXPECT_GE(violations[0].wall_ns, 40'000'000u);
  ASSERT_GE(violations[0].frames, 4u);
  // Where the program lies: all else follows from it.
  const uint64_t bias = violations[0].frame[0] - OffsetOf("Work");
  EXPECT_EQ(bias % 4096, 0u) << "it is not the entry of Work";
  const uint64_t dawdle = bias + OffsetOf("Dawdle");
  EXPECT_GT(violations[0].frame[1], dawdle);
  EXPECT_LT(violations[0].frame[1], dawdle + 200);

  EXPECT_EQ(violations[1].flags, wire::Violation::kEndOfRunning | wire::Violation::kStackFromSite);
  EXPECT_EQ(violations[1].begin_ns, violations[0].begin_ns);
  EXPECT_GE(violations[1].wall_ns, violations[0].wall_ns);
  EXPECT_GE(violations[1].frames, 3u);

  EXPECT_EQ(violations[2].flags, wire::Violation::kStackFromSite);
  EXPECT_GE(violations[2].wall_ns, 60'000'000u);
  EXPECT_LT(violations[2].cpu_ns, 30'000'000u);
  ASSERT_GE(violations[2].frames, 3u);
  const uint64_t serve = bias + OffsetOf("ServeOne");
  EXPECT_GT(violations[2].frame[0], serve);
  EXPECT_LT(violations[2].frame[0], serve + 400);
  EXPECT_EQ(processes[0].Counters().violations, 2u);
}

TEST(GuardUnits, BeginAtTheFirstTurnOfALoopThatHasNotWaitedYet) {
  const TrainedHabit trained = Train("ready");
  HandPlan plan = GuardPlan(trained, 20'000'000);
  ASSERT_EQ(plan.sites.size(), 1u);
  plan.sites[0].holder_module = 0;
  plan.sites[0].holder_offset = OffsetOf("ServeReady");
  plan.sites[0].flags = wire::PlanSite::kTurns;
  // At the depths that it was called from, by the loop's function and by another.
  const std::vector<uint64_t>& stack = trained.words[StackOfPoll(trained)];
  const auto first =
      std::find_if(trained.records.begin(), trained.records.end(), [&](const LogRecord& record) {
        return record.kind == wire::LogKind::kEnter && record.a == trained.turn_id;
      });
  ASSERT_NE(first, trained.records.end());
  const uint64_t before16 = (stack[5] >> 4 & ((uint64_t{1} << 40) - 1)) - first->b;
  plan.functions.push_back({.offset = OffsetOf("NextTurn"),
                            .module = 0,
                            .flags = 0,
                            .first_context = static_cast<uint32_t>(plan.contexts.size()),
                            .contexts = 2});
  for (const uint64_t depth16 : {(stack[3] >> 4) - (stack[1] >> 4), before16}) {
    plan.contexts.push_back({.depth = static_cast<int32_t>(depth16) * 16,
                             .flags = wire::PlanContext::kTurn | wire::PlanContext::kNoBit,
                             .bit = 0,
                             .return_module = wire::kAnyReturn,
                             .return_offset = 0});
  }
  const SessionFolder session = MakeSession(plan.Bytes());
  EXPECT_EQ(RunHabit("ready", session.path()).text, RunHabit("ready").text);
  std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_EQ(processes.size(), 1u);
  // What was taken before the loop is none, nor is the search that ends in the wait.
  EXPECT_EQ(processes[0].Counters().units, 4u);
  const std::vector<wire::Violation> violations = ViolationsOf(processes[0]);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_GE(violations[0].wall_ns, 60'000'000u);
  EXPECT_EQ(violations[0].type, 0u) << "it has the contexts of what it did";
}

TEST(GuardUnits, NothingIsWrittenWhenNobodyListens) {
  SessionFolder session = MakeSession(GuardPlan(SlowHabit(), 20'000'000).Bytes());
  session.Beat(1);
  EXPECT_EQ(RunHabit("slow", session.path()).code, 0);
  std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].Counters().violations, 2u);
  EXPECT_EQ(processes[0].Counters().suppressed, 2u);
  EXPECT_TRUE(ViolationsOf(processes[0]).empty());
}

TEST(GuardUnits, AFunctionThatIsHitTooOftenIsUnpatched) {
  HandPlan plan = GuardPlan(SlowHabit(), 20'000'000);
  plan.header.max_hits_a_second = 10'000;
  const SessionFolder session = MakeSession(plan.Bytes());
  EXPECT_EQ(RunHabit("hot", session.path()).text, "done\n");
  const std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].Counters().removed, 1u);
  EXPECT_EQ(processes[0].Counters().patched, 0u);
  EXPECT_LT(processes[0].Counters().hits, 100'000u);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
