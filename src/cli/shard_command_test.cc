// SPDX-License-Identifier: Apache-2.0
//
// Runs in shards through the commands; tests/slurm has them on a real cluster.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "cli/shell_run.h"
#include "episode/syscall_trace.h"
#include "trace/trace_writer.h"

namespace culprit::cli::TEST_FILE {
namespace {

namespace fs = std::filesystem;

class ShardCommandTest : public testing::Test {
 protected:
  ShardCommandTest() {
    EXPECT_EQ(Run({"synth", "-o", corpus_, "--traces", "6", "--dur", "2s"}), 0) << err_;
    // The report is made from the same evidence; here the verdict is enough.
    EXPECT_EQ(Analyze({}), 0) << err_;
    plain_ = out_;
    EXPECT_FALSE(plain_.empty());
  }

  int Run(const std::vector<std::string>& words) {
    BufferOutput output;
    const int code = RunCulprit(words, output);
    out_ = output.out();
    err_ = output.err();
    return code;
  }
  int Analyze(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"analyze", corpus_, "--json", "--no-summaries"};
    words.insert(words.end(), more.begin(), more.end());
    const fs::path before = fs::current_path();
    fs::current_path(folder_.path());  // where report.html goes
    const int code = Run(words);
    fs::current_path(before);
    return code;
  }
  // A corpus of system calls with stacks, of six traces.
  int MakeCalls(const std::string& corpus) {
    std::vector<std::string> words = {"corpus", "add", corpus};
    for (int i = 0; i < 6; ++i) {
      episode::SyscallTrace made;
      for (int call = 0; call < 40; ++call) {
        const bool reads = call % (i + 2) != 0;
        made.Call("worker" + std::to_string(call % 3), reads ? "read" : "write", call * 1000, 100,
                  "app!main;app!Loop" + std::to_string(call % 5) + ";libc.so.6!x");
      }
      made.small.trace.metadata.machine = "box" + std::to_string(i);
      const std::string path = folder_ / ("calls" + std::to_string(i) + ".ctrace");
      EXPECT_TRUE(WriteTrace(made.small.trace, path, Overwrite::kAllow).ok());
      words.push_back(path);
    }
    return Run(words);
  }
  bool Said(const std::string& text) const { return err_.find(text) != std::string::npos; }
  std::vector<uint64_t> Missing(size_t stage) {
    Run({"shard", "status", run_, "--json"});
    return nlohmann::json::parse(out_)["stages"][stage]["missing"];
  }

  TestFolder folder_;
  const std::string corpus_ = folder_ / "a fleet's";
  const std::string run_ = folder_ / "the run's folder";
  std::string plain_;
  std::string out_;
  std::string err_;
};

TEST_F(ShardCommandTest, ShardsChangeNothing) {
  ASSERT_EQ(Analyze({"--shards", "3"}), 0) << err_;
  EXPECT_EQ(out_, plain_);
  EXPECT_TRUE(Said("map: 3 tasks")) << err_;
  // Its folder was beside the corpus and is gone.
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().string().find(".run-"), std::string::npos) << entry.path();
  }
}

TEST_F(ShardCommandTest, GoesOnFromARunFolder) {
  ASSERT_EQ(Analyze({"--shards", "3", "--run", run_}), 0) << err_;
  EXPECT_EQ(Run({"shard", "status", run_}), 0);
  // One output is damaged, what was made from it is lost.
  fs::resize_file(run_ + "/map/00001", 40);
  fs::remove(run_ + "/reduce/00000");
  fs::remove(run_ + "/finalize/00000");
  EXPECT_EQ(Missing(0), std::vector<uint64_t>{1});
  EXPECT_EQ(Missing(2), std::vector<uint64_t>{0});
  EXPECT_EQ(Run({"shard", "reduce", run_, "0"}), 1);
  EXPECT_TRUE(Said("map/00001: is damaged")) << err_;
  ASSERT_EQ(Analyze({"--shards", "3", "--run", run_}), 0) << err_;
  EXPECT_EQ(out_, plain_);
  EXPECT_TRUE(Said("map: 3 tasks, 2 done before")) << err_;
  EXPECT_TRUE(Missing(0).empty());
}

TEST_F(ShardCommandTest, VerbsByHandMakeAWholeRun) {
  ASSERT_EQ(Analyze({"--shards", "2", "--run", run_}), 0) << err_;
  const std::string whole = ReadWholeFile(run_ + "/finalize/00000").value();
  for (const char* verb : {"map", "reduce", "finalize"}) {
    for (const auto& entry : fs::directory_iterator(run_ + "/" + verb)) fs::remove(entry.path());
  }
  EXPECT_EQ(Run({"shard", "map", run_, "1"}), 0) << err_;
  EXPECT_EQ(Run({"shard", "map", run_, "0"}), 0) << err_;
  EXPECT_EQ(Run({"shard", "map", run_, "0"}), 0) << err_;
  EXPECT_TRUE(Said("done already"));
  EXPECT_EQ(Run({"shard", "map", run_, "0", "--again", "-j", "2"}), 0) << err_;
  EXPECT_FALSE(Said("done already"));
  EXPECT_EQ(Run({"shard", "reduce", run_, "0"}), 0) << err_;
  EXPECT_EQ(Run({"shard", "finalize", run_, "0"}), 0) << err_;
  EXPECT_EQ(ReadWholeFile(run_ + "/finalize/00000").value(), whole);
  EXPECT_EQ(Run({"shard", "map", run_, "2"}), 1);
  EXPECT_EQ(Run({"shard", "map", run_, "one"}), 1);
  EXPECT_EQ(Run({"shard", "status", corpus_}), 1);
}

