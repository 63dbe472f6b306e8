// SPDX-License-Identifier: Apache-2.0
//
// The commands that keep summaries of traces print the same with and without them.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/test_folder.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "corpus/summary_store.h"

namespace culprit::cli::TEST_FILE {
namespace {

using Words = std::vector<std::string>;

class SummariesTest : public testing::Test {
 protected:
  // One corpus for all tests: simulating it takes longest.
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TestFolder>();
    corpus_ = *folder_ / "c";
    BufferOutput output;
    ASSERT_EQ(RunCulprit({"synth", "--like", "demo", "--traces", "6", "-o", corpus_}, output), 0)
        << output.err();
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string Run(Words words) {
    BufferOutput output;
    EXPECT_EQ(RunCulprit(words, output), 0) << output.err();
    err_ = output.err();
    return output.out();
  }
  static size_t Kept() { return corpus::ListSummaries(corpus_).size(); }

  static inline std::unique_ptr<TestFolder> folder_;
  static inline std::string corpus_;
  static inline std::string err_;
};

TEST_F(SummariesTest, EveryCommandPrintsTheSameColdWarmAndWithout) {
  const std::string store = *folder_ / "store.json";
  const std::vector<Words> commands = {
      {"mine", corpus_, "--json", "--store", store},
      {"mine", corpus_, "-v", "--scope", "thread", "--store", store},
      {"impact", corpus_, "--json"},
      {"impact", corpus_, "--component", "*.sys"},
      {"contrast", corpus_, "--json", "--deals", "50"},
      {"contrast", corpus_, "--component", "*.sys", "--deals", "50"},
      {"diff", corpus_, corpus_, "--json", "--deals", "50"},
      {"signatures", "coverage", corpus_, "--json", "--store", store}};
  for (const Words& command : commands) {
    Words without = command;
    without.emplace_back("--no-summaries");
    Words eight = command;
    eight.insert(eight.end(), {"--jobs", "8"});
    ASSERT_EQ(Run({"corpus", "trim", corpus_}).substr(0, 7), "removed");
    const std::string expected = Run(without);
    EXPECT_EQ(Kept(), 0U);
    EXPECT_EQ(Run(command), expected) << command[0] << ", cold";
    EXPECT_EQ(Kept(), 6U);
    EXPECT_EQ(Run(command), expected) << command[0] << ", warm";
    EXPECT_EQ(Run(eight), expected) << command[0] << ", warm, 8 threads";
  }
}

TEST_F(SummariesTest, ImpactAndContrastShareThemAndLaterStagesDoNotMatter) {
  Run({"corpus", "trim", corpus_});
  Run({"impact", corpus_});
  Run({"contrast", corpus_, "--deals", "10", "--fast", "p40", "--slow", "p80"});
  Run({"impact", corpus_, "--resamples", "10", "--top", "3"});
  EXPECT_EQ(Kept(), 6U);
  Run({"mine", corpus_, "--min-share", "5%", "--sort", "p95"});
  Run({"mine", corpus_, "--top", "10", "--cut", "0.4"});
  EXPECT_EQ(Kept(), 12U);
  Run({"mine", corpus_, "--scope", "thread"});
  EXPECT_EQ(Kept(), 18U);
}

TEST_F(SummariesTest, TrimKeepsUpToASize) {
  Run({"corpus", "trim", corpus_});
  Run({"mine", corpus_});
  uint64_t bytes = 0;
  for (const corpus::SummaryFile& file : corpus::ListSummaries(corpus_)) bytes += file.bytes;
  Run({"corpus", "trim", corpus_, "--keep", std::to_string(bytes / 2)});
  EXPECT_GT(Kept(), 0U);
  EXPECT_LT(Kept(), 6U);
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"corpus", "trim", corpus_, "--keep", "much"}, output), 1);
}

TEST_F(SummariesTest, AFolderThatTakesNoneIsToldOnceAndChangesNothing) {
  Run({"corpus", "trim", corpus_});
  const std::string expected = Run({"impact", corpus_});
  std::filesystem::remove_all(corpus::SummariesFolder(corpus_));
  ASSERT_TRUE(
      WriteWholeFile(corpus::SummariesFolder(corpus_), "in the way", Overwrite::kRefuse).ok());
  EXPECT_EQ(Run({"impact", corpus_}), expected);
  const size_t told = err_.find("summaries are not kept");
  EXPECT_NE(told, std::string::npos) << err_;
  EXPECT_EQ(err_.find("summaries are not kept", told + 1), std::string::npos);
  std::filesystem::remove(corpus::SummariesFolder(corpus_));
}

TEST_F(SummariesTest, ABoundOnMemoryNamesWhatDoesNotFit) {
  EXPECT_NE(Run({"impact", corpus_, "--memory", "1GB"}).find("6 traces"), std::string::npos);
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"impact", corpus_, "--memory", "1kB"}, output), 1);
  EXPECT_NE(output.err().find("allowed are 1.00 kB"), std::string::npos) << output.err();
  EXPECT_EQ(RunCulprit({"impact", corpus_, "--memory", "lots"}, output), 1);
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
