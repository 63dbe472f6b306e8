// SPDX-License-Identifier: Apache-2.0
//
// culprit analyze from outside: the verdict says what `culprit mine` finds, on one
// screen, conserves time, and the report is the same bytes for any number of
// threads. What the page draws is tested in a browser (web/test).
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "cli/shell_run.h"
#include "page/page.h"

namespace culprit::TEST_FILE {
namespace {

using cli::RunShell;
using cli::ShellOutcome;
using nlohmann::json;

class AnalyzeProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = new TestFolder;
    const ShellOutcome made = RunShell(std::string(CULPRIT_BINARY) +
                                       " synth --traces 16 --seed 5 -o " + (*shared_ / "c"));
    ASSERT_EQ(made.code, 0) << made.text;
  }
  static void TearDownTestSuite() {
    delete shared_;
    shared_ = nullptr;
  }
  void SetUp() override {
    if (!page::FindBundle().ok()) GTEST_SKIP() << "the web page is not built into this program";
  }

  ShellOutcome Culprit(const std::string& arguments) {
    return RunShell("cd " + (folder_ / ".") + " && CULPRIT_SIGNATURES=" + (folder_ / "store.json") +
                    " " + CULPRIT_BINARY + " " + arguments);
  }
  std::string Corpus() const { return *shared_ / "c"; }

  static TestFolder* shared_;
  TestFolder folder_;
};

TestFolder* AnalyzeProgram::shared_ = nullptr;

json Verdict(const std::string& text) { return json::parse(text.substr(0, text.rfind('}') + 1)); }

TEST_F(AnalyzeProgram, TimeIsConservedInBothBreakdowns) {
  const json verdict = Verdict(Culprit("analyze --json " + Corpus()).text);
  for (const char* key : {"own_ns", "behind_ns"}) {
    int64_t sum_ns = 0;
    for (const auto& [name, ns] : verdict[key].items()) sum_ns += ns.get<int64_t>();
    EXPECT_EQ(sum_ns, verdict["total_ns"].get<int64_t>()) << key;
  }
}

TEST_F(AnalyzeProgram, FindingsAreTheFirstClustersOfMining) {
  const json verdict = Verdict(Culprit("analyze --json " + Corpus()).text);
  const json mined = json::parse(Culprit("mine --json " + Corpus()).text);
  ASSERT_GE(verdict["findings"].size(), 5U);
  EXPECT_EQ(verdict["findings"][0]["cluster"], mined["clusters"][0]["id"]);
  for (const json& finding : verdict["findings"]) {
    const auto found = std::find_if(mined["clusters"].begin(), mined["clusters"].end(),
                                    [&](const json& c) { return c["id"] == finding["cluster"]; });
    ASSERT_NE(found, mined["clusters"].end());
    EXPECT_EQ(finding["time_ns"], (*found)["time_ns"]);
    EXPECT_EQ(finding["status"], "new");
    // The next command works as it stands.
    EXPECT_EQ(Culprit(finding["command"].get<std::string>().substr(8)).code, 0);
  }
}

TEST_F(AnalyzeProgram, VerdictFitsOneScreen) {
  const ShellOutcome outcome = Culprit("analyze " + Corpus() + " 2>/dev/null");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_LE(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 25);
  EXPECT_NE(outcome.text.find("16 traces"), std::string::npos) << outcome.text;
}

TEST_F(AnalyzeProgram, ReportIsTheSameForAnyNumberOfThreads) {
  ASSERT_EQ(Culprit("analyze -j 1 -o one.html " + Corpus()).code, 0);
  ASSERT_EQ(Culprit("analyze -j 8 -o eight.html " + Corpus()).code, 0);
  EXPECT_TRUE(ReadWholeFile(folder_ / "one.html").value() ==
              ReadWholeFile(folder_ / "eight.html").value());
}

TEST_F(AnalyzeProgram, ReplacesItsOwnReportAndNothingElse) {
  ASSERT_EQ(Culprit("analyze " + Corpus()).code, 0);
  ASSERT_EQ(Culprit("analyze " + Corpus()).code, 0);
  ASSERT_TRUE(WriteWholeFile(folder_ / "notes.html", "<p>mine</p>", Overwrite::kRefuse).ok());
  const ShellOutcome refused = Culprit("analyze -o notes.html " + Corpus());
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.text.find("notes.html"), std::string::npos);
  EXPECT_EQ(ReadWholeFile(folder_ / "notes.html").value(), "<p>mine</p>");
}

TEST_F(AnalyzeProgram, ASignatureTellsKnownFromNew) {
  const json verdict = Verdict(Culprit("analyze --json " + Corpus()).text);
  const std::string id = verdict["findings"][1]["cluster"];
  const ShellOutcome added =
      Culprit("signatures add --name seen --from " + id + " " + Corpus() + " --status known");
  ASSERT_EQ(added.code, 0) << added.text;
  const json again = Verdict(Culprit("analyze --json " + Corpus()).text);
  const auto found = std::find_if(again["findings"].begin(), again["findings"].end(),
                                  [&](const json& finding) { return finding["cluster"] == id; });
  ASSERT_NE(found, again["findings"].end());
  EXPECT_EQ((*found)["status"], "known");
}

TEST_F(AnalyzeProgram, SaysWhatIsWrongWithAPathThatIsNothing) {
  const ShellOutcome outcome = Culprit("analyze nowhere");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.text.find("nowhere"), std::string::npos);
}

}  // namespace
}  // namespace culprit::TEST_FILE
