// SPDX-License-Identifier: Apache-2.0
//
// Engines on tasks that write a file each; the launcher is a real process.
#include "scale/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>

#include "base/file.h"
#include "base/test_folder.h"
#include "scale/command_engine.h"
#include "scale/thread_engine.h"

namespace culprit::scale::TEST_FILE {
namespace {

// A stage whose task I is done when the file out-I says "good".
class Work {
 public:
  explicit Work(uint64_t count) {
    stage_.count = count;
    stage_.done = [this](uint64_t i) {
      const auto text = ReadWholeFile(Output(i));
      return text.ok() && text.value() == "good\n";
    };
    stage_.run = [this](uint64_t i) {
      ++runs_;
      return WriteWholeFile(Output(i), "good\n", Overwrite::kAllow);
    };
  }

  std::string Output(uint64_t index) const { return folder_ / ("out-" + std::to_string(index)); }
  const std::string& path() const { return folder_.path(); }
  const TestFolder& folder() const { return folder_; }
  Stage& stage() { return stage_; }
  int runs() const { return runs_; }
  uint64_t Done() const {
    uint64_t done = 0;
    for (uint64_t i = 0; i < stage_.count; ++i) done += stage_.done(i) ? 1 : 0;
    return done;
  }
  Result<StageOutcome> RunWith(Engine& engine) { return engine.Run(path(), stage_, progress_); }

 private:
  TestFolder folder_;
  Stage stage_;
  std::atomic<int> runs_{0};
  Progress progress_;
};

// What stands in for culprit: `PROGRAM shard VERB RUN INDEX` runs `body`, with I
// for the number and $OUT for the file.
std::string Worker(const Work& work, const std::string& body) {
  const std::string path =
      work.folder().Write("worker.sh",
                          "#!/bin/sh\nI=$4\nOUT=$3/out-$I\nN=$(ls $3/tries | grep -c \"^$I-\")\n"
                          "touch $3/tries/$I-$N\n" +
                              body + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::filesystem::create_directory(work.folder() / "tries");
  return path;
}

CommandEngine MakeEngine(const std::string& command, CommandOptions options,
                         EngineControl control = {}) {
  options.grace = std::chrono::milliseconds(200);
  return {CommandTemplate::Parse(command).value(), std::move(options), std::move(control)};
}

uint64_t Tries(const Work& work) {
  uint64_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(work.folder() / "tries")) {
    ++count;
  }
  return count;
}

TEST(ThreadEngine, RunsWhatIsNotDone) {
  Work work(20);
  work.folder().Write("out-3", "good\n");
  work.folder().Write("out-4", "damaged\n");
  ThreadEngine engine(4, {});
  const auto outcome = work.RunWith(engine);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome.value().ok());
  EXPECT_EQ(outcome.value().found_done, 1U);
  EXPECT_EQ(outcome.value().finished, 19U);
  EXPECT_EQ(work.runs(), 19);
  EXPECT_EQ(work.Done(), 20U);
}

TEST(ThreadEngine, NamesTheFailedAndDoesTheRest) {
  Work work(10);
  const auto run = work.stage().run;
  work.stage().run = [&](uint64_t i) -> Status {
    if (i == 7) return Error{.message = "cannot read: no such trace", .file = "c/t7.ctrace"};
    if (i == 2) return {};  // says so, but leaves nothing
    return run(i);
  };
  ThreadEngine engine(1, {});
  const auto outcome = work.RunWith(engine);
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome.value().failures.size(), 2U);
  EXPECT_EQ(outcome.value().failures[0].index, 2U);
  EXPECT_EQ(outcome.value().failures[0].why, "its output does not verify");
  EXPECT_EQ(outcome.value().failures[1].why, "c/t7.ctrace: cannot read: no such trace");
  EXPECT_EQ(work.Done(), 8U);
  const Status status = ToStatus(outcome.value(), work.stage(), work.path());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "map failed for 2 tasks of 10 (2,7); 8 of 10 tasks done");
}

TEST(ThreadEngine, StopsBetweenTasksAndGoesOnLater) {
  Work work(10);
  ThreadEngine stopped(1, {.stop = [&] { return work.runs() == 4; }});
  const auto first = work.RunWith(stopped);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first.value().stopped);
  EXPECT_EQ(work.Done(), 4U);
  EXPECT_FALSE(ToStatus(first.value(), work.stage(), work.path()).ok());
  ThreadEngine engine(1, {});
  const auto second = work.RunWith(engine);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value().found_done, 4U);
  EXPECT_EQ(work.runs(), 10);
}

TEST(CommandEngine, RunsEveryTaskOnce) {
  Work work(12);
  work.folder().Write("out-5", "good\n");
  const std::string worker = Worker(work, "echo good > $OUT");
  CommandEngine engine =
      MakeEngine("{program} shard {verb} {run} {index}", {.program = worker, .slots = 3});
  const auto outcome = work.RunWith(engine);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome.value().ok());
  EXPECT_EQ(outcome.value().finished, 11U);
  EXPECT_EQ(outcome.value().repeated, 0U);
  EXPECT_EQ(Tries(work), 11U);
}

