// SPDX-License-Identifier: Apache-2.0
//
// culprit mine and culprit signatures from outside, against what was planted in
// simulated corpora and against a real convoy in PostgreSQL.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/shell_run.h"

namespace culprit::TEST_FILE {
namespace {

using cli::RunShell;
using cli::ShellOutcome;
using cli::TemporaryFolder;
using nlohmann::json;

ShellOutcome Culprit(const std::string& arguments, const std::string& store = "/nonexistent") {
  return RunShell("CULPRIT_SIGNATURES=" + store + " " + CULPRIT_BINARY + " " + arguments);
}

json Mine(const std::string& arguments, const std::string& store = "/nonexistent") {
  const ShellOutcome outcome = Culprit("mine --json " + arguments, store);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  return json::parse(outcome.text);
}

bool Contains(const json& frames, const json& pattern) {
  size_t found = 0;
  for (const json& frame : frames) {
    if (found < pattern.size() && frame == pattern[found]) ++found;
  }
  return found == pattern.size();
}

bool HasPattern(const json& cluster, const json& pattern) {
  return std::any_of(cluster["patterns"].begin(), cluster["patterns"].end(),
                     [&](const json& p) { return Contains(p["frames"], pattern); });
}

std::string KindOf(const json& bug) {
  const std::string kind = bug["event_kind"];
  if (kind == "wait") return "wait";
  return kind == "running" ? "run" : "";  // system calls are not mined
}

class PlantedTruth : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    corpus_ = folder_ / "c";
    const ShellOutcome outcome =
        Culprit("synth --traces 16 --seed " + std::to_string(GetParam()) + " -o " + corpus_);
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    truth_ = json::parse(ReadWholeFile(corpus_ + "/truth.json").value());
  }

  TemporaryFolder folder_;
  std::string corpus_;
  json truth_;
};

TEST_P(PlantedTruth, EveryBugIsOneOfTheFirstTenClustersOfItsKindWithAllItsTime) {
  const json mined = Mine(corpus_);
  for (const json& bug : truth_["bugs"]) {
    const std::string kind = KindOf(bug);
    if (bug["noise"].get<bool>() || kind.empty()) continue;
    const auto cost_ns = bug["cost_ns"].get<int64_t>();
    size_t rank = 0;
    bool found = false;
    for (const json& cluster : mined["clusters"]) {
      if (cluster["kind"] != kind || ++rank > 10 || found) continue;
      const auto own_ns = cluster["cost_ns"].get<int64_t>();
      // At least 95 % of the planted time, and hardly anything else.
      found = HasPattern(cluster, bug["pattern"]) && own_ns >= cost_ns / 100 * 95 &&
              own_ns <= cost_ns / 100 * 105;
    }
    EXPECT_TRUE(found) << bug["name"] << ", " << cost_ns << " ns";
  }
}

TEST_P(PlantedTruth, DifferentBugsAreNeverOneCluster) {
  const json mined = Mine(corpus_);
  for (const json& cluster : mined["clusters"]) {
    std::vector<std::string> bugs;
    for (const json& bug : truth_["bugs"]) {
      if (bug["noise"].get<bool>() || KindOf(bug) != cluster["kind"]) continue;
      if (HasPattern(cluster, bug["pattern"])) bugs.push_back(bug["name"]);
    }
    EXPECT_LE(bugs.size(), 1u) << cluster["id"] << ": " << json(bugs);
  }
}

TEST_P(PlantedTruth, TimeOutsideInstancesIsNotMined) {
  const json mined = Mine(corpus_);
  for (const json& bug : truth_["bugs"]) {
    if (!bug["scenario"].get<std::string>().empty()) continue;
    for (const json& cluster : mined["clusters"]) {
      EXPECT_FALSE(HasPattern(cluster, bug["pattern"])) << bug["name"];
    }
  }
}

TEST_P(PlantedTruth, TheFirstTenClustersHaveAllBugsAndNoNoise) {
  const json mined = Mine(corpus_);
  for (const json& bug : truth_["bugs"]) {
    const std::string kind = KindOf(bug);
    if (kind.empty()) continue;
    bool found = false;
    for (size_t i = 0; i < 10 && i < mined["clusters"].size(); ++i) {
      const json& cluster = mined["clusters"][i];
      found = found || (cluster["kind"] == kind && HasPattern(cluster, bug["pattern"]));
    }
    EXPECT_EQ(found, !bug["noise"].get<bool>()) << bug["name"];
  }
}

