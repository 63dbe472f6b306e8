// SPDX-License-Identifier: Apache-2.0
//
// Programs under the injected runtime do what they did, whatever becomes of the session: its
// files are damaged or missing, its disk is full, its plans change.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "cli/own_cost.h"
#include "guard/collector.h"
#include "guard_hand_plan.h"

namespace culprit::guard::TEST_FILE {
namespace {

TEST(GuardSession, ADamagedOrMissingPlanChangesNothing) {
  const std::string good = HandPlan(wire::Mode::kTrain).Bytes();
  std::string flipped = GuardPlan(SlowHabit(), 1'000).Bytes();
  flipped[flipped.size() - 3] ^= 1;
  for (const std::string& plan : {std::string(), good.substr(0, 60), flipped}) {
    const SessionFolder session = MakeSession(plan);
    EXPECT_EQ(RunHabit("longjmp", session.path()).text, "100 jumps\n");
    EXPECT_TRUE(session.Processes().empty());
  }
  SessionFolder session = MakeSession(good);
  ASSERT_TRUE(session.Want(7).ok());
  EXPECT_EQ(RunHabit("longjmp", session.path()).text, "100 jumps\n");
  EXPECT_TRUE(session.Processes().empty());
  EXPECT_EQ(RunHabit("longjmp", "/no/such/folder").text, "100 jumps\n");
}

TEST(GuardSession, AProgramThatThePlanDoesNotNameIsLeftAlone) {
  HandPlan plan = GuardPlan(SlowHabit(), 1'000);
  std::strcpy(plan.modules[0].file_name, "another_program");
  const SessionFolder session = MakeSession(plan.Bytes());
  EXPECT_EQ(RunHabit("longjmp", session.path()).text, "100 jumps\n");
  EXPECT_TRUE(session.Processes().empty());
  // The same name, another build.
  HandPlan other = GuardPlan(SlowHabit(), 1'000);
  other.modules[0].build_id_size = 20;
  const SessionFolder other_session = MakeSession(other.Bytes());
  EXPECT_EQ(RunHabit("longjmp", other_session.path()).text, "100 jumps\n");
  EXPECT_TRUE(other_session.Processes().empty());
}

// What culprit removes when a process ends; another file for every connection of a server
// would stay.
TEST(GuardSession, GuardedProcessesHaveSlotsAndARingAndNoOtherFiles) {
  const SessionFolder session = MakeSession(GuardPlan(SlowHabit(), 1'000).Bytes());
  EXPECT_EQ(RunHabit("forks", session.path()).text, "60 children\n");
  std::set<std::string> kinds;
  for (const auto& file : std::filesystem::directory_iterator(session.path())) {
    const std::string name = file.path().filename();
    kinds.insert(name.substr(0, name.find('.')));
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"control", "plan", "ring", "slots"}));
}

TEST(GuardSession, AFullDiskLosesRecordsAndNothingElse) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a small disk needs root";
  for (const char* size : {"size=64k", "size=200k", "size=3m"}) {
    const TestFolder folder;
    ASSERT_EQ(mount("tmpfs", folder.path().c_str(), "tmpfs", 0, size), 0);
    {
      const SessionFolder session =
          MakeSession(HandPlan(wire::Mode::kTrain).Bytes(), folder / "sessions");
      EXPECT_EQ(RunHabit("recursion", session.path()).text, RunHabit("recursion").text);
      EXPECT_EQ(RunHabit("forks", session.path()).text, "60 children\n");
    }
    EXPECT_EQ(umount2(folder.path().c_str(), MNT_DETACH), 0);
  }
}

// Feeds the loop of the habits byte by byte.
class FedLoop {
 public:
  explicit FedLoop(const std::string& session) {
    int in[2];
    int out[2];
    EXPECT_EQ(pipe(in), 0);
    EXPECT_EQ(pipe(out), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      close(in[1]);
      const std::string command =
          "exec " +
          Command({"LD_PRELOAD=" + kLibrary, std::string(wire::kSessionVariable) + "=" + session}) +
          kHabits + " loop";
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  void Feed(int bytes) {
    for (int i = 0; i < bytes; ++i) EXPECT_EQ(write(in_, "\x05", 1), 1);
    fed_ += bytes;
  }
  // Feeds on until the runtime has come so far. False: it did not in 10 s.
  template <class Reached>
  bool FeedUntil(Reached reached) {
    for (int i = 0; i < 1000; ++i) {
      if (reached()) return true;
      Feed(5);
      usleep(10'000);
    }
    return false;
  }
  // What it printed at the end, as a number, must be what it was fed.
  bool EndsWell() {
    close(in_);
    char text[64] = {};
    const ssize_t got = read(out_, text, sizeof(text) - 1);
    int status = 0;
    waitpid(pid_, &status, 0);
    return got > 0 && status == 0 && std::stol(text) == 16L * fed_;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  long fed_ = 0;
};

// All zero until the runtime has made its files.
ProcessCounters CountersOf(const SessionFolder& session, const FedLoop& loop) {
  const auto process = GuardedProcess::Open(session.path(), loop.pid());
  return process.ok() ? process.value().Counters() : ProcessCounters();
}

TEST(GuardSession, PlansChangeWhileTheProgramRuns) {
  SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  ASSERT_TRUE(session.WritePlan(2, HandPlan(wire::Mode::kOff).Bytes()).ok());
  ASSERT_TRUE(session.WritePlan(3, GuardPlan(SlowHabit(), 1'000'000'000).Bytes()).ok());
  FedLoop loop(session.path());
  const auto counters = [&] { return CountersOf(session, loop); };
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().plan == 1; }));
  EXPECT_GT(counters().patched, 1000u);
  ASSERT_TRUE(session.Want(2).ok());
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().plan == 2; }));
  EXPECT_EQ(counters().patched, 0u);
  ASSERT_TRUE(session.Want(3).ok());
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().plan == 3; }));
  EXPECT_EQ(counters().patched, 1u);
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().units > 20; }));
  ASSERT_TRUE(session.Want(wire::kRemove).ok());
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().ended; }));
  loop.Feed(50);
  EXPECT_TRUE(loop.EndsWell());
}

