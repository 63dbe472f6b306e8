// SPDX-License-Identifier: Apache-2.0
//
// culprit mine and culprit signatures run in-process on small traces.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/test_folder.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "corpus/corpus.h"
#include "trace/small_trace.h"

namespace culprit::cli::TEST_FILE {
namespace {

using nlohmann::json;
using trace::EventKind;
using trace::SmallTrace;

// ui waits 300 us for a lock behind worker, which computes.
SmallTrace Example() {
  SmallTrace small(0, 1'000'000);
  small.Add(EventKind::kRunning, "ui", 0, 100'000, "shop!main;shop!draw");
  small.Add(EventKind::kWait, "ui", 100'000, 400'000, "shop!main;shop!Pay;kernel!lock").peer =
      small.Thread("worker");
  small.Add(EventKind::kReady, "ui", 400'000, 450'000, "shop!main;shop!Pay;kernel!lock");
  small.Add(EventKind::kRunning, "worker", 0, 400'000, "shop!worker;shop!Sum");
  small.Add(EventKind::kUnwait, "worker", 400'000, 400'000, "shop!worker").peer =
      small.Thread("ui");
  small.AddInstance("Checkout", "ui", 0, 500'000);
  return small;
}

class MineCommandTest : public testing::Test {
 protected:
  MineCommandTest() {
    trace_ = folder_ / "a.ctrace";
    store_ = folder_ / "store.json";
    EXPECT_TRUE(WriteTrace(Example().trace, trace_, Overwrite::kRefuse).ok());
  }
  int Run(std::vector<std::string> words) {
    output_ = std::make_unique<BufferOutput>();
    words.insert(words.end(), {"--store", store_});
    return RunCulprit(words, *output_);
  }
  json Mined(std::vector<std::string> words) {
    words.insert(words.begin(), {"mine", "--json"});
    EXPECT_EQ(Run(words), 0) << output_->err();
    return json::parse(output_->out());
  }
  bool Says(const std::string& text) const {
    return (output_->out() + output_->err()).find(text) != std::string::npos;
  }
  std::string LockCluster() {
    const json mined = Mined({trace_});
    for (const json& cluster : mined["clusters"]) {
      if (cluster["kind"] == "wait") return cluster["id"];
    }
    return {};
  }

  TestFolder folder_;
  std::string trace_;
  std::string store_;
  std::unique_ptr<BufferOutput> output_;
};

TEST_F(MineCommandTest, JsonHasTheAccountAndTheClusters) {
  const json mined = Mined({trace_});
  EXPECT_EQ(mined["total_ns"], 500'000);
  EXPECT_EQ(mined["aoi_ns"], 450'000);
  EXPECT_EQ(mined["unattributed_ns"], 50'000);
  EXPECT_EQ(mined["lambda_ns"], 4'500);
  EXPECT_EQ(mined["truncated"], false);
  json wait;
  for (const json& cluster : mined["clusters"]) {
    if (cluster["kind"] == "wait") wait = cluster;
  }
  EXPECT_EQ(wait["cost_ns"], 300'000);
  EXPECT_EQ(wait["events"], 1);
  EXPECT_EQ(wait["avg_ns"], 300'000);
  EXPECT_EQ(wait["p95_ns"], 300'000);
  EXPECT_EQ(wait["ready_after_ns"], 50'000);
  EXPECT_EQ(wait["below"]["running_ns"], 300'000);
  EXPECT_EQ(wait["common"], json({"shop!main", "shop!Pay", "kernel!lock"}));
  EXPECT_EQ(wait["patterns"][0]["frames"], wait["common"]);
  EXPECT_EQ(wait["examples"][0], trace_ + ":0");
}

TEST_F(MineCommandTest, TheTextSaysTheSameAndWhatComesNext) {
  EXPECT_EQ(Run({"mine", trace_}), 0);
  EXPECT_TRUE(Says("1 instance, 500 us in all")) << output_->out();
  EXPECT_TRUE(Says("at shop!Pay"));
  EXPECT_TRUE(Says("shop!main > Pay"));
  EXPECT_TRUE(Says("behind it: running 100.0 %"));
  EXPECT_TRUE(Says("then ready but not running for 50.0 us"));
  EXPECT_TRUE(Says("culprit show " + trace_ + " 0"));
  EXPECT_TRUE(Says("next: culprit signatures add"));
  EXPECT_TRUE(Says("total 500 us"));
  EXPECT_EQ(Run({"mine", trace_, "-v"}), 0);
  EXPECT_TRUE(Says("pattern, 300 us"));
}

TEST_F(MineCommandTest, ScopeAndContentChooseTheArea) {
  EXPECT_EQ(Mined({trace_, "--scope", "thread"})["account"]["wait_ns"], 300'000);
  const json with = Mined({trace_, "--with", "*!Pay"});
  ASSERT_EQ(with["clusters"].size(), 1u);
  EXPECT_EQ(with["aoi_ns"], 350'000);
  EXPECT_EQ(Mined({trace_, "--without", "*!Pay", "--kind", "wait"})["clusters"].size(), 0u);
  EXPECT_EQ(Mined({trace_, "--class", "disk,child"})["aoi_ns"], 0);
  EXPECT_EQ(Mined({trace_, "--scope", "graph", "--kind", "run"})["clusters"].size(), 2u);
}

TEST_F(MineCommandTest, WrongLambdasAreToldApart) {
  EXPECT_EQ(Run({"mine", trace_, "--min-cost", "10h"}), 0);
  EXPECT_TRUE(Says("No pattern costs")) << output_->out();
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--min-cost", "0s"},
                                             {"--min-share", "0"},
                                             {"--min-share", "-1%"},
                                             {"--rule", "traces=10%"},
                                             {"--top", "0"},
                                             {"--top", "5", "--min-share", "1%"},
                                             {"--class", "lok"},
                                             {"--max-memory", "lots"}}) {
    std::vector<std::string> words = {"mine", trace_};
    words.insert(words.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(words), 1) << wrong.front() << output_->out();
    EXPECT_TRUE(Says("culprit: ")) << output_->err();
  }
}

TEST_F(MineCommandTest, BudgetsAreReported) {
  EXPECT_EQ(Run({"mine", trace_, "--max-memory", "100B"}), 1);
  EXPECT_TRUE(Says("allowed are 100 B")) << output_->out() << output_->err();
}

TEST_F(MineCommandTest, NoInstancesNoTracesNoFile) {
  SmallTrace none(0, 1000);
  const std::string empty = folder_ / "empty.ctrace";
  ASSERT_TRUE(WriteTrace(none.trace, empty, Overwrite::kRefuse).ok());
  EXPECT_EQ(Run({"mine", empty}), 0);
  EXPECT_TRUE(Says("There are no instances")) << output_->out();
  ASSERT_TRUE(corpus::Corpus::Create(folder_ / "corpus").ok());
  EXPECT_EQ(Run({"mine", folder_ / "corpus"}), 0);
  EXPECT_TRUE(Says("There are no traces")) << output_->out();
  EXPECT_EQ(Run({"mine", folder_ / "missing"}), 1);
  EXPECT_EQ(Run({"mine", folder_.Write("junk", "junk")}), 1);
}

TEST_F(MineCommandTest, ASignatureIsAddedFoundEditedAndRemoved) {
  const std::string id = LockCluster();
  ASSERT_FALSE(id.empty());
  EXPECT_EQ(Run({"signatures", "add", "--from", id.substr(0, 6), trace_, "--name", "pay"}), 0)
      << output_->err();
  EXPECT_EQ(Run({"signatures", "add", "--from", id, trace_, "--name", "pay"}), 1);
  EXPECT_EQ(Run({"signatures", "add", "--from", "zz", trace_}), 1);
  EXPECT_EQ(Run({"signatures", "list"}), 0);
  EXPECT_TRUE(Says("pay"));
  EXPECT_EQ(Run({"mine", trace_}), 0);
  EXPECT_TRUE(Says("signature new: pay")) << output_->out();
  EXPECT_EQ(Run({"signatures", "edit", "pay", "--status", "fixed", "--owner", "ann"}), 0);
  EXPECT_EQ(Run({"signatures", "list", "--status", "fixed", "--json"}), 0);
  EXPECT_EQ(json::parse(output_->out())["signatures"][0]["owner"], "ann");
  EXPECT_EQ(Run({"signatures", "edit", "pai", "--owner", "bob"}), 1);
  EXPECT_TRUE(Says("did you mean 'pay'"));
  EXPECT_EQ(Run({"signatures", "rm", "pay"}), 0);
  EXPECT_EQ(Run({"signatures", "list"}), 0);
  EXPECT_TRUE(Says("no signatures"));
}

TEST_F(MineCommandTest, CheckFailsOnWhatIsNewAndOnWhatIsBack) {
  EXPECT_EQ(Run({"signatures", "check", trace_}), 1);
  EXPECT_TRUE(Says("new  ")) << output_->out();
  EXPECT_EQ(Run({"signatures", "check", trace_, "--max-new", "1s"}), 0);
  EXPECT_EQ(Run({"signatures", "add", "--pattern", "shop!Pay;kernel!lock", "--status", "known"}),
            0);
  EXPECT_EQ(Run({"signatures", "check", trace_, "--kind", "wait"}), 0) << output_->out();
  EXPECT_EQ(Run({"signatures", "edit", "kernel!lock", "--status", "fixed"}), 0);
  EXPECT_EQ(Run({"signatures", "check", trace_, "--kind", "wait", "--json"}), 1);
  const json check = json::parse(output_->out());
  EXPECT_EQ(check["ok"], false);
  EXPECT_EQ(check["violations"][0]["kind"], "fixed");
  EXPECT_EQ(check["violations"][0]["time_ns"], 300'000);
  EXPECT_EQ(Run({"signatures", "check", trace_, "--max-new", "many"}), 1);
}

TEST_F(MineCommandTest, CoverageIsTheTimeOfSignaturesOverAllTime) {
  EXPECT_EQ(Run({"signatures", "add", "--pattern", "shop!Pay"}), 0);
  EXPECT_EQ(Run({"signatures", "coverage", trace_, "--json"}), 0) << output_->err();
  const json coverage = json::parse(output_->out());
  EXPECT_EQ(coverage["total_ns"], 500'000);
  EXPECT_EQ(coverage["covered_ns"], 300'000);
  EXPECT_EQ(coverage["covered_after_traces_ns"]["culprit"], json({300'000}));
  EXPECT_EQ(Run({"signatures", "coverage", trace_}), 0);
  EXPECT_TRUE(Says("1 signatures cover 60.0 % of 500 us")) << output_->out();
  EXPECT_EQ(Run({"signatures", "coverage", trace_, "--clusters"}), 0);
  EXPECT_TRUE(Says("clusters (no signatures) cover"));
}

TEST_F(MineCommandTest, ABrokenStoreIsToldBeforeTheWork) {
  folder_.Write("store.json", "{");
  EXPECT_EQ(Run({"mine", trace_}), 1);
  EXPECT_TRUE(Says("signature store")) << output_->err();
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
