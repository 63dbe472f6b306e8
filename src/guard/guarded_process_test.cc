// SPDX-License-Identifier: Apache-2.0
#include "guard/guarded_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test_folder.h"
#include "guard/fake_runtime.h"

namespace culprit::guard::TEST_FILE {
namespace {

Result<GuardedProcess> Open(const TestFolder& folder) {
  return GuardedProcess::Open(folder.path(), getpid());
}

TEST(GuardedProcess, IsNotReadyUntilBothFilesAre) {
  const TestFolder folder;
  EXPECT_FALSE(Open(folder).ok());
  folder.Write("slots." + std::to_string(getpid()), std::string(100'000, 0));
  folder.Write("ring." + std::to_string(getpid()), std::string(100'000, 0));
  EXPECT_FALSE(Open(folder).ok()) << "no magic yet";
}

TEST(GuardedProcess, TakesRecordsInOrderRoundTheRing) {
  const TestFolder folder;
  FakeRuntime runtime(folder.path(), getpid());
  auto process = Open(folder);
  ASSERT_TRUE(process.ok()) << process.error().ToString();
  std::vector<uint64_t> seen;
  RingSink sink;
  sink.violation = [&](const wire::Violation& violation) { seen.push_back(violation.wall_ns); };
  uint64_t next = 0;
  for (int round = 0; round < 5; ++round) {
    for (uint32_t i = 0; i < 700; ++i) {
      wire::Violation violation = {};
      violation.wall_ns = next++;
      ASSERT_TRUE(runtime.Push(violation));
    }
    EXPECT_EQ(process.value().Drain(sink), 700u);
  }
  ASSERT_EQ(seen.size(), next);
  for (uint64_t i = 0; i < next; ++i) ASSERT_EQ(seen[i], i);
}

TEST(GuardedProcess, GivesTheWriterRoomAgain) {
  const TestFolder folder;
  FakeRuntime runtime(folder.path(), getpid());
  auto process = Open(folder);
  ASSERT_TRUE(process.ok());
  const wire::Violation violation = {};
  for (uint32_t i = 0; i < wire::kRingCells; ++i) ASSERT_TRUE(runtime.Push(violation));
  EXPECT_FALSE(runtime.Push(violation)) << "it is full";
  EXPECT_EQ(process.value().Drain({}), wire::kRingCells);
  EXPECT_TRUE(runtime.Push(violation));
}

TEST(GuardedProcess, WaitsForAWriterThatIsNotDone) {
  const TestFolder folder;
  FakeRuntime runtime(folder.path(), getpid());
  auto process = Open(folder);
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE(runtime.Push(wire::Violation{}));
  runtime.Take();
  EXPECT_EQ(process.value().Drain({}), 1u);
  EXPECT_EQ(process.value().Drain({}), 0u);
}

TEST(GuardedProcess, CountsNonsenseAndGoesOn) {
  const TestFolder folder;
  FakeRuntime runtime(folder.path(), getpid());
  auto process = Open(folder);
  ASSERT_TRUE(process.ok());
  auto cell = std::make_unique<wire::Cell>();
  cell->kind = 77;
  ASSERT_TRUE(runtime.Push(*cell));
  cell->kind = static_cast<uint32_t>(wire::RecordKind::kSamples);
  cell->count = UINT32_MAX;
  ASSERT_TRUE(runtime.Push(*cell));
  wire::Violation violation = {};
  violation.frames = UINT32_MAX;
  ASSERT_TRUE(runtime.Push(violation));
  uint32_t frames = 0;
  RingSink sink;
  sink.violation = [&](const wire::Violation& seen) { frames = seen.frames; };
  EXPECT_EQ(process.value().Drain(sink), 3u);
  EXPECT_EQ(process.value().bad_records(), 2u);
  EXPECT_EQ(frames, wire::kMaxFrames);
}

TEST(GuardedProcess, SeesUnitsThatRunAndNotThoseBeingChanged) {
  const TestFolder folder;
  FakeRuntime runtime(folder.path(), getpid());
  const auto process = Open(folder);
  ASSERT_TRUE(process.ok());
  const uint64_t now_ns = 1'000'000;
  wire::UnitSlot slot = {};
  slot.tid = 11;
  slot.sequence = 4;
  slot.begin_ticks = FakeRuntime::TicksOf(400'000);
  slot.overdue_ticks = FakeRuntime::TicksOf(900'000);
  slot.units = 5;
  slot.hits = 50;
  runtime.SetSlot(0, slot);
  slot.tid = 12;
  slot.overdue_ticks = FakeRuntime::TicksOf(2'000'000);
  runtime.SetSlot(1, slot);
  slot.tid = 13;
  slot.sequence = 5;  // odd: being changed
  runtime.SetSlot(2, slot);
  slot.tid = 14;
  slot.sequence = 6;
  slot.begin_ticks = 0;  // waits
  runtime.SetSlot(3, slot);
  const std::vector<OpenUnit> units = process.value().OpenUnits(now_ns);
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units[0].tid, 11);
  EXPECT_EQ(units[0].begin_ns, 400'000u);
  EXPECT_EQ(units[0].elapsed_ns, 600'000u);
  EXPECT_EQ(units[0].allowed_ns, 500'000u);
  EXPECT_EQ(units[1].tid, 12);
  EXPECT_EQ(units[1].allowed_ns, 1'600'000u);
  EXPECT_EQ(process.value().Counters().hits, 200u);
  // More of them, and none in between.
  slot.tid = 15;
  slot.begin_ticks = FakeRuntime::TicksOf(500'000);
  runtime.SetSlot(200, slot);
  EXPECT_EQ(process.value().OpenUnits(now_ns).size(), 3u);
  EXPECT_EQ(process.value().Counters().hits, 250u);
  runtime.SetHeader(offsetof(wire::SlotsHeader, ended), uint32_t{1});
  EXPECT_TRUE(process.value().OpenUnits(now_ns).empty());
  EXPECT_TRUE(process.value().Counters().ended);
}

TEST(GuardedProcess, TellsAUnitFromTheOneAfterIt) {
  const TestFolder folder;
  FakeRuntime runtime(folder.path(), getpid());
  const auto process = Open(folder);
  ASSERT_TRUE(process.ok());
  wire::UnitSlot slot = {};
  slot.tid = 11;
  slot.sequence = 4;
  slot.begin_ticks = FakeRuntime::TicksOf(400'000);
  slot.overdue_ticks = FakeRuntime::TicksOf(900'000);
  runtime.SetSlot(1, slot);
  const std::vector<OpenUnit> units = process.value().OpenUnits(1'000'000);
  ASSERT_EQ(units.size(), 1u);
  EXPECT_TRUE(process.value().IsOpen(units[0]));
  slot.contexts[0] = 1;  // it goes on
  slot.sequence = 6;
  runtime.SetSlot(1, slot);
  EXPECT_TRUE(process.value().IsOpen(units[0]));
  slot.begin_ticks = FakeRuntime::TicksOf(950'000);
  runtime.SetSlot(1, slot);
  EXPECT_FALSE(process.value().IsOpen(units[0]));
  slot.begin_ticks = 0;
  runtime.SetSlot(1, slot);
  EXPECT_FALSE(process.value().IsOpen(units[0]));
}

TEST(GuardedProcess, KnowsWhereItsTrampolinesAre) {
  const TestFolder folder;
  FakeRuntime runtime(folder.path(), getpid());
  auto process = Open(folder);
  ASSERT_TRUE(process.ok());
  EXPECT_FALSE(process.value().IsTrampoline(0)) << "there are none yet";
  runtime.SetHeader(offsetof(wire::SlotsHeader, islands) + sizeof(uint64_t), uint64_t{0x500000});
  EXPECT_FALSE(process.value().IsTrampoline(0x4fffff));
  EXPECT_TRUE(process.value().IsTrampoline(0x500000));
  EXPECT_TRUE(process.value().IsTrampoline(0x500000 + wire::kIslandBytes - 1));
  EXPECT_FALSE(process.value().IsTrampoline(0x500000 + wire::kIslandBytes));
}

TEST(GuardedProcess, SurvivesAFileCutShort) {
  const TestFolder folder;
  FakeRuntime runtime(folder.path(), getpid());
  auto process = Open(folder);
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE(runtime.Push(wire::Violation{}));
  for (const char* name : {"slots.", "ring."}) {
    ASSERT_EQ(truncate((folder / (name + std::to_string(getpid()))).c_str(), 100), 0);
  }
  EXPECT_EQ(process.value().Drain({}), 0u);
  EXPECT_TRUE(process.value().OpenUnits(1).empty());
  EXPECT_EQ(process.value().Counters().units, 0u);
}

TEST(ProcessLife, EndsWithTheProcessWhoeverAsksForItsExitCode) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(0);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(kill(child, 0), 0);  // a zombie has its id still
  EXPECT_FALSE(IsRunning(child));
  EXPECT_FALSE(ProcessLife(child).alive());
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(IsRunning(getpid()));
  EXPECT_TRUE(ProcessLife(getpid()).alive());
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