TEST(CommandEngine, TriesAgainWhatFails) {
  Work work(6);
  // The first attempt of 1 fails, that of 4 leaves a damaged output.
  const std::string worker = Worker(work,
                                    "[ $I-$N = 1-0 ] && exit 9\n"
                                    "[ $I-$N = 4-0 ] && { echo half > $OUT; exit 0; }\n"
                                    "echo good > $OUT");
  CommandEngine engine = MakeEngine("sh -c {command}", {.program = worker, .slots = 2});
  const auto outcome = work.RunWith(engine);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome.value().ok());
  EXPECT_EQ(outcome.value().repeated, 2U);
  EXPECT_EQ(Tries(work), 8U);
}

TEST(CommandEngine, GivesUpWithTheEndOfTheLog) {
  Work work(4);
  const std::string worker =
      Worker(work, "[ $I = 2 ] && { echo first; echo disk full >&2; exit 5; }\necho good > $OUT");
  std::vector<std::string> notes;
  CommandEngine engine =
      MakeEngine("{program} shard {verb} {run} {index}", {.program = worker, .slots = 2},
                 {.note = [&](const std::string& line) { notes.push_back(line); }});
  const auto outcome = work.RunWith(engine);
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome.value().failures.size(), 1U);
  const TaskFailure& failure = outcome.value().failures[0];
  EXPECT_EQ(failure.index, 2U);
  EXPECT_EQ(failure.attempts, 3U);
  EXPECT_EQ(failure.why, "its launcher ended with exit code 5");
  EXPECT_EQ(failure.log, std::filesystem::canonical(work.path()).string() + "/logs/map-2.log");
  ASSERT_FALSE(failure.last_lines.empty());
  EXPECT_EQ(failure.last_lines.back(), "disk full");
  EXPECT_EQ(work.Done(), 3U);
  EXPECT_EQ(notes.size(), 3U);
}

TEST(CommandEngine, ADeadHostLosesNothing) {
  Work work(30);
  const std::string worker = Worker(work, "sleep 0.05; echo good > $OUT");
  // As ssh does for a host that is away: 255, at once.
  const std::string ssh = work.folder().Write(
      "ssh.sh", "[ $1 = dead ] && { echo $1 >> " + work.folder() / "dead" +
                    "; echo 'no route to host' >&2; exit 255; }\nsh -c \"$2\"\n");
  CommandEngine engine = MakeEngine("sh " + ssh + " {host} {command}",
                                    {.program = worker, .hosts = {"a", "dead", "b"}});
  const auto outcome = work.RunWith(engine);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome.value().ok());
  EXPECT_EQ(work.Done(), 30U);
  // Two in a row, and the host gets no more.
  EXPECT_EQ(ReadWholeFile(work.folder() / "dead").value(), "dead\ndead\n");
}

TEST(CommandEngine, OneCallMayDoAll) {
  Work work(5);
  work.folder().Write("out-1", "good\n");
  // Leaves out 4 the first time.
  const std::string launcher = work.folder().Write("all.sh",
                                                   "echo $1 >> $2/calls\n"
                                                   "case $1 in 0,2-4) L='0 2 3';; *) L=4;; esac\n"
                                                   "for i in $L; do echo good > $2/out-$i; done\n");
  CommandEngine engine = MakeEngine("sh " + launcher + " {indexes} {run}", {});
  const auto outcome = work.RunWith(engine);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome.value().ok());
  EXPECT_EQ(ReadWholeFile(work.folder() / "calls").value(), "0,2-4\n4\n");
}

TEST(CommandEngine, StoppingEndsTheLaunchersAndKeepsOutputs) {
  Work work(6);
  const std::string worker = Worker(work, "[ $I -ge 2 ] && sleep 60\necho good > $OUT");
  CommandEngine engine =
      MakeEngine("{program} shard {verb} {run} {index}", {.program = worker, .slots = 2},
                 {.stop = [&] { return work.Done() == 2 && Tries(work) == 4; }});
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = work.RunWith(engine);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome.value().stopped);
  EXPECT_EQ(outcome.value().finished, 2U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(work.Done(), 2U);
}

TEST(CommandEngine, ALauncherThatIsNotThereIsAnError) {
  Work work(2);
  CommandEngine engine = MakeEngine("culprit-no-such-launcher {command}", {.program = "culprit"});
  const auto outcome = work.RunWith(engine);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().file, "culprit-no-such-launcher");
}

TEST(LastLines, AreTheEndOfALongFile) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "line " + std::to_string(i) + "\n";
  const std::string path = folder.Write("log", text);
  EXPECT_EQ(LastLines(path, 2), (std::vector<std::string>{"line 9998", "line 9999"}));
  EXPECT_TRUE(LastLines(folder / "none", 2).empty());
  EXPECT_EQ(LastLines(folder.Write("short", "a\n\nb"), 5), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace culprit::scale::TEST_FILE