TEST(GuardSession, WhatTheRuntimeTakesIsMeasured) {
  if (!kX86.empty()) GTEST_SKIP() << "an emulator's places are not those of the program";
  cli::OwnCost cost(1);
  if (!cost.share().why_not.empty()) GTEST_SKIP() << cost.share().why_not;
  // Every entry of every function is logged.
  SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  Collector collector(session, {.watch = false});
  FedLoop loop(session.path());
  const uint64_t until_ns = GuardClockNs() + 60'000'000'000;
  while (cost.share().samples < 100 && GuardClockNs() < until_ns) {
    loop.Feed(2000);
    collector.Poll({});
    cost.Turn(collector, GuardClockNs());
  }
  EXPECT_GE(cost.share().samples, 100u);
  EXPECT_GT(cost.share().Share(), 0.1);
  EXPECT_LT(cost.share().Share(), 0.95);
  EXPECT_TRUE(loop.EndsWell());
}

TEST(GuardSession, CountsModulesOfOtherBuildsButNotItself) {
  HandPlan plan = GuardPlan(SlowHabit(), 1'000'000'000);
  for (const char* name : {"libculprit_guard.so", "libc.so.6"}) {
    plan.AddModule(name);
    plan.modules.back().build_id_size = 20;  // of zeros
  }
  SessionFolder session = MakeSession(plan.Bytes());
  FedLoop loop(session.path());
  ASSERT_TRUE(loop.FeedUntil([&] { return CountersOf(session, loop).plan == 1; }));
  EXPECT_EQ(CountersOf(session, loop).foreign_modules, 1u);
  EXPECT_TRUE(loop.EndsWell());
}

TEST(GuardSession, NoUnitIsLostWhenThePlanChanges) {
  const std::string plan = GuardPlan(SlowHabit(), 1'000'000'000).Bytes();
  SessionFolder session = MakeSession(plan);
  ASSERT_TRUE(session.WritePlan(2, plan).ok());
  FedLoop loop(session.path());
  const auto counters = [&] { return CountersOf(session, loop); };
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().units > 5; }));
  usleep(100'000);
  const uint64_t before = counters().units;
  ASSERT_TRUE(session.Want(2).ok());
  for (int i = 0; i < 8; ++i) {
    loop.Feed(1);
    usleep(30'000);
  }
  EXPECT_EQ(counters().plan, 2u);
  EXPECT_EQ(counters().units, before + 8);
  EXPECT_TRUE(loop.EndsWell());
}

// A program that may not make memory executable (prctl PR_SET_MDWE, kept by exec),
// as hardened services are: it cannot be patched, and runs as ever.
TEST(GuardSession, AProgramWhoseMemoryCannotBecomeCodeRunsAsEver) {
  const ShellOutcome alone = RunHabit("threads");
  const SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kSetMdwe = 65;
    if (prctl(kSetMdwe, 1, 0, 0, 0) != 0) _exit(77);
    const ShellOutcome with = RunHabit("threads", session.path());
    _exit(with.code == alone.code && with.text == alone.text ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this kernel cannot forbid it";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const GuardedProcess& process : ProcessesOf(session)) {
    EXPECT_EQ(process.Counters().patched, 0u);
    EXPECT_TRUE(process.Counters().ended);
  }
}

// Whose threads all sleep sees neither that its session ended nor that another is
// wanted.
TEST(GuardSession, ASleeperIsFreedByTheNextStart) {
  SessionFolder ended = MakeSession(GuardPlan(SlowHabit(), 1'000'000'000).Bytes());
  FedLoop loop(ended.path());
  const auto counters = [&](const SessionFolder& session) {
    const auto process = GuardedProcess::Open(session.path(), loop.pid());
    return process.ok() ? process.value().Counters() : ProcessCounters();
  };
  ASSERT_TRUE(loop.FeedUntil([&] { return counters(ended).units > 5; }));
  usleep(100'000);
  ASSERT_TRUE(ended.Want(wire::kRemove).ok());
  EXPECT_FALSE(counters(ended).ended);
  SessionFolder next = MakeSession(GuardPlan(SlowHabit(), 1'000'000'000).Bytes());
  const auto started = InjectRuntime(loop.pid(), kLibrary, next.path());
  ASSERT_TRUE(started.ok()) << started.error().ToString();
  EXPECT_EQ(started.value().start_result, 0u);
  EXPECT_TRUE(counters(ended).ended);
  ASSERT_TRUE(loop.FeedUntil([&] { return counters(next).units > 5; }));
  // The same with a session that has ended: only the freeing.
  usleep(100'000);
  ASSERT_TRUE(next.Want(wire::kRemove).ok());
  ASSERT_EQ(setenv("CULPRIT_GUARD_RUNTIME", kLibrary.c_str(), 1), 0);
  EXPECT_EQ(ReleaseSleepers(next.path()), 0u);
  ASSERT_EQ(unsetenv("CULPRIT_GUARD_RUNTIME"), 0);
  EXPECT_TRUE(counters(next).ended);
  loop.Feed(50);
  EXPECT_TRUE(loop.EndsWell());
}

TEST(GuardSession, AThreadThatWaitsKeepsNoSamples) {
  HandPlan plan = GuardPlan(SlowHabit(), 1'000'000'000);
  plan.header.sample_every = 1;
  const SessionFolder session = MakeSession(plan.Bytes());
  FedLoop loop(session.path());
  Result<GuardedProcess> process = Error{.message = "not yet"};
  ASSERT_TRUE(loop.FeedUntil([&] {
    process = GuardedProcess::Open(session.path(), loop.pid());
    return process.ok() && process.value().Counters().units > 5;
  }));
  usleep(200'000);
  uint64_t samples = 0;
  RingSink sink;
  sink.samples = [&](std::span<const wire::Sample> some) { samples += some.size(); };
  process.value().Drain(sink);
  samples = 0;
  loop.Feed(1);  // a lone unit, and then nothing
  for (int i = 0; i < 500 && samples == 0; ++i) {
    usleep(10'000);
    process.value().Drain(sink);
  }
  EXPECT_GT(samples, 0u);
  EXPECT_TRUE(loop.EndsWell());
}

// A program that no library can be loaded into.
TEST(GuardSession, AStaticProgramRunsAsEver) {
  const ShellOutcome kind = RunShell("file -L /sbin/ldconfig");
  if (kind.text.find("static") == std::string::npos) {
    GTEST_SKIP() << "no static program here: " << kind.text;
  }
  const SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  const ShellOutcome alone = RunShell("/sbin/ldconfig -V");
  const ShellOutcome with = RunShell("env LD_PRELOAD=" + kLibrary + " " + wire::kSessionVariable +
                                     "=" + session.path() + " /sbin/ldconfig -V");
  EXPECT_EQ(with.code, alone.code);
  EXPECT_EQ(with.text, alone.text);
  EXPECT_TRUE(session.Processes().empty());
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
