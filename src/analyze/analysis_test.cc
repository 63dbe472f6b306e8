// SPDX-License-Identifier: Apache-2.0
#include "analyze/analysis.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "analyze/findings.h"
#include "analyze/part.h"
#include "analyze/verdict.h"
#include "base/file.h"
#include "base/test_folder.h"
#include "causality/figure_one.h"
#include "corpus/corpus.h"
#include "corpus/summary_store.h"
#include "trace/trace_writer.h"
#include "waitgraph/timelines_random.h"

namespace culprit::analyze::TEST_FILE {
namespace {

class AnalysisTest : public ::testing::Test {
 protected:
  static constexpr int kTraces = 24;

  void SetUp() override {
    auto corpus = corpus::Corpus::Create(folder_ / "c");
    ASSERT_TRUE(corpus.ok());
    std::vector<corpus::StagedTrace> staged;
    for (int i = 0; i < kTraces; ++i) staged.push_back(Stage(corpus.value(), i));
    ASSERT_TRUE(corpus.value().AddStaged(staged).ok());
  }

  // Half with marked instances, fast and slow ones, half where they are found.
  static corpus::StagedTrace Stage(corpus::Corpus& corpus, int number) {
    trace::Trace trace =
        number % 8 == 0 ? causality::FigureOne::Slow() : causality::FigureOne::Fast();
    if (number % 2 == 1) {
      trace =
          waitgraph::RandomSchedule({.seed = static_cast<uint64_t>(number), .steps = 300}).Make();
    }
    trace.metadata.machine = "box" + std::to_string(number);
    const std::string path = corpus.NewStagingPath().value();
    EXPECT_TRUE(WriteTrace(trace, path, Overwrite::kRefuse).ok());
    return {.path = path, .name = "t" + std::to_string(number)};
  }

  struct Outcome {
    std::string everything;  // the verdict both ways, and every part of the page
    corpus::GatherReport gathered;
  };
  Outcome Run(size_t jobs, bool summaries, uint64_t memory_bytes = 0) {
    AnalysisOptions options;
    options.gather.jobs = jobs;
    options.gather.use_summaries = summaries;
    options.gather.memory_bytes = memory_bytes;
    auto analysis = Analyze(folder_ / "c", options, progress_);
    EXPECT_TRUE(analysis.ok());
    Outcome outcome;
    if (!analysis.ok()) return outcome;
    outcome.gathered = analysis.value().gathered;
    const std::vector<Finding> findings = MakeFindings(analysis.value(), 8);
    outcome.everything =
        VerdictJson(analysis.value(), findings) + VerdictText(analysis.value(), findings, {});
    for (const Part& part : MakeParts(analysis.value())) {
      outcome.everything += part.name + part.json;
    }
    return outcome;
  }

  TestFolder folder_;
  Progress progress_;
};

TEST_F(AnalysisTest, IsTheSameWithAndWithoutSummariesForAnyNumberOfThreads) {
  const std::string expected = Run(1, false).everything;
  EXPECT_NE(expected.find("BrowserTabCreate"), std::string::npos);
  EXPECT_EQ(Run(8, false).everything, expected);
  for (const size_t jobs : {1, 2, 8}) {
    std::filesystem::remove_all(corpus::SummariesFolder(folder_ / "c"));
    EXPECT_EQ(Run(jobs, true).everything, expected) << jobs << " threads, cold";
    EXPECT_EQ(Run(jobs, true).everything, expected) << jobs << " threads, warm";
  }
  for (const uint64_t memory_bytes : {1, 5000, 100'000}) {
    const Outcome bounded = Run(2, true, memory_bytes);
    EXPECT_EQ(bounded.everything, expected) << memory_bytes;
    EXPECT_GT(bounded.gathered.rows_spilled_bytes, 0U) << memory_bytes;
  }
  EXPECT_EQ(Run(2, true, 1'000'000'000).gathered.rows_spilled_bytes, 0U);
  EXPECT_EQ(Run(8, false, 1).everything, expected) << "one trace in memory at a time";
}

TEST_F(AnalysisTest, ReadsEachTraceOnceForBothAnalysesAndThenNotAgain) {
  const corpus::GatherReport cold = Run(2, true).gathered;
  EXPECT_EQ(cold.traces_read, static_cast<uint64_t>(kTraces));
  EXPECT_EQ(cold.summaries_made, 2U * kTraces);
  const corpus::GatherReport warm = Run(2, true).gathered;
  EXPECT_EQ(warm.traces_read, 0U);
  EXPECT_EQ(warm.summaries_used, 2U * kTraces);
}

TEST_F(AnalysisTest, ReadsOnlyWhatWasAdded) {
  Run(2, true);
  auto corpus = corpus::Corpus::Open(folder_ / "c");
  ASSERT_TRUE(corpus.ok());
  ASSERT_TRUE(corpus.value().AddStaged({Stage(corpus.value(), 101)}).ok());
  EXPECT_EQ(Run(2, true).gathered.traces_read, 1U);
  EXPECT_EQ(Run(2, true).everything, Run(2, false).everything);
}

TEST_F(AnalysisTest, SomeSummariesMissingOrDamagedMakeNoDifference) {
  const std::string expected = Run(2, true).everything;
  const std::vector<corpus::SummaryFile> files = corpus::ListSummaries(folder_ / "c");
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string path = folder_ / ("c/" + files[i].path);
    if (i % 5 == 0) std::filesystem::remove(path);
    if (i % 5 == 1) std::filesystem::resize_file(path, files[i].bytes / 2);
  }
  EXPECT_EQ(Run(2, true).everything, expected);
}

}  // namespace
}  // namespace culprit::analyze::TEST_FILE
