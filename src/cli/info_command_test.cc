// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "cli/shell_run.h"
#include "cli/truth_file.h"
#include "corpus/corpus.h"
#include "trace/small_trace.h"

namespace culprit::cli::TEST_FILE {
namespace {

using nlohmann::json;
using trace::EventKind;
using trace::SmallTrace;

// ui runs 100 ns, waits 300 ns behind worker, is ready 50 ns.
SmallTrace Example() {
  SmallTrace small(0, 1000);
  small.trace.metadata.app = "shop";
  small.Add(EventKind::kRunning, "ui", 0, 100, "shop!main;shop!draw");
  small.Add(EventKind::kWait, "ui", 100, 400, "shop!main;kernel!lock").peer =
      small.Thread("worker");
  small.Add(EventKind::kReady, "ui", 400, 450, "shop!main;kernel!lock");
  small.AddInstance("Checkout", "ui", 0, 500);
  small.AddInstance("Checkout", "ui", 600, 700);
  return small;
}

class InfoCommandTest : public testing::Test {
 protected:
  std::string WriteExample(const std::string& name) {
    const std::string path = folder_ / name;
    EXPECT_TRUE(WriteTrace(Example().trace, path, Overwrite::kRefuse).ok());
    return path;
  }
  std::string MakeCorpus(size_t traces) {
    const std::string path = folder_ / "corpus";
    corpus::Corpus corpus = corpus::Corpus::Create(path).value();
    for (size_t i = 0; i < traces; ++i) {
      SmallTrace small = Example();
      small.trace.metadata.machine = "box" + std::to_string(i);
      const std::string name = "t" + std::to_string(i);
      EXPECT_TRUE(WriteTrace(small.trace, folder_ / name, Overwrite::kRefuse).ok());
      EXPECT_TRUE(corpus.Add(folder_ / name, {}).ok());
    }
    return path;
  }
  int Info(std::vector<std::string> words) {
    output_ = std::make_unique<BufferOutput>();
    words.insert(words.begin(), "info");
    return RunCulprit(words, *output_);
  }
  json InfoAsJson(std::vector<std::string> words) {
    words.push_back("--json");
    EXPECT_EQ(Info(words), 0) << output_->err();
    return json::parse(output_->out());
  }
  bool Says(const std::string& text) const {
    return output_->out().find(text) != std::string::npos;
  }

  TemporaryFolder folder_;
  std::unique_ptr<BufferOutput> output_;
};

TEST_F(InfoCommandTest, TellsWhereTheTimeOfATraceWent) {
  const json info = InfoAsJson({WriteExample("a.ctrace")});
  EXPECT_EQ(info["kind"], "trace");
  EXPECT_EQ(info["events"], 3);
  EXPECT_EQ(info["app"], json::array({"shop"}));
  const json& times = info["breakdown"];
  EXPECT_EQ(times["total_ns"], 600);
  EXPECT_EQ(times["wait_ns"], 300);
  EXPECT_EQ(times["running_ns"], 100);
  EXPECT_EQ(times["ready_ns"], 50);
  EXPECT_EQ(times["unattributed_ns"], 150);
  EXPECT_EQ(info["waits"][0]["frames"], json::array({"shop!main", "kernel!lock"}));
  EXPECT_EQ(info["scenarios"][0]["p90_ns"], 500);
  EXPECT_EQ(info["capabilities"][0]["possible"], true);
  EXPECT_EQ(info["capabilities"][3]["possible"], false);
}

TEST_F(InfoCommandTest, TheTextSaysTheSame) {
  EXPECT_EQ(Info({WriteExample("a.ctrace")}), 0);
  EXPECT_TRUE(Says("Where the time of 2 instances went")) << output_->out();
  EXPECT_TRUE(Says("waiting                   300 ns   50.0 %"));
  EXPECT_TRUE(Says("total                     600 ns  100.0 %"));
  EXPECT_TRUE(Says("shop!main > kernel!lock"));
  EXPECT_TRUE(Says("no: there are no system calls"));
  EXPECT_EQ(output_->err().find("next: culprit export "), 0u);
}

TEST_F(InfoCommandTest, AddsUpACorpusTheSameForAnyNumberOfJobs) {
  const std::string path = MakeCorpus(5);
  const json one = InfoAsJson({path, "--jobs", "1"});
  EXPECT_EQ(one, InfoAsJson({path, "--jobs", "4"}));
  EXPECT_EQ(one["kind"], "corpus");
  EXPECT_EQ(one["traces"], 5);
  EXPECT_EQ(one["breakdown"]["total_ns"], 3000);
  EXPECT_EQ(one["waits"][0]["traces"], 5);
  EXPECT_EQ(one["machine"].size(), 5u);
}

TEST_F(InfoCommandTest, MarksThePlantedStacksOfASimulatedCorpus) {
  const std::string path = MakeCorpus(1);
  const std::string truth =
      R"({"bugs":[{"name":"slow-lock","kind":"lock","pattern":["shop!main","kernel!lock"],
          "event_kind":"wait","instances":["t0:0"],"cost_ns":300,"noise":false}]})";
  ASSERT_TRUE(WriteWholeFile(path + "/truth.json", truth, Overwrite::kRefuse).ok());
  EXPECT_EQ(Info({path}), 0);
  EXPECT_TRUE(Says("= planted: slow-lock")) << output_->out();
  EXPECT_TRUE(Says("The planted truth"));
}

TEST_F(InfoCommandTest, ReadsWhatIsLeftOfADamagedTrace) {
  const std::string path = WriteExample("a.ctrace");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 30);
  const json info = InfoAsJson({path});
  EXPECT_EQ(info["incomplete"], 1);
  EXPECT_EQ(info["breakdown"]["wait_ns"], 300);
  EXPECT_FALSE(info["skipped"].empty());
  EXPECT_EQ(Info({path}), 0);
  EXPECT_TRUE(Says("Damaged or skipped"));
}

TEST_F(InfoCommandTest, NamesTracesOfACorpusThatAreGone) {
  const std::string path = MakeCorpus(3);
  for (const auto& entry : std::filesystem::directory_iterator(path + "/traces")) {
    if (entry.is_regular_file()) {
      std::filesystem::remove(entry.path());
      break;
    }
  }
  const json info = InfoAsJson({path});
  EXPECT_EQ(info["unreadable"].size(), 1u);
  EXPECT_EQ(info["breakdown"]["total_ns"], 1200);
}

TEST_F(InfoCommandTest, WithoutInstancesThreadsCount) {
  SmallTrace small(0, 1000);
  small.Add(EventKind::kWait, "a", 0, 400, "m!f");
  ASSERT_TRUE(WriteTrace(small.trace, folder_ / "b.ctrace", Overwrite::kRefuse).ok());
  const json info = InfoAsJson({folder_ / "b.ctrace"});
  EXPECT_EQ(info["breakdown"]["scope"], "threads");
  EXPECT_EQ(info["breakdown"]["unattributed_ns"], 600);
}

TEST_F(InfoCommandTest, AnEmptyCorpusAndAnEmptyTraceAreNoErrors) {
  EXPECT_EQ(InfoAsJson({MakeCorpus(0)})["traces"], 0);
  ASSERT_TRUE(WriteTrace(trace::Trace(), folder_ / "e.ctrace", Overwrite::kRefuse).ok());
  EXPECT_EQ(InfoAsJson({folder_ / "e.ctrace"})["events"], 0);
}

TEST_F(InfoCommandTest, SaysWhyItCannotRead) {
  EXPECT_EQ(Info({folder_ / "none"}), 1);
  EXPECT_NE(output_->err().find("No such file"), std::string::npos);
  ASSERT_TRUE(
      WriteWholeFile(folder_ / "text", "hello, world, this is text", Overwrite::kRefuse).ok());
  EXPECT_EQ(Info({folder_ / "text"}), 1);
  EXPECT_NE(output_->err().find("is not a culprit trace"), std::string::npos);
  EXPECT_EQ(Info({folder_.path()}), 1);
  EXPECT_EQ(Info({}), 2);
}

TEST(PlantedBug, MatchesASubsequenceInOrder) {
  const PlantedBug bug{.pattern = {"a", "c"}};
  EXPECT_TRUE(bug.Matches({"a", "b", "c"}));
  EXPECT_TRUE(bug.Matches({"x", "a", "c", "y"}));
  EXPECT_FALSE(bug.Matches({"c", "a"}));
  EXPECT_FALSE(bug.Matches({"a"}));
  EXPECT_FALSE(PlantedBug{}.Matches({"a"}));
}

TEST(TruthFile, RefusesWhatIsNoTruthAndSkipsWrongTypes) {
  TemporaryFolder folder;
  EXPECT_TRUE(ReadTruth(folder.path()).value().empty());
  const std::string path = folder / "truth.json";
  for (const char* bad : {"", "{", "[]", "{\"bugs\":3}"}) {
    ASSERT_TRUE(WriteWholeFile(path, bad, Overwrite::kAllow).ok());
    EXPECT_FALSE(ReadTruth(folder.path()).ok()) << bad;
  }
  ASSERT_TRUE(WriteWholeFile(path, R"({"bugs":[7,{"name":3,"cost_ns":"x","pattern":[1,"f"]}]})",
                             Overwrite::kAllow)
                  .ok());
  const auto bugs = ReadTruth(folder.path()).value();
  ASSERT_EQ(bugs.size(), 1u);
  EXPECT_EQ(bugs[0].pattern, std::vector<std::string>{"f"});
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
