// SPDX-License-Identifier: Apache-2.0
#include "guard/violation_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/test_folder.h"
#include "guard/violation_hook.h"

namespace culprit::guard::TEST_FILE {
namespace {

constexpr int64_t kDayNs = int64_t{86'400} * 1'000'000'000;

UnitReport Report(int64_t day) {
  UnitReport report;
  report.type_name = "get \"x\"\n";
  report.process = "server";
  report.pid = 5;
  report.tid = 6;
  report.begin_unix_ns = day * kDayNs;
  report.wall_ns = 10'000'000;
  report.ready_ns = 1'000'000;
  report.cpu_ns = 2'000'000;
  report.has_cpu = true;
  report.threshold_ns = 1'000'000;
  SeenStack stack;
  stack.by = SeenStack::By::kLook;
  stack.frames = {{.module = "libc.so.6", .function = "read"},
                  {.module = "server", .function = "ReadAll", .file = "a.c", .line = 3}};
  report.stacks = {stack};
  return report;
}

size_t FilesIn(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(ViolationStore, KeepsALineAReportAndAFileADay) {
  const TestFolder folder;
  auto store = ViolationStore::Open(folder / "a/b");
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(store.value().Append(Report(1)).ok());
  ASSERT_TRUE(store.value().Append(Report(1)).ok());
  ASSERT_TRUE(store.value().Append(Report(2)).ok());
  EXPECT_EQ(FilesIn(folder / "a/b"), 2u);
  std::ifstream file(folder / "a/b/slow-units-1970-01-02.jsonl");
  size_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const auto parsed = nlohmann::json::parse(line);
    EXPECT_EQ(parsed["type"], "get \"x\"\n");
    EXPECT_EQ(parsed["counted_ns"], 9'000'000);
    EXPECT_EQ(parsed["blocked_ns"], 7'000'000);
    EXPECT_EQ(parsed["where"], "server!ReadAll") << "the innermost of the program's own";
    EXPECT_EQ(parsed["stacks"][0]["frames"].size(), 2u);
  }
  EXPECT_EQ(lines, 2u);
}

TEST(ViolationStore, LetsTheOldestDayGoFirst) {
  const TestFolder folder;
  const size_t line = ToJson(Report(5)).size() + 1;
  auto store = ViolationStore::Open(folder / "s", 3 * line);
  ASSERT_TRUE(store.ok());
  for (int64_t day = 1; day <= 5; ++day) ASSERT_TRUE(store.value().Append(Report(day)).ok());
  EXPECT_EQ(FilesIn(folder / "s"), 3u);
  EXPECT_FALSE(std::filesystem::exists(folder / "s/slow-units-1970-01-02.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(folder / "s/slow-units-1970-01-06.jsonl"));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store.value().Append(Report(5)).ok());
  EXPECT_EQ(store.value().refused(), 3u) << "a day larger than the bound takes no more";
}

TEST(UnitReport, PutsTheStacksOfItsMidstFirst) {
  std::vector<SeenStack> stacks(4);
  stacks[0].by = SeenStack::By::kEnd;
  stacks[1].by = SeenStack::By::kLook;
  stacks[1].frames = {{.module = "m", .function = "once"}};
  stacks[2].by = SeenStack::By::kLook;
  stacks[2].frames = {{.module = "m", .function = "often"}};
  stacks[3] = stacks[2];
  SortStacks(stacks);
  ASSERT_EQ(stacks.size(), 3u);
  EXPECT_EQ(stacks[0].frames[0].function, "often");
  EXPECT_EQ(stacks[0].seen, 2u);
  EXPECT_EQ(stacks[2].by, SeenStack::By::kEnd);
}

TEST(ViolationHook, RunsOneAtATimeWithTheReportInItsEnvironment) {
  const TestFolder folder;
  const std::string out = folder / "out";
  ViolationHook hook = ViolationHook::OfCommand(
      "sleep 0.3; echo \"$CULPRIT_PROCESS $CULPRIT_WALL_NS $CULPRIT_WHERE\" >> " + out, 0);
  for (int i = 0; i < 5; ++i) hook.Offer(Report(1));
  EXPECT_EQ(hook.started(), 1u);
  EXPECT_EQ(hook.left_out(), 4u);
  std::string line;
  for (int i = 0; i < 500 && line.empty(); ++i) {
    usleep(10'000);
    std::ifstream file(out);
    std::getline(file, line);
  }
  EXPECT_EQ(line, "server 10000000 server!ReadAll");
}

TEST(ViolationHook, PausesBetweenTwo) {
  ViolationHook hook([](const UnitReport&) { return 1; }, kDayNs);
  hook.Offer(Report(1));
  usleep(50'000);
  hook.Offer(Report(1));
  EXPECT_EQ(hook.started(), 1u);
  EXPECT_EQ(hook.left_out(), 1u);
  EXPECT_EQ(hook.failed(), 1u) << "its code was 1";
}

TEST(ViolationHook, KnowsWhetherTheLastFailed) {
  ViolationHook hook = ViolationHook::OfCommand("sleep 0.1; exit 3", 0);
  hook.Offer(Report(1));
  EXPECT_EQ(hook.failed(), 0u);
  hook.WaitForLast(60'000'000'000);
  EXPECT_EQ(hook.failed(), 1u);
  hook.WaitForLast(60'000'000'000);  // there is none
  EXPECT_EQ(hook.failed(), 1u);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