TEST_F(ShardCommandTest, ALauncherGivesTheSame) {
  ASSERT_EQ(Analyze({"--engine", "command", "--command", "sh -c {command}", "--program",
                     CULPRIT_BINARY, "--shards", "4", "--run", run_, "-j", "2"}),
            0)
      << err_;
  EXPECT_EQ(out_, plain_);
  EXPECT_TRUE(fs::exists(run_ + "/logs/map-0.log"));
}

TEST_F(ShardCommandTest, MineImpactAndContrastAreTheSameByAnyEngine) {
  const std::vector<std::vector<std::string>> commands = {
      {"mine", corpus_, "--json"},
      {"impact", corpus_, "--json", "--resamples", "50"},
      {"contrast", corpus_, "--json", "--deals", "50"}};
  for (const std::vector<std::string>& command : commands) {
    ASSERT_EQ(Run(command), 0) << err_;
    const std::string plain = out_;
    const auto same = [&](const std::vector<std::string>& more) {
      std::vector<std::string> words = command;
      words.insert(words.end(), more.begin(), more.end());
      EXPECT_EQ(Run(words), 0) << err_;
      EXPECT_EQ(out_, plain) << command.front();
    };
    same({"--shards", "3"});
    EXPECT_TRUE(Said("map: 3 tasks")) << err_;
    same({"--engine", "command", "--command", "sh -c {command}", "--program", CULPRIT_BINARY,
          "--shards", "2", "--memory", "1GB"});
    EXPECT_TRUE(Said("finalize: 1 task")) << err_;
  }
}

TEST_F(ShardCommandTest, PatternsMinedByAnEngineAreTheSame) {
  const std::vector<std::string> mine = {"mine", corpus_, "--json", "--min-share", "0.3%"};
  ASSERT_EQ(Run(mine), 0) << err_;
  const std::string plain = out_;
  const auto same = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = mine;
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(Run(words), 0) << err_;
    EXPECT_EQ(out_, plain);
  };
  same({"--subtrees", "3"});
  EXPECT_TRUE(Said("map: 3 tasks")) << err_;
  same({"--subtrees", "5", "--max-patterns", "2000000"});
  const std::vector<std::string> launched = {
      "--engine",  "command",      "--command",  "sh -c {command}",
      "--program", CULPRIT_BINARY, "--shards",   "2",
      "--run",     run_,           "--subtrees", "2"};
  same(launched);
  // Each round of the search is a run of its own below that of the evidence.
  std::vector<std::string> runs;
  for (const auto& entry : fs::directory_iterator(run_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("patterns-")) runs.push_back(entry.path().string());
  }
  ASSERT_FALSE(runs.empty());
  for (const std::string& run : runs) {
    EXPECT_EQ(Run({"shard", "status", run}), 0);
    fs::resize_file(run + "/map/00001", 10);
    fs::remove(run + "/finalize/00000");
    EXPECT_EQ(Run({"shard", "status", run}), 1);
  }
  same(launched);
  EXPECT_TRUE(Said("map: 2 tasks, 1 done before")) << err_;
  ASSERT_EQ(Analyze({"--subtrees", "2", "--shards", "2"}), 0) << err_;
  EXPECT_EQ(out_, plain_);
}

TEST_F(ShardCommandTest, PatternsBeyondABoundAreThoseOfOneProcess) {
  const std::vector<std::string> mine = {"mine", corpus_,          "--json", "--min-share",
                                         "0.3%", "--max-patterns", "3"};
  ASSERT_EQ(Run(mine), 0) << err_;
  const std::string plain = out_;
  std::vector<std::string> words = mine;
  words.insert(words.end(), {"--subtrees", "3"});
  ASSERT_EQ(Run(words), 0) << err_;
  EXPECT_EQ(out_, plain);
}

TEST_F(ShardCommandTest, DiffReadsBothCorporaByAnyEngine) {
  const std::string after = folder_ / "after";
  ASSERT_EQ(Run({"synth", "-o", after, "--traces", "6", "--dur", "2s", "--seed", "7"}), 0) << err_;
  const std::vector<std::string> diff = {"diff", corpus_, after, "--json", "--deals", "50"};
  ASSERT_EQ(Run(diff), 0) << err_;
  const std::string plain = out_;
  std::vector<std::string> words = diff;
  words.insert(words.end(), {"--shards", "3", "--run", run_});
  ASSERT_EQ(Run(words), 0) << err_;
  EXPECT_EQ(out_, plain);
  EXPECT_EQ(Run({"shard", "status", run_ + "/before"}), 0);
  EXPECT_EQ(Run({"shard", "status", run_ + "/after"}), 0);
  words = diff;
  words.insert(words.end(), {"--engine", "command", "--command", "sh -c {command}", "--program",
                             CULPRIT_BINARY, "--shards", "2"});
  ASSERT_EQ(Run(words), 0) << err_;
  EXPECT_EQ(out_, plain);
}

TEST_F(ShardCommandTest, DiffLooksForBothCorporaBeforeItReadsOne) {
  const std::string missing = folder_ / "missing";
  EXPECT_EQ(Run({"diff", corpus_, missing, "--shards", "3", "--run", run_}), 1);
  EXPECT_TRUE(Said(missing)) << err_;
  EXPECT_FALSE(fs::exists(run_));
  EXPECT_EQ(Run({"diff", corpus_, missing}), 1);
  EXPECT_TRUE(Said(missing)) << err_;
}

TEST_F(ShardCommandTest, AProfileIsTheSameByAnyEngine) {
  const std::string calls = folder_ / "calls";
  ASSERT_EQ(MakeCalls(calls), 0) << err_;
  const std::string plain = folder_ / "plain.cprof";
  ASSERT_EQ(Run({"profile", calls, "-o", plain}), 0) << err_;
  const std::string bytes = ReadWholeFile(plain).value();
  const std::string made = folder_ / "made.cprof";
  const auto profile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"profile", calls, "-o", made, "--force"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  };
  ASSERT_EQ(profile({"--shards", "3", "--run", run_}), 0) << err_;
  EXPECT_EQ(ReadWholeFile(made).value(), bytes);
  // Goes on from what is there.
  fs::resize_file(run_ + "/reduce/00001", 30);
  fs::remove(run_ + "/finalize/00000");
  ASSERT_EQ(profile({"--shards", "3", "--run", run_}), 0) << err_;
  EXPECT_TRUE(Said("reduce: 2 tasks, 1 done before")) << err_;
  EXPECT_EQ(ReadWholeFile(made).value(), bytes);
  ASSERT_EQ(profile({"--engine", "command", "--command", "sh -c {command}", "--program",
                     CULPRIT_BINARY, "--shards", "2"}),
            0)
      << err_;
  EXPECT_EQ(ReadWholeFile(made).value(), bytes);
  EXPECT_EQ(profile({"--shards", "2", plain}), 1) << "only one corpus";
  // Where the sequences do not fit it stops and tells of parts.
  EXPECT_EQ(profile({"--memory", "500B"}), 1);
  EXPECT_TRUE(Said("allowed are 500")) << err_;
  EXPECT_TRUE(Said("--shards")) << err_;
  ASSERT_EQ(profile({"--memory", "1MB"}), 0) << err_;
  EXPECT_EQ(ReadWholeFile(made).value(), bytes);
}

TEST_F(ShardCommandTest, TellsWhatFailedWithItsLog) {
  const std::string launcher = folder_.Write(
      "launcher.sh", "[ $2 = 1 ] && { echo no scratch space; exit 7; }\nsh -c \"$1\"");
  const std::vector<std::string> words = {"--engine",  "command",
                                          "--command", "sh " + launcher + " {command} {index}",
                                          "--program", CULPRIT_BINARY,
                                          "--shards",  "3",
                                          "--run",     run_};
  EXPECT_EQ(Analyze(words), 1);
  EXPECT_TRUE(Said("map 1 failed 3 times: its launcher ended with exit code 7")) << err_;
  EXPECT_TRUE(Said("no scratch space"));
  EXPECT_TRUE(Said("map failed for 1 task of 3 (1); 2 of 3 tasks done"));
  EXPECT_EQ(Run({"shard", "status", run_}), 1);
  EXPECT_NE(out_.find("no scratch space"), std::string::npos) << out_;
  ASSERT_EQ(Analyze({"--shards", "3", "--run", run_}), 0) << err_;
  EXPECT_EQ(out_, plain_);
}

TEST_F(ShardCommandTest, FlagsThatDoNotFitAreRefused) {
  EXPECT_EQ(Analyze({"--partition", "short"}), 1);
  EXPECT_TRUE(Said("--partition goes with --engine slurm"));
  EXPECT_EQ(Analyze({"--engine", "command"}), 1);
  EXPECT_TRUE(Said("needs --command"));
  EXPECT_EQ(Analyze({"--engine", "command", "--command", "ssh {host} {command}"}), 1);
  EXPECT_TRUE(Said("no --hosts"));
  EXPECT_EQ(Analyze({"--engine", "command", "--command", "sh -c {command}", "--hosts", "a"}), 1);
  EXPECT_EQ(Analyze({"--shards", "0"}), 1);
  // A folder that is somebody else's stays as it is.
  EXPECT_EQ(Analyze({"--run", corpus_}), 1);
  EXPECT_EQ(Run({"analyze", corpus_ + "/truth.json", "--shards", "2"}), 1);
  EXPECT_TRUE(Said("only a corpus"));
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
