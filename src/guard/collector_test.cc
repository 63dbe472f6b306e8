// SPDX-License-Identifier: Apache-2.0
#include "guard/collector.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/test_folder.h"
#include "guard/fake_runtime.h"
#include "guard/open_unit_type.h"

namespace culprit::guard {
namespace {

extern "C" [[gnu::noinline]] void GuardTestHangs() {
  volatile uint64_t sum = 0;
  while (true) sum = sum + 1;
}

// A process that burns the CPU in GuardTestHangs.
class Hanging {
 public:
  Hanging() : pid_(fork()) {
    if (pid_ == 0) GuardTestHangs();
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
  pid_t pid_;
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

void SetSlowUnit(FakeRuntime& runtime, int64_t tid, uint64_t begin_ns) {
  wire::UnitSlot slot = {};
  slot.tid = static_cast<uint32_t>(tid);
  slot.begin_ticks = FakeRuntime::TicksOf(begin_ns);
  slot.deadline_ticks = FakeRuntime::TicksOf(begin_ns + 1000);
  runtime.SetSlot(0, slot);
}

TEST(Collector, LooksAtAHangingUnitAndNamesWhereItIs) {
  const TestFolder folder;
  auto session = NewSession(folder);
  ASSERT_TRUE(session.ok());
  Hanging hanging;
  FakeRuntime runtime(session.value().path(), hanging.pid());
  CollectorOptions options;
  options.hang.hang_ns = 30'000'000;
  Collector collector(session.value(), options);
  const Profile profile = TwoTypes();
  collector.Use(profile, "");
  const uint64_t begin_ns = GuardClockNs();
  SetSlowUnit(runtime, hanging.pid(), begin_ns);
  std::vector<UnitReport> reports;
  CollectorSink sink;
  sink.report = [&](const UnitReport& report) { reports.push_back(report); };
  for (int i = 0; i < 500 && reports.empty(); ++i) {
    collector.Poll(sink);
    usleep(5000);
  }
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].state, UnitReport::State::kHangs);
  EXPECT_EQ(reports[0].pid, hanging.pid());
  ASSERT_FALSE(reports[0].stacks.empty());
  EXPECT_NE(reports[0].Where().find("GuardTestHangs"), std::string::npos) << ToJson(reports[0]);

  // It ends after all: the runtime's record closes the case, with the looks.
  wire::Violation violation = {};
  violation.type = 1;
  violation.tid = static_cast<uint32_t>(hanging.pid());
  violation.begin_ns = begin_ns;
  violation.wall_ns = GuardClockNs() - begin_ns;
  violation.cpu_ns = violation.wall_ns;
  violation.threshold_ns = 1000;
  ASSERT_TRUE(runtime.Push(violation));
  collector.Poll(sink);
  ASSERT_EQ(reports.size(), 2u) << "reported as hanging once, and its end";
  EXPECT_EQ(reports[1].state, UnitReport::State::kHungEnded);
  EXPECT_EQ(reports[1].type_name, "put");
  EXPECT_NE(reports[1].Where().find("GuardTestHangs"), std::string::npos);
}

TEST(Collector, FindsProcessesThatJoinAndForgetsThoseThatEnd) {
  const TestFolder folder;
  auto session = NewSession(folder);
  ASSERT_TRUE(session.ok());
  Collector collector(session.value(), {});
  Hanging hanging;
  FakeRuntime runtime(session.value().path(), hanging.pid());
  runtime.SetHeader(offsetof(wire::SlotsHeader, units), uint64_t{42});
  for (int i = 0; i < 10; ++i) collector.Poll({});
  EXPECT_EQ(collector.pids(), (std::vector<int64_t>{hanging.pid()}));
  EXPECT_FALSE(collector.AllEnded());
  const std::string slots = session.value().FilePath("slots", hanging.pid());
  ASSERT_TRUE(std::filesystem::exists(slots));
  hanging.End();
  collector.Poll({});
  EXPECT_TRUE(collector.pids().empty());
  EXPECT_FALSE(std::filesystem::exists(slots)) << "its files take no room";
  EXPECT_EQ(collector.Totals().processes, 1u);
  EXPECT_EQ(collector.Totals().units, 42u) << "what it did still counts";
  EXPECT_TRUE(collector.AllEnded());
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
  unit.loop = 1;
  EXPECT_EQ(GuessType(types, unit).type, 2u);
  unit.loop = 2;
  EXPECT_EQ(GuessType(types, unit).type, wire::kUnknown);
  EXPECT_TRUE(PlanTypes("").empty());
  EXPECT_TRUE(PlanTypes(std::string(sizeof(wire::PlanHeader), '\xff')).empty());
}

}  // namespace
}  // namespace culprit::guard
