// SPDX-License-Identifier: Apache-2.0
//
// culprit profile and culprit infer from outside: against what was planted in
// simulated servers, and against four real bugs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/shell_run.h"

namespace culprit::TEST_FILE {
namespace {

using cli::RunShell;
using cli::ShellOutcome;
using cli::TemporaryFolder;
using nlohmann::json;

ShellOutcome Culprit(const std::string& arguments) {
  return RunShell(std::string(CULPRIT_BINARY) + " " + arguments);
}

json Infer(const std::string& arguments) {
  const ShellOutcome outcome =
      RunShell(std::string(CULPRIT_BINARY) + " infer --json " + arguments + " 2>/dev/null");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  return json::parse(outcome.text);
}

// The place of a function in the list, from 1; co-owners share their row's. 0:
// not there.
size_t PlaceOf(const json& inferred, const std::string& function) {
  for (size_t i = 0; i < inferred["functions"].size(); ++i) {
    const json& row = inferred["functions"][i];
    if (row["function"] == function) return i + 1;
    for (const json& other : row["co_owners"]) {
      if (other == function) return i + 1;
    }
  }
  return 0;
}

// The files of the traces of a corpus, by name.
std::vector<std::string> Traces(const std::string& corpus) {
  const json list = json::parse(Culprit("corpus list --json " + corpus).text);
  std::vector<std::pair<std::string, std::string>> named;
  for (const json& trace : list["traces"]) {
    named.emplace_back(trace["name"], corpus + "/" + trace["file"].get<std::string>());
  }
  std::sort(named.begin(), named.end());
  std::vector<std::string> files;
  for (const auto& [name, file] : named) files.push_back(file);
  return files;
}

class PlantedLoop : public testing::Test {
 protected:
  std::string Synth(const std::string& name, const std::string& flags) {
    std::string corpus = folder_ / name;
    const ShellOutcome outcome =
        Culprit("synth --like server --traces 2 -o " + corpus + " " + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return corpus;
  }
  std::string Profile(const std::string& corpus) {
    std::string profile = corpus + ".cprof";
    const ShellOutcome outcome = Culprit("profile " + corpus + " -o " + profile);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return profile;
  }

  TemporaryFolder folder_;
};

TEST_F(PlantedLoop, IsFoundWhereTheProfileCoversItAndNotInProfileWhereItDoesNot) {
  const std::string healthy = Synth("healthy", "--seed 3 --bugs none");
  const std::string seen = Synth("seen", "--seed 5 --bugs accept-retry-loop");
  const std::string buggy = Synth("buggy", "--seed 4 --bugs accept-retry-loop --no-syscall-stacks");
  const std::string normal = Traces(healthy)[0];
  for (const std::string& trace : Traces(buggy)) {
    const json covered = Infer(trace + " -p " + Profile(seen) + " --against " + normal);
    EXPECT_EQ(PlaceOf(covered, "libapr!apr_socket_accept"), 1u);
    EXPECT_EQ(PlaceOf(covered, "httpd!unixd_accept"), 1u);
    EXPECT_EQ(PlaceOf(covered, "httpd!child_main"), 1u);
    std::filesystem::remove(seen + ".cprof");
    const json unseen = Infer(trace + " -p " + Profile(healthy) + " --against " + normal);
    EXPECT_EQ(PlaceOf(unseen, "[not in profile]"), 1u);
    EXPECT_EQ(unseen["named"], 0);
    std::filesystem::remove(healthy + ".cprof");
  }
  const json null = Infer(Traces(healthy)[1] + " -p " + Profile(healthy) + " --against " + normal);
  EXPECT_TRUE(null["functions"].empty());
}

class RealBug : public testing::Test {
 protected:
  // Imports a recording of a case; its trace.
  std::string Import(const std::string& bug, const std::string& file) {
    const std::string data = std::string(CULPRIT_SOURCE_DIR) + "/../shared/data/bugs/" + bug + "/";
    std::string path = data + file + ".data.zst";
    if (!std::filesystem::exists(path)) path = data + file + ".txt.zst";
    if (!std::filesystem::exists(path)) return {};
    const std::string corpus = folder_ / (bug + "-" + file);
    const ShellOutcome outcome = Culprit("import " + path + " -o " + corpus);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return Traces(corpus).front();
  }
  // False: the recordings are not here.
  bool Load(const std::string& bug) {
    normal_ = Import(bug, "normal.trace");
    if (normal_.empty()) return false;
    buggy_ = Import(bug, "buggy.trace");
    profile_ = folder_ / "n.cprof";
    const ShellOutcome outcome =
        Culprit("profile " + Import(bug, "normal.chains") + " -o " + profile_);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return true;
  }
  json Answer() { return Infer(buggy_ + " -p " + profile_ + " --against " + normal_); }
  // Names come from this machine's libraries, which may be others.
  bool Knows(const std::string& function) {
    return Culprit("profile show " + profile_ + " --function '" + function + "'")
               .text.find(function) != std::string::npos;
  }

  TemporaryFolder folder_;
  std::string normal_;
  std::string buggy_;
  std::string profile_;
};

TEST_F(RealBug, HttpdsAcceptLoopIsFirst) {
  if (!Load("httpd-2.2.3-37680")) GTEST_SKIP() << "no recordings of httpd here";
  const json inferred = Answer();
  ASSERT_FALSE(inferred["functions"].empty());
  // Its binary is not part of the recording: the first row are the callers of
  // accept4 by their offsets, in libapr and in httpd.
  const json& first = inferred["functions"][0];
  EXPECT_EQ(first["symbols"], json({"accept4"}));
  EXPECT_NEAR(first["score"].get<double>(), 30'000, 100);
  EXPECT_EQ(inferred["excess_calls"][0]["error"], "EAGAIN");
  EXPECT_EQ(inferred["null_rows"], 0);
}

TEST_F(RealBug, SqlitesCommitsAreFirst) {
  if (!Load("sqlite-3.40-autocommit-fsync")) GTEST_SKIP() << "no recordings of sqlite here";
  if (!Knows("sqlite3PagerCommitPhaseOne")) GTEST_SKIP() << "libsqlite3 of the recording not here";
  const json inferred = Answer();
  EXPECT_EQ(PlaceOf(inferred, "libsqlite3.so.0.8.6!sqlite3PagerCommitPhaseOne"), 1u);
  EXPECT_EQ(inferred["time"][0]["function"], "libsqlite3.so.0.8.6!sqlite3PagerCommitPhaseOne");
}

TEST_F(RealBug, RedisThatOnlyUsesTheCpuBlamesNobody) {
  if (!Load("redis-7.0.15-watch")) GTEST_SKIP() << "no recordings of redis here";
  const json inferred = Answer();
  EXPECT_TRUE(inferred["functions"].empty());
  EXPECT_NE(inferred["notes"].dump().find("nobody is blamed"), std::string::npos);
}

TEST_F(RealBug, PostgresWakesOthersWithCallsThatANormalRunDoesNotMake) {
  if (!Load("postgresql-15-notify-convoy")) GTEST_SKIP() << "no recordings of postgres here";
  const json inferred = Answer();
  EXPECT_EQ(PlaceOf(inferred, "[not in profile]"), 1u);
  EXPECT_EQ(inferred["excess_calls"][0]["symbol"], "kill");
  if (!Knows("XLogFlush")) GTEST_SKIP() << "the server of the recording is not here";
  EXPECT_EQ(PlaceOf(inferred, "postgres!XLogFlush"), 2u);
}

}  // namespace
}  // namespace culprit::TEST_FILE