// What strikes inside instances by design costs users time like any bug does; a
// signature says that it is innocent, once for all corpora.
TEST_P(PlantedTruth, WhatIsKnownToBeByDesignLeavesTheFirstTenToTheBugs) {
  const std::string store = folder_ / "store.json";
  for (const char* frame : {"dp.sys!HoldUntilSettled", "fs.sys!ReadDirect"}) {
    ASSERT_EQ(
        Culprit(std::string("signatures add --status ignored --pattern '") + frame + "'", store)
            .code,
        0);
  }
  const json mined = Mine(corpus_, store);
  for (const json& bug : truth_["bugs"]) {
    const std::string kind = KindOf(bug);
    if (kind.empty()) continue;
    bool found = false;
    for (size_t i = 0; i < 10 && i < mined["clusters"].size(); ++i) {
      const json& cluster = mined["clusters"][i];
      found = found || (cluster["kind"] == kind && HasPattern(cluster, bug["pattern"]));
    }
    EXPECT_EQ(found, !bug["noise"].get<bool>()) << bug["name"];
  }
}

TEST_P(PlantedTruth, RowsAndRestSumToTheTotalAndThreadsDoNotMatter) {
  const ShellOutcome one = Culprit("mine --json --jobs 1 " + corpus_);
  const ShellOutcome four = Culprit("mine --json --jobs 4 " + corpus_);
  EXPECT_EQ(one.text, four.text);
  const json mined = json::parse(one.text);
  int64_t gains_ns = 0;
  for (const json& cluster : mined["clusters"]) gains_ns += cluster["gain_ns"].get<int64_t>();
  EXPECT_EQ(gains_ns + mined["rest_ns"].get<int64_t>(), mined["total_ns"].get<int64_t>());
  const json& account = mined["account"];
  int64_t leaves_ns = 0;
  for (const char* leaf :
       {"running_ns", "not_sampled_ns", "ready_ns", "hardware_ns", "unattributed_ns"}) {
    leaves_ns += account[leaf].get<int64_t>();
  }
  EXPECT_EQ(leaves_ns, mined["total_ns"].get<int64_t>());
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlantedTruth, testing::Values(1, 3, 5));

TEST(Mine, ADamagedTraceAmongManyIsNamedAndSkipped) {
  const TemporaryFolder folder;
  const std::string corpus = folder / "c";
  ASSERT_EQ(Culprit("synth --traces 3 --dur 3s -o " + corpus).code, 0);
  std::filesystem::path victim;
  for (const auto& entry : std::filesystem::directory_iterator(corpus + "/traces")) {
    if (entry.path().extension() == ".ctrace") victim = entry.path();
  }
  ASSERT_TRUE(WriteWholeFile(victim.string(), "not a trace", Overwrite::kAllow).ok());
  const json mined = Mine(corpus);
  EXPECT_EQ(mined["traces"], 2);
  ASSERT_EQ(mined["unreadable"].size(), 1u);
  const ShellOutcome text = Culprit("mine " + corpus);
  EXPECT_NE(text.text.find("1 trace not read"), std::string::npos) << text.text;
}

class Convoy : public testing::Test {
 protected:
  // The recording as a trace; empty if it is not here. The text, for it has the
  // names: those of perf.data are found only on a machine with the same kernel.
  std::string Import(const std::string& name) {
    const std::string data = CULPRIT_SOURCE_DIR
                             "/../shared/data/bugs/postgresql-15-notify-convoy/" +
                             name + ".sched.txt.zst";
    if (!std::filesystem::exists(data)) return {};
    const ShellOutcome imported = Culprit("import '" + data + "' -o " + (folder_ / name));
    EXPECT_EQ(imported.code, 0) << imported.text;
    return folder_ / name;
  }
  static json Waits(const json& mined) {
    json waits = json::array();
    for (const json& cluster : mined["clusters"]) {
      if (cluster["kind"] == "wait") waits.push_back(cluster);
    }
    return waits;
  }

  TemporaryFolder folder_;
};

TEST_F(Convoy, TheLockAndTheSyncBehindItHeadTheWaitsOfTheBuggyRunOnly) {
  const std::string buggy = Import("buggy");
  if (buggy.empty()) GTEST_SKIP() << "needs the PostgreSQL recordings";
  const json mined = Mine(buggy);
  const json waits = Waits(mined);
  ASSERT_GE(waits.size(), 2u);
  EXPECT_TRUE(HasPattern(
      waits[0], {"postgres!PreCommit_Notify", "postgres!LockSharedObject", "postgres!ProcSleep"}));
  EXPECT_TRUE(HasPattern(waits[1], {"postgres!XLogFlush", "libc.so.6!fdatasync"}));
  const auto total_ns = mined["total_ns"].get<int64_t>();
  EXPECT_GT(waits[0]["time_ns"].get<int64_t>(), total_ns / 10 * 7);
  // One sync delays all who wait for the lock.
  EXPECT_GT(waits[1]["cost_ns"].get<int64_t>(), 8 * waits[1]["distinct_ns"].get<int64_t>());

  const json normal = Waits(Mine(Import("normal")));
  for (const json& cluster : normal) {
    EXPECT_FALSE(HasPattern(cluster, {"postgres!PreCommit_Notify"}));
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE
