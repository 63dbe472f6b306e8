// SPDX-License-Identifier: Apache-2.0
//
// impact, contrast and diff on figure 1 of 003 and on input that makes no sense.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "causality/figure_one.h"
#include "cli/buffer_output.h"
#include "cli/causality_text.h"
#include "cli/diff_report.h"
#include "cli/run.h"
#include "cli/shell_run.h"
#include "corpus/corpus.h"

namespace culprit::cli::TEST_FILE {
namespace {

using causality::FigureOne;
using nlohmann::json;
using Names = std::vector<std::string>;

class ContrastCommandTest : public testing::Test {
 protected:
  // A corpus of that many slow and fast tabs.
  std::string Corpus(const std::string& name, int slow, int fast) {
    const std::string path = folder_ / name;
    corpus::Corpus corpus = corpus::Corpus::Create(path).value();
    for (int i = 0; i < slow + fast; ++i) {
      trace::Trace trace = i < slow ? FigureOne::Slow() : FigureOne::Fast();
      // The same trace twice would be added once.
      trace.metadata.labels["number"] = std::to_string(i);
      const std::string file =
          folder_ / (name + (i < slow ? "-slow-" : "-fast-") + std::to_string(i) + ".ctrace");
      EXPECT_TRUE(WriteTrace(trace, file, Overwrite::kAllow).ok());
      EXPECT_TRUE(corpus.Add(file, {}).ok());
    }
    return path;
  }
  int Run(const std::vector<std::string>& words) {
    output_ = std::make_unique<BufferOutput>();
    return RunCulprit(words, *output_);
  }
  json RunJson(std::vector<std::string> words) {
    words.emplace_back("--json");
    EXPECT_EQ(Run(words), 0) << err();
    return json::parse(out(), nullptr, false);
  }
  const std::string& out() const { return output_->out(); }
  const std::string& err() const { return output_->err(); }
  bool Shows(const std::string& text) const { return out().find(text) != std::string::npos; }

  TemporaryFolder folder_;
  std::unique_ptr<BufferOutput> output_;
};

TEST_F(ContrastCommandTest, Figure1GivesItsTuple) {
  const std::string corpus = Corpus("c", 4, 6);
  const json contrast =
      RunJson({"contrast", corpus, "--component", "*.sys", "--fast", "200ns", "--slow", "500ns"});
  EXPECT_EQ(contrast["fast_instances"], 6);
  EXPECT_EQ(contrast["slow_instances"], 4);
  bool found = false;
  for (const json& pattern : contrast["patterns"]) {
    found =
        found || (pattern["wait"] == json(Names{"fs.sys!AcquireMDU", "fv.sys!QueryFileTable"}) &&
                  pattern["unwait"] == json(Names{"fs.sys!AcquireMDU", "fv.sys!QueryFileTable"}) &&
                  pattern["running"] == json(Names{"DiskService", "se.sys!ReadDecrypt"}) &&
                  pattern["slow_only"] == true && pattern["instances"] == 4 &&
                  pattern["traces"] == 4 && pattern["ratio"].is_null());
  }
  EXPECT_TRUE(found) << contrast["patterns"];
  for (const char* key : {"itc", "ttc", "pruned_ns", "component_ns", "coverage"}) {
    EXPECT_TRUE(contrast.contains(key)) << key;
  }
}

TEST_F(ContrastCommandTest, TextSaysWhatWaitedWhatEndedItAndWhatRan) {
  const std::string corpus = Corpus("c", 4, 6);
  ASSERT_EQ(Run({"contrast", corpus, "-c", "*.sys", "--fast", "200ns", "--slow", "500ns"}), 0)
      << err();
  EXPECT_TRUE(Shows("BrowserTabCreate: 10 instances, 6 fast (below 200 ns), 4 slow (above 500 ns)"))
      << out();
  EXPECT_TRUE(
      Shows("     waits in  fs.sys!AcquireMDU\n"
            "               fv.sys!QueryFileTable\n"
            "     ended by  fs.sys!AcquireMDU\n"
            "               fv.sys!QueryFileTable\n"
            "     behind it DiskService\n"
            "               se.sys!ReadDecrypt\n"))
      << out();
  EXPECT_TRUE(Shows("     culprit show " + corpus + " c-slow-0:0 --lanes   # ")) << out();
  EXPECT_NE(err().find("next: culprit show "), std::string::npos) << err();
}

TEST_F(ContrastCommandTest, ImpactCountsTheTopWaitOnce) {
  const json impact = RunJson({"impact", Corpus("c", 1, 0), "--component", "*.sys"});
  const json& whole = impact["rows"][0];
  EXPECT_EQ(whole["d_scn_ns"], 800);
  // The user interface waits from 50 to 740; the five waits behind it are its own.
  EXPECT_EQ(whole["d_wait_ns"], 690);
  EXPECT_EQ(whole["d_waitdist_ns"], 690);
  EXPECT_EQ(whole["ia_opt"], 0);
  ASSERT_EQ(impact["rows"].size(), 4U) << impact["rows"];
}

TEST_F(ContrastCommandTest, AnInstanceWithoutItsThreadIsNotUsed) {
  trace::Trace trace = FigureOne::Slow();
  trace.instances.push_back(
      {.scenario = trace.dictionary.Intern("Lost"), .thread = {}, .t0_ns = 0, .t1_ns = 100});
  const std::string file = folder_ / "lost.ctrace";
  ASSERT_TRUE(WriteTrace(trace, file, Overwrite::kAllow).ok());
  const json impact = RunJson({"impact", file, "--component", "*.sys"});
  EXPECT_EQ(impact["instances"], 1);
  EXPECT_EQ(Run({"contrast", file, "--scenario", "Lost"}), 1);
  EXPECT_EQ(Run({"show", file, "1"}), 0) << err();
}

TEST_F(ContrastCommandTest, DiffIsAGate) {
  const std::string fast = Corpus("before", 0, 8);
  const std::string slow = Corpus("after", 8, 0);
  EXPECT_EQ(Run({"diff", fast, slow, "-c", "*.sys"}), 0) << err();
  EXPECT_TRUE(Shows("appeared")) << out();
  EXPECT_EQ(Run({"diff", fast, slow, "-c", "*.sys", "--bound", "5%"}), 1);
  EXPECT_TRUE(Shows("BrowserTabCreate slower by 700 ns an instance, +700.0 %")) << out();
  EXPECT_EQ(Run({"diff", fast, slow, "-c", "*.sys", "--bound", "1000%"}), 0) << out();
  EXPECT_EQ(Run({"diff", slow, fast, "-c", "*.sys", "--bound", "5%"}), 0) << out();
  EXPECT_TRUE(Shows("Nothing lost more than 5 %")) << out();
  EXPECT_EQ(Run({"diff", fast, fast, "-c", "*.sys", "--bound", "0.1%", "--json"}), 0);
  EXPECT_EQ(json::parse(out())["ok"], true);
}

TEST_F(ContrastCommandTest, ATraceThatWasNotReadWasNotCompared) {
  const std::string fast = Corpus("c", 0, 4);
  const corpus::TraceRow row = corpus::Corpus::Open(fast).value().List().value().front();
  ASSERT_TRUE(WriteWholeFile(corpus::Corpus::Open(fast).value().TracePath(row), "no trace",
                             Overwrite::kAllow)
                  .ok());
  EXPECT_EQ(Run({"diff", fast, fast, "-c", "*.sys"}), 0) << err();
  EXPECT_TRUE(Shows("not read: ")) << out();
  EXPECT_EQ(Run({"diff", fast, fast, "-c", "*.sys", "--bound", "5%"}), 1) << out();
}

TEST_F(ContrastCommandTest, WrongFlagsSayWhatIsRight) {
  const std::string corpus = Corpus("c", 2, 2);
  const auto fails = [&](std::vector<std::string> words, const std::string& with) {
    EXPECT_EQ(Run(words), 1) << out();
    EXPECT_NE(err().find(with), std::string::npos) << err();
  };
  fails({"contrast", corpus, "--slow", "90"}, "write it as 300ms or p90");
  fails({"contrast", corpus, "--segment", "0"}, "from 1 to 20");
  fails({"contrast", corpus, "--max-memory", "much"}, "is no size");
  fails({"contrast", corpus, "--fast", "600ns", "--slow", "500ns"}, "above the slow");
  fails({"contrast", corpus, "--fast", "10ns", "--slow", "500ns"}, "no fast instances");
  fails({"contrast", corpus, "-s", "BrowserTabCreat"}, "did you mean 'BrowserTabCreate'?");
  fails({"contrast", corpus, "-c", "fs"}, "there are the modules");
  fails({"diff", corpus, corpus, "--bound", "-1"}, "is no share");
  fails({"impact", folder_ / "nowhere"}, "nowhere");
}

TEST(CausalityText, NumbersAreShort) {
  EXPECT_EQ(ProbabilityText(1), "1");
  EXPECT_EQ(ProbabilityText(0.0005), "0.0005");
  EXPECT_EQ(ProbabilityText(0.1234), "0.12");
  EXPECT_EQ(FactorText(1.04), "1.04×");
  EXPECT_EQ(FactorText(12.34), "12.3×");
  EXPECT_EQ(FactorText(123456), "123456×");
  EXPECT_EQ(TupleLine({.wait = {"a!b"}, .unwait = {"c!d"}, .running = {"e!f", "g!h"}}),
            "a!b ← e!f, g!h");
}

TEST(DiffBound, OnlySignificantLossesAboveTheBoundCount) {
  DiffFacts facts;
  facts.bound = 0.1;
  facts.significant = 0.05;
  causality::ScenarioDiff scenario;
  scenario.scenario = "S";
  scenario.mean_before_ns = 1000;
  scenario.mean_after_ns = 1050;
  scenario.p_value = 0.01;
  const auto add = [&](causality::Change change, int64_t delta_ns, bool significant) {
    causality::ChainChange chain;
    chain.change = change;
    chain.delta_ns = delta_ns;
    chain.significant = significant;
    scenario.changes.push_back(chain);
  };
  add(causality::Change::kAppeared, 101, true);
  add(causality::Change::kGrew, 300, true);
  add(causality::Change::kGrew, 100, true);   // no more than the bound
  add(causality::Change::kGrew, 500, false);  // may be chance
  add(causality::Change::kVanished, -900, true);
  facts.result.scenarios.push_back(scenario);
  const std::vector<DiffViolation> violations = FindDiffViolations(facts);
  ASSERT_EQ(violations.size(), 2U);
  EXPECT_EQ(violations[0].delta_ns, 300);
  EXPECT_EQ(violations[1].what, "appeared");
  facts.result.scenarios[0].mean_after_ns = 1101;
  EXPECT_EQ(FindDiffViolations(facts).size(), 3U);
  facts.result.scenarios[0].p_value = 0.06;
  EXPECT_EQ(FindDiffViolations(facts).size(), 2U);
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
