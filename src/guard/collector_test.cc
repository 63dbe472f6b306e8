// SPDX-License-Identifier: Apache-2.0
#include "guard/collector.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/test_folder.h"
#include "guard/fake_runtime.h"
#include "guard/open_unit_type.h"
#include "guard/unit_export.h"

namespace culprit::guard::TEST_FILE {
namespace {

extern "C" [[gnu::noinline]] void GuardTestHangs() {
  volatile uint64_t sum = 0;
  while (true) sum = sum + 1;
}

void WaitForEver() {
  while (true) poll(nullptr, 0, -1);
}

// A process that burns the CPU in GuardTestHangs, or does something else, and has
// begun with it.
class Hanging {
 public:
  explicit Hanging(void (*work)() = &GuardTestHangs) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[1]);
      work();
    }
    close(ends[1]);
    char none = 0;
    EXPECT_EQ(read(ends[0], &none, 1), 0);  // the other end is closed
    close(ends[0]);
  }
  ~Hanging() { End(); }
  Hanging(const Hanging&) = delete;
  Hanging& operator=(const Hanging&) = delete;
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

Result<SessionFolder> NewSession(const TestFolder& folder) {
  SessionOptions options;
  options.parent = folder / "sessions";
  return SessionFolder::Create(options);
}

Profile TwoTypes() {
  Profile profile;
  profile.program = "/usr/bin/server";
  profile.loops.resize(1);
  profile.types.resize(2);
  profile.types[0].name = "get";
  profile.types[1].name = "put";
  return profile;
}

void SetSlowUnit(FakeRuntime& runtime, int64_t tid, uint64_t begin_ns,
                 wire::UnitKind kind = wire::UnitKind::kIteration, uint64_t contexts = 0) {
  wire::UnitSlot slot = {};
  slot.kind = static_cast<uint32_t>(kind);
  slot.contexts[0] = contexts;
  slot.tid = static_cast<uint32_t>(tid);
  slot.begin_ticks = FakeRuntime::TicksOf(begin_ns);
  slot.overdue_ticks = FakeRuntime::TicksOf(begin_ns + 1000);
  runtime.SetSlot(0, slot);
}

// A session with one process, whose runtime the test plays.
class Collected {
 public:
  explicit Collected(void (*work)() = &GuardTestHangs, uint64_t hang_ns = 30'000'000)
      : session_(NewSession(folder_)),
        process_(work),
        runtime_(session_.value().path(), process_.pid()),
        collector_(session_.value(), Options(hang_ns)),
        profile_(TwoTypes()) {
    collector_.Use(profile_, "");
    sink_.report = [this](const UnitReport& report) { reports.push_back(report); };
  }
  void Poll(int rounds = 1) {
    for (int i = 0; i < rounds; ++i) {
      collector_.Poll(sink_);
      usleep(5000);
    }
  }
  wire::Violation Record(uint64_t begin_ns, uint32_t flags, uint64_t wall_ns) const {
    wire::Violation violation = {};
    violation.flags = flags;
    violation.tid = static_cast<uint32_t>(process_.pid());
    violation.begin_ns = begin_ns;
    violation.wall_ns = wall_ns;
    violation.cpu_ns = wall_ns;
    violation.threshold_ns = 1000;
    return violation;
  }
  // What the loop's units took in training.
  void UseUnitsOf(uint64_t length_ns) {
    profile_.types[0].stats.Add(length_ns, 1000);
    collector_.Use(profile_, "");
  }
  void PollAtOnce() { collector_.Poll(sink_); }
  void EndUnit() { runtime_.SetSlot(0, {}); }
  FakeRuntime& runtime() { return runtime_; }
  Hanging& process() { return process_; }
  const Collector& collector() const { return collector_; }
  const Profile& profile() const { return profile_; }

  std::vector<UnitReport> reports;

 private:
  static CollectorOptions Options(uint64_t hang_ns) {
    CollectorOptions options;
    options.hang.hang_ns = hang_ns;
    options.whole_round_ns = 0;
    options.wait_for_names = true;
    return options;
  }

  TestFolder folder_;
  Result<SessionFolder> session_;
  Hanging process_;
  FakeRuntime runtime_;
  Collector collector_;
  Profile profile_;
  CollectorSink sink_;
};

TEST(Collector, LooksAtAHangingUnitAndNamesWhereItIs) {
  Collected collected;
  const int64_t pid = collected.process().pid();
  const std::vector<UnitReport>& reports = collected.reports;
  const uint64_t begin_ns = GuardClockNs();
  SetSlowUnit(collected.runtime(), pid, begin_ns);
  for (int i = 0; i < 500 && reports.empty(); ++i) collected.Poll();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].state, UnitReport::State::kHangs);
  EXPECT_EQ(reports[0].pid, pid);
  ASSERT_FALSE(reports[0].stacks.empty());
  EXPECT_NE(reports[0].Where().find("GuardTestHangs"), std::string::npos) << ToJson(reports[0]);

  // It ends after all: the runtime's record closes the case, with the looks.
  wire::Violation violation = collected.Record(begin_ns, 0, GuardClockNs() - begin_ns);
  violation.type = 1;
  ASSERT_TRUE(collected.runtime().Push(violation));
  collected.Poll();
  ASSERT_EQ(reports.size(), 2u) << "reported as hanging once, and its end";
  EXPECT_EQ(reports[1].state, UnitReport::State::kHungEnded);
  EXPECT_EQ(reports[1].type_name, "put");
  EXPECT_NE(reports[1].Where().find("GuardTestHangs"), std::string::npos);
}

TEST(Collector, KnowsTheGuardsCodeInItsProcesses) {
  Collected collected;
  const int64_t pid = collected.process().pid();
  const auto code = reinterpret_cast<uint64_t>(&GuardTestHangs);
  EXPECT_FALSE(collected.collector().IsOwnCode(pid, code).has_value()) << "not met yet";
  collected.Poll();
  EXPECT_EQ(collected.collector().IsOwnCode(pid, code), false);
  EXPECT_EQ(collected.collector().IsOwnCode(pid, 0x10000), false);
  collected.runtime().SetHeader(offsetof(wire::SlotsHeader, islands), uint64_t{0x10000});
  EXPECT_EQ(collected.collector().IsOwnCode(pid, 0x10000), true);
  EXPECT_EQ(collected.collector().IsOwnCode(pid, code), false);
  EXPECT_FALSE(collected.collector().IsOwnCode(getpid(), 0x10000).has_value());
}

TEST(Collector, TellsOfALoopThatSpinsAndWhereItIs) {
  Collected collected;
  collected.UseUnitsOf(20'000);
  const std::vector<UnitReport>& reports = collected.reports;
  wire::UnitSlot slot = {};
  slot.tid = static_cast<uint32_t>(collected.process().pid());
  auto samples = std::make_unique<wire::Cell>();
  samples->kind = static_cast<uint32_t>(wire::RecordKind::kSamples);
  samples->count = 10;
  const uint64_t deadline_ns = GuardClockNs() + 30'000'000'000;
  while (reports.empty() && GuardClockNs() < deadline_ns) {
    slot.units += 10'000;
    collected.runtime().SetSlot(0, slot);
    for (uint32_t i = 0; i < samples->count; ++i) {
      samples->samples[i] = {
          .type = wire::kUnknown, .tid = slot.tid, .begin_ns = GuardClockNs(), .wall_ns = 500};
    }
    collected.runtime().Push(*samples);
    collected.Poll(2);
  }
  ASSERT_EQ(reports.size(), 1u);
  const UnitReport& report = reports[0];
  EXPECT_EQ(report.state, UnitReport::State::kSpins);
  EXPECT_EQ(report.type_name, "[spins]");
  EXPECT_EQ(report.tid, collected.process().pid());
  EXPECT_GE(report.wall_ns, SpinWatch::kSpinNs);
  EXPECT_GT(report.units, 100'000u);
  EXPECT_NE(report.Where().find("GuardTestHangs"), std::string::npos) << ToJson(report);
  EXPECT_NE(ToJson(report).find("\"units\":" + std::to_string(report.units)), std::string::npos)
      << ToJson(report);
}

// An output of the process trickles, for some rounds; its record, with units of some length.
wire::Violation PlayTrickle(Collected& collected, uint64_t unit_ns) {
  wire::UnitSlot slot = {};
  slot.tid = static_cast<uint32_t>(collected.process().pid());
  const uint64_t begin_ns = GuardClockNs();
  slot.trickle_ticks = FakeRuntime::TicksOf(begin_ns);
  // Its units come and go, each of them younger than it may become.
  for (int i = 0; i < 4; ++i) {
    slot.begin_ticks = FakeRuntime::TicksOf(GuardClockNs());
    collected.runtime().SetSlot(0, slot);
    collected.Poll();
  }
  collected.EndUnit();
  wire::Violation violation =
      collected.Record(begin_ns, wire::Violation::kTrickles, GuardClockNs() - begin_ns);
  violation.type = wire::kUnknown;
  violation.units = 500;
  violation.ready = static_cast<uint32_t>(violation.wall_ns / unit_ns);
  return violation;
}

TEST(Collector, TellsOfAnOutputThatTricklesAndWhereItIs) {
  Collected collected;
  collected.UseUnitsOf(60'000);
  ASSERT_TRUE(collected.runtime().Push(PlayTrickle(collected, 18'000)));
  collected.PollAtOnce();
  ASSERT_EQ(collected.reports.size(), 1u);
  const UnitReport& report = collected.reports[0];
  EXPECT_EQ(report.state, UnitReport::State::kTrickles);
  EXPECT_EQ(report.type_name, "[trickles]");
  EXPECT_EQ(report.units, 500u);
  EXPECT_EQ(ScenarioName(collected.profile(), report.type), "server: [trickles]");
  EXPECT_NE(report.Where().find("GuardTestHangs"), std::string::npos) << ToJson(report);
  EXPECT_NE(ToJson(report).find("\"units\":500"), std::string::npos) << ToJson(report);
}

TEST(Collector, AUnitThatHangsWhileAnOutputTricklesIsSeen) {
  Collected collected;
  wire::UnitSlot slot = {};
  slot.tid = static_cast<uint32_t>(collected.process().pid());
  slot.begin_ticks = FakeRuntime::TicksOf(GuardClockNs());
  slot.overdue_ticks = slot.begin_ticks + 500;
  slot.trickle_ticks = slot.begin_ticks - 1000;
  collected.runtime().SetSlot(0, slot);
  for (int i = 0; i < 500 && collected.reports.empty(); ++i) collected.Poll();
  ASSERT_EQ(collected.reports.size(), 1u);
  EXPECT_EQ(collected.reports[0].state, UnitReport::State::kHangs);
}

TEST(Collector, ALongDownloadDoesNotTrickle) {
  Collected collected;
  collected.UseUnitsOf(60'000);
  ASSERT_TRUE(collected.runtime().Push(PlayTrickle(collected, 25'000)));
  collected.PollAtOnce();
  EXPECT_TRUE(collected.reports.empty());
  EXPECT_EQ(collected.collector().Totals().withdrawn, 1u);
}

TEST(Collector, JoinsWhatAGuardToldWithTheUnitsEnd) {
  Collected collected;
  const uint64_t begin_ns = GuardClockNs();
  wire::Violation told = collected.Record(begin_ns, wire::Violation::kStillRunning, 2000);
  told.type = 0;
  told.frames = 1;
  told.frame[0] = reinterpret_cast<uint64_t>(&GuardTestHangs) + 8;
  ASSERT_TRUE(collected.runtime().Push(told));
  collected.Poll();
  EXPECT_TRUE(collected.reports.empty()) << "it still runs";
  wire::Violation end = collected.Record(begin_ns, wire::Violation::kEndOfRunning, 9'000'000);
  end.type = 1;
  end.threshold_ns = 5000;
  end.flags |= wire::Violation::kStackFromSite;
  end.frames = 1;
  end.frame[0] = 16;
  ASSERT_TRUE(collected.runtime().Push(end));
  collected.Poll(10);
  ASSERT_EQ(collected.reports.size(), 1u);
  const UnitReport& report = collected.reports[0];
  EXPECT_EQ(report.type_name, "put") << "as it was at its end";
  EXPECT_EQ(report.wall_ns, 9'000'000u);
  EXPECT_EQ(report.threshold_ns, 5000u);
  ASSERT_EQ(report.stacks.size(), 1u);
  EXPECT_EQ(report.stacks[0].by, SeenStack::By::kGuard) << "the stack of then";
  EXPECT_NE(report.Where().find("GuardTestHangs"), std::string::npos) << ToJson(report);
}

TEST(Collector, WithdrawsAUnitThatKeptItsThresholdInTheEnd) {
  Collected collected;
  const uint64_t begin_ns = GuardClockNs();
  ASSERT_TRUE(
      collected.runtime().Push(collected.Record(begin_ns, wire::Violation::kStillRunning, 2000)));
  collected.Poll();
  wire::Violation end = collected.Record(begin_ns, wire::Violation::kEndOfRunning, 9'000'000);
  end.threshold_ns = 10'000'000;
  ASSERT_TRUE(collected.runtime().Push(end));
  // Wholly without a CPU.
  wire::Violation starved = collected.Record(begin_ns, 0, 9'000'000);
  starved.run_delay_ns = 9'000'000;
  ASSERT_TRUE(collected.runtime().Push(starved));
  collected.Poll(10);
  EXPECT_TRUE(collected.reports.empty());
  EXPECT_EQ(collected.collector().Totals().withdrawn, 2u);
}

TEST(Collector, ReportsAUnitWhoseEndNeverComes) {
  Collected collected;
  const uint64_t begin_ns = GuardClockNs();
  ASSERT_TRUE(
      collected.runtime().Push(collected.Record(begin_ns, wire::Violation::kStillRunning, 2000)));
  collected.Poll();
  EXPECT_TRUE(collected.reports.empty());
  collected.process().End();
  collected.Poll();
  ASSERT_EQ(collected.reports.size(), 1u);
  EXPECT_EQ(collected.reports[0].wall_ns, 2000u);
}

TEST(Collector, KeepsTheLooksAtATailForItsReport) {
  Collected collected(&GuardTestHangs, 3'600'000'000'000);
  const uint64_t iteration_ns = GuardClockNs() - 1'000'000;
  const uint64_t begin_ns = GuardClockNs();
  SetSlowUnit(collected.runtime(), collected.process().pid(), begin_ns, wire::UnitKind::kTail);
  collected.Poll(3);
  collected.EndUnit();
  // Its parts took less than the time between its begin and its end.
  wire::Violation end = collected.Record(iteration_ns, wire::Violation::kStackFromSite, 100'000);
  end.unit_kind = static_cast<uint32_t>(wire::UnitKind::kTail);
  end.told_ns = GuardClockNs();
  ASSERT_TRUE(collected.runtime().Push(end));
  collected.Poll(3);
  ASSERT_EQ(collected.reports.size(), 1u);
  ASSERT_FALSE(collected.reports[0].stacks.empty());
  EXPECT_EQ(collected.reports[0].stacks[0].by, SeenStack::By::kLook);
}

TEST(Collector, AThreadThatWaitsForEventsOutsideOfAKnownLoopDoesNotHang) {
  Collected waiting(&WaitForEver);
  SetSlowUnit(waiting.runtime(), waiting.process().pid(), GuardClockNs() - 60'000'000);
  waiting.Poll(1);
  // It goes on as another call (restart_syscall), as after a look that stops a thread.
  kill(static_cast<pid_t>(waiting.process().pid()), SIGSTOP);
  usleep(20'000);
  kill(static_cast<pid_t>(waiting.process().pid()), SIGCONT);
  waiting.Poll(10);
  EXPECT_TRUE(waiting.reports.empty());
  // Inside of something that training knows it does.
  SetSlowUnit(waiting.runtime(), waiting.process().pid(), GuardClockNs() - 60'000'000,
              wire::UnitKind::kIteration, 1);
  waiting.Poll(10);
  ASSERT_EQ(waiting.reports.size(), 1u);
  EXPECT_EQ(waiting.reports[0].state, UnitReport::State::kHangs);
}

TEST(Collector, FindsAProcessThatCameAndWentBetweenTwoRounds) {
  const TestFolder folder;
  auto session = NewSession(folder);
  ASSERT_TRUE(session.ok());
  Collector collector(session.value(), {.whole_round_ns = 0});
  for (int i = 0; i < 101; ++i) collector.Poll({});
  Hanging hanging;
  FakeRuntime runtime(session.value().path(), hanging.pid());
  runtime.SetHeader(offsetof(wire::SlotsHeader, units), uint64_t{7});
  hanging.End();
  collector.Finish({});
  EXPECT_EQ(collector.Totals().processes, 1u);
  EXPECT_EQ(collector.Totals().units, 7u);
}

TEST(Collector, FindsProcessesThatJoinAndForgetsThoseThatEnd) {
  const TestFolder folder;
  auto session = NewSession(folder);
  ASSERT_TRUE(session.ok());
  Collector collector(session.value(), {.whole_round_ns = 0});
  Hanging hanging;
  FakeRuntime runtime(session.value().path(), hanging.pid());
  runtime.SetHeader(offsetof(wire::SlotsHeader, units), uint64_t{42});
  for (int i = 0; i < 10; ++i) collector.Poll({});
  EXPECT_EQ(collector.pids(), (std::vector<int64_t>{hanging.pid()}));
  EXPECT_FALSE(collector.AllEnded());
  const std::string slots = session.value().FilePath("slots", hanging.pid());
  ASSERT_TRUE(std::filesystem::exists(slots));
  hanging.End();
  for (int i = 0; i < 10 && !collector.pids().empty(); ++i) collector.Poll({});
  EXPECT_TRUE(collector.pids().empty()) << "one that does nothing is asked seldom, but is";
  EXPECT_FALSE(std::filesystem::exists(slots)) << "its files take no room";
  EXPECT_EQ(collector.Totals().processes, 1u);
  EXPECT_EQ(collector.Totals().units, 42u) << "what it did still counts";
  EXPECT_TRUE(collector.AllEnded());
}

// A launcher that becomes the server: its files go, and others come under their names.
TEST(Collector, FollowsAProcessThatBecomesAnotherProgram) {
  const TestFolder folder;
  auto session = NewSession(folder);
  ASSERT_TRUE(session.ok());
  Collector collector(session.value(), {.whole_round_ns = 0});
  Hanging hanging;
  const FakeRuntime launcher(session.value().path(), hanging.pid());
  for (int i = 0; i < 10; ++i) collector.Poll({});
  ASSERT_EQ(collector.pids(), (std::vector<int64_t>{hanging.pid()}));
  for (const char* kind : {"slots", "ring"}) {
    std::filesystem::remove(session.value().FilePath(kind, hanging.pid()));
  }
  for (int i = 0; i < 10; ++i) collector.Poll({});
  FakeRuntime server(session.value().path(), hanging.pid());
  server.SetHeader(offsetof(wire::SlotsHeader, plan), uint32_t{3});
  server.SetHeader(offsetof(wire::SlotsHeader, units), uint64_t{5});
  for (int i = 0; i < 10; ++i) collector.Poll({});
  EXPECT_EQ(collector.pids(), (std::vector<int64_t>{hanging.pid()}));
  EXPECT_TRUE(collector.AllHavePlan(3));
  EXPECT_EQ(collector.Totals().processes, 1u);
  EXPECT_EQ(collector.Totals().units, 5u);
}

TEST(OpenUnitType, IsTheNearestOfItsLoopAndKind) {
  std::vector<wire::PlanType> types(3);
  types[0].contexts[0] = 0b0011;
  types[1].contexts[0] = 0b1100;
  types[2].contexts[0] = 0b1100;
  types[2].loop = 1;
  OpenUnit unit;
  unit.contexts[0] = 0b0100;
  EXPECT_EQ(GuessType(types, unit).type, 1u);
  EXPECT_EQ(GuessType(types, unit, 400'000).type, 1u);
  EXPECT_EQ(GuessType(types, unit, 600'000).type, wire::kUnknown) << "it is half alike";
  unit.loop = 1;
  EXPECT_EQ(GuessType(types, unit).type, 2u);
  unit.loop = 2;
  EXPECT_EQ(GuessType(types, unit).type, wire::kUnknown);
  EXPECT_TRUE(PlanTypes("").empty());
  EXPECT_TRUE(PlanTypes(std::string(sizeof(wire::PlanHeader), '\xff')).empty());
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
