// SPDX-License-Identifier: Apache-2.0
#include "scale/pattern_verbs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/file.h"
#include "base/test_folder.h"
#include "mine/maximal.h"
#include "scale/pattern_codec.h"
#include "scale/thread_engine.h"
#include "scale/verbs.h"

namespace culprit::scale::TEST_FILE {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLambda = 60;

mine::WeightedSequences RandomStacks(uint64_t seed) {
  std::mt19937_64 random(seed);
  mine::WeightedSequences made;
  for (int i = 0; i < 500; ++i) {
    std::vector<mine::Symbol> stack(1 + random() % 14);
    for (mine::Symbol& symbol : stack) symbol = static_cast<mine::Symbol>(random() % 50);
    made.Add(stack, static_cast<int64_t>(random() % 10));
  }
  return made;
}

class PatternVerbsTest : public ::testing::Test {
 protected:
  RunFolder MakeRun(const std::string& name, uint64_t pieces, uint64_t max_patterns = 0) {
    const Plan plan = MakePatternsPlan(
        folder_ / "c", stacks_,
        {.lambda_ns = kLambda, .max_patterns = max_patterns, .pieces = pieces, .database = {}}, 3);
    auto run = CreatePatternsRun(folder_ / name, plan, stacks_);
    EXPECT_TRUE(run.ok());
    return std::move(run).value();
  }
  static void Finish(const RunFolder& run, const TaskOptions& options = {}) {
    for (const Stage& stage : StagesOf(run, options)) {
      for (uint64_t i = 0; i < stage.count; ++i) {
        if (stage.done(i)) continue;
        const Status status = stage.run(i);
        ASSERT_TRUE(status.ok()) << status.error().ToString();
        EXPECT_TRUE(stage.done(i));
      }
    }
  }
  std::vector<mine::Pattern> InProcess() const {
    return mine::MineMaximal(stacks_, {.lambda = kLambda}).patterns;
  }

  TestFolder folder_;
  const mine::WeightedSequences stacks_ = RandomStacks(3);
};

TEST_F(PatternVerbsTest, FindThePatternsOfOneProcessHoweverTheSearchIsCut) {
  const std::vector<mine::Pattern> expected = InProcess();
  ASSERT_GT(expected.size(), 20U);
  for (const uint64_t pieces : {1, 2, 5, 9, 80}) {
    const RunFolder run = MakeRun("run" + std::to_string(pieces), pieces);
    EXPECT_EQ(run.Count(Verb::kMap), pieces);
    Finish(run, {.jobs = pieces % 2 + 1});
    const auto found = ReadPatternsResult(run);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value().patterns, expected) << pieces;
    EXPECT_FALSE(found.value().too_many);
  }
}

TEST_F(PatternVerbsTest, ARunIsGoneOnWithAndOnlyWhatIsMissingIsDone) {
  {
    const RunFolder run = MakeRun("run", 7);
    Finish(run);
    fs::resize_file(run.OutputPath(Verb::kMap, 4), 20);
    fs::copy_file(run.OutputPath(Verb::kMap, 1), run.OutputPath(Verb::kMap, 2),
                  fs::copy_options::overwrite_existing);
    fs::remove(run.OutputPath(Verb::kFinalize, 0));
  }
  const RunFolder run = MakeRun("run", 7);
  for (const uint64_t i : {0, 1, 3, 5, 6}) EXPECT_TRUE(run.TaskDone(Verb::kMap, i)) << i;
  for (const uint64_t i : {2, 4}) EXPECT_FALSE(run.TaskDone(Verb::kMap, i)) << i;
  Finish(RunFolder::Open(folder_ / "run").value());
  EXPECT_EQ(ReadPatternsResult(run).value().patterns, InProcess());
}

TEST_F(PatternVerbsTest, OtherStacksAreAnotherRunAndDamagedOnesAreNoticed) {
  const RunFolder run = MakeRun("run", 4);
  const mine::WeightedSequences others = RandomStacks(4);
  const Plan other =
      MakePatternsPlan(folder_ / "c", others, {.lambda_ns = kLambda, .pieces = 4, .database = {}});
  EXPECT_FALSE(CreatePatternsRun(folder_ / "run", other, others).ok());
  fs::resize_file(run.path() + "/database", fs::file_size(run.path() + "/database") - 1);
  const Status status = MapPatterns(run, 0, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().ToString().find("database"), std::string::npos);
  // The command that began it mends it.
  Finish(MakeRun("run", 4));
  EXPECT_EQ(ReadPatternsResult(run).value().patterns, InProcess());
}

TEST_F(PatternVerbsTest, ABoundOnPatternsIsToldAndKept) {
  const RunFolder run = MakeRun("run", 5, 10);
  Finish(run);
  EXPECT_TRUE(ReadPatternsResult(run).value().too_many);
}

TEST_F(PatternVerbsTest, EnginesFindTheSame) {
  const RunFolder run = MakeRun("run", 6);
  ThreadEngine engine(2, {.stop = [] { return false; }, .note = [](const std::string&) {}});
  Progress silent;
  for (const Stage& stage : StagesOf(run, {})) {
    const auto outcome = engine.Run(run.path(), stage, silent);
    ASSERT_TRUE(outcome.ok());
    EXPECT_TRUE(outcome.value().ok());
  }
  EXPECT_EQ(ReadPatternsResult(run).value().patterns, InProcess());
}

TEST_F(PatternVerbsTest, PlansComeBackFromJsonAndBrokenOnesAreRefused) {
  const RunFolder run = MakeRun("run", 4);
  const std::string json = PlanToJson(run.plan());
  const auto back = PlanFromJson(json, "plan.json");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(PlanToJson(back.value()), json);
  for (const std::string_view pieces : {"0", "3", "5", "-1"}) {
    std::string bad = json;
    const size_t at = bad.find("\"pieces\"");
    bad.replace(bad.find('4', at), 1, pieces);
    EXPECT_FALSE(PlanFromJson(bad, "plan.json").ok()) << bad;
  }
}

TEST(PatternCodec, BringsBackWhatWasWrittenAndRefusesTheRest) {
  const mine::WeightedSequences stacks = RandomStacks(9);
  const std::string bytes = EncodeDatabase(stacks);
  const auto back = DecodeDatabase(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->symbols, stacks.symbols);
  EXPECT_EQ(back->ends, stacks.ends);
  EXPECT_EQ(back->costs, stacks.costs);
  const mine::Subtree subtree{{{{1, 2, 4000000000}, 77}, {{5}, 3}}, true};
  const std::string written = EncodeSubtree(subtree);
  const auto read = DecodeSubtree(written);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->patterns, subtree.patterns);
  EXPECT_TRUE(read->too_many);
  for (size_t size = 0; size < 200; ++size) {
    EXPECT_FALSE(DecodeDatabase(bytes.substr(0, size)));
  }
  for (size_t size = 0; size < written.size(); ++size) {
    EXPECT_FALSE(DecodeSubtree(written.substr(0, size)));
  }
  EXPECT_FALSE(DecodeDatabase(bytes + '\0'));
  EXPECT_FALSE(DecodeSubtree(written + '\0'));
}

}  // namespace
}  // namespace culprit::scale::TEST_FILE
