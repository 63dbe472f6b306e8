// SPDX-License-Identifier: Apache-2.0
#include "scale/verbs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/parallel.h"
#include "base/test_folder.h"
#include "causality/evidence_codec.h"
#include "causality/gather.h"
#include "corpus/corpus.h"
#include "corpus/summary_store.h"
#include "stackmine/evidence_codec.h"
#include "stackmine/gather.h"
#include "trace/trace_writer.h"
#include "waitgraph/timelines_random.h"

namespace culprit::scale::TEST_FILE {
namespace {

namespace fs = std::filesystem;

class VerbsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kTraces = 23;

  void SetUp() override {
    auto corpus = corpus::Corpus::Create(folder_ / "c");
    ASSERT_TRUE(corpus.ok());
    std::vector<corpus::StagedTrace> staged;
    for (uint64_t seed = 0; seed < kTraces; ++seed) {
      const trace::Trace trace =
          waitgraph::RandomSchedule({.seed = seed, .threads = 4, .steps = 100 + seed * 20}).Make();
      const auto path = corpus.value().NewStagingPath();
      ASSERT_TRUE(path.ok());
      ASSERT_TRUE(WriteTrace(trace, path.value(), Overwrite::kRefuse).ok());
      staged.push_back({.path = path.value(), .name = "t" + std::to_string(seed)});
    }
    ASSERT_TRUE(corpus.value().AddStaged(staged).ok());
  }

  static PlanOptions Both(uint64_t shards, uint64_t shards_a_part = 3) {
    return {.mine = stackmine::ReduceOptions(),
            .causes = causality::ExtractOptions(),
            .events_a_shard = 1,
            .max_shards = shards,
            .shards_a_part = shards_a_part};
  }

  RunFolder MakeRun(const std::string& name, const PlanOptions& options) {
    auto plan = MakePlan(folder_ / "c", options);
    EXPECT_TRUE(plan.ok());
    auto run = RunFolder::Create(folder_ / name, plan.value());
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

  // What one process gathers, without summaries.
  std::string InProcess() {
    stackmine::GatherOptions mine;
    mine.use_summaries = false;
    causality::GatherOptions causes;
    causes.use_summaries = false;
    return EncodeEvidence(stackmine::GatherEvidence(folder_ / "c", mine, progress_).value()) +
           EncodeEvidence(causality::GatherEvidence(folder_ / "c", causes, progress_).value());
  }

  static std::string Found(const RunFolder& run) {
    auto result = ReadResult(run);
    EXPECT_TRUE(result.ok());
    return EncodeEvidence(*result.value().mine) + EncodeEvidence(*result.value().causes);
  }

  TestFolder folder_;
  Progress progress_;
};

TEST_F(VerbsTest, GiveTheEvidenceOfOneProcessHoweverTheWorkIsCut) {
  const std::string expected = InProcess();
  std::string output;
  for (const uint64_t shards : {1, 2, 5, 23, 100}) {
    for (const bool summaries : {false, true}) {
      const RunFolder run =
          MakeRun("run" + std::to_string(shards) + (summaries ? "s" : ""), Both(shards));
      Finish(run, {.jobs = shards % 3 + 1, .use_summaries = summaries});
      EXPECT_EQ(Found(run), expected) << shards;
      const std::string bytes = ReadWholeFile(run.OutputPath(Verb::kFinalize, 0)).value();
      if (output.empty()) output = bytes;
      EXPECT_EQ(bytes, output) << "the result file is the same to the byte";
    }
  }
}

TEST_F(VerbsTest, ABoundOnMemoryChangesNoByte) {
  const std::string expected = InProcess();
  for (const uint64_t memory_bytes : {1, 3000}) {
    const RunFolder run = MakeRun("run" + std::to_string(memory_bytes), Both(5));
    Finish(run, {.memory_bytes = memory_bytes});
    EXPECT_EQ(Found(run), expected);
    auto result = ReadResult(run, memory_bytes);
    ASSERT_TRUE(result.ok());
    EXPECT_GT(result.value().mine->rows.spilled_bytes(), 0U);
    EXPECT_EQ(EncodeEvidence(*result.value().mine) + EncodeEvidence(*result.value().causes),
              expected);
  }
}

TEST_F(VerbsTest, ClocksOfOtherHostsPlayNoPart) {
  const RunFolder run = MakeRun("run", Both(4));
  Finish(run);
  const auto now = fs::file_time_type::clock::now();
  for (uint64_t i = 0; i < run.Count(Verb::kMap); ++i) {
    fs::last_write_time(run.OutputPath(Verb::kMap, i),
                        now + std::chrono::hours(i % 2 == 0 ? 100'000 : -100'000));
    EXPECT_TRUE(run.TaskDone(Verb::kMap, i));
  }
  fs::remove(run.OutputPath(Verb::kFinalize, 0));
  Finish(run);
  EXPECT_EQ(Found(run), InProcess());
}

TEST_F(VerbsTest, DoingATaskTwiceOrTwoAtOnceIsHarmless) {
  const RunFolder run = MakeRun("run", Both(4));
  std::vector<Status> statuses(24);
  ParallelFor(statuses.size(), 8, [&](size_t i) {
    Progress silent;
    statuses[i] = RunTask(run, Verb::kMap, i % run.Count(Verb::kMap), {}, silent);
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok());
  Finish(run);
  EXPECT_EQ(Found(run), InProcess());
}

TEST_F(VerbsTest, ATaskIsDoneOnlyIfItsOutputIsWholeAndItsOwn) {
  const RunFolder run = MakeRun("run", Both(4));
  EXPECT_FALSE(run.TaskDone(Verb::kMap, 0));
  Finish(run);
  EXPECT_TRUE(run.TaskDone(Verb::kMap, 1));
  const std::string path = run.OutputPath(Verb::kMap, 1);
  const std::string whole = ReadWholeFile(path).value();
  ASSERT_TRUE(WriteWholeFile(path, whole.substr(0, whole.size() / 2), Overwrite::kAllow).ok());
  EXPECT_FALSE(run.TaskDone(Verb::kMap, 1));
  fs::copy_file(run.OutputPath(Verb::kMap, 0), path, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(run.TaskDone(Verb::kMap, 1)) << "another shard's output";
  fs::remove(path);
  EXPECT_FALSE(run.TaskDone(Verb::kMap, 1));
  EXPECT_FALSE(run.TaskDone(Verb::kMap, 1000));
  Finish(run);
  EXPECT_EQ(ReadWholeFile(path).value(), whole);
}

TEST_F(VerbsTest, ReducingBeforeItsShardsAreThereIsAnError) {
  const RunFolder run = MakeRun("run", Both(4));
  EXPECT_FALSE(ReducePart(run, 0, {}).ok());
  EXPECT_FALSE(Finalize(run, {}).ok());
  EXPECT_FALSE(ReadResult(run).ok());
  EXPECT_FALSE(RunTask(run, Verb::kMap, 99, {}, progress_).ok());
}

TEST_F(VerbsTest, ARunIsOpenedElsewhereAndGoneOnWith) {
  const std::string expected = InProcess();
  {
    const RunFolder run = MakeRun("run", Both(4));
    ASSERT_TRUE(MapShard(run, 2, {}, progress_).ok());
  }
  const auto run = RunFolder::Open(folder_ / "run");
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run.value().TaskDone(Verb::kMap, 2));
  EXPECT_FALSE(run.value().TaskDone(Verb::kMap, 3));
  // The catalog is not asked any more.
  fs::rename(folder_ / "c/catalog.sqlite", folder_ / "moved");
  Finish(run.value());
  fs::rename(folder_ / "moved", folder_ / "c/catalog.sqlite");
  EXPECT_EQ(Found(run.value()), expected);
}

TEST_F(VerbsTest, AFolderWithAnotherPlanOrOtherFilesIsRefused) {
  MakeRun("run", Both(4));
  const auto other = MakePlan(folder_ / "c", Both(5));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(RunFolder::Create(folder_ / "run", other.value()).ok());
  fs::create_directory(folder_ / "mine");
  folder_.Write("mine/letter.txt", "dear");
  EXPECT_FALSE(RunFolder::Create(folder_ / "mine", other.value()).ok());
  EXPECT_FALSE(RunFolder::Open(folder_ / "mine").ok());
  EXPECT_TRUE(RunFolder::Create(folder_ / "run", MakePlan(folder_ / "c", Both(4)).value()).ok());
}

TEST_F(VerbsTest, TracesThatVanishedAreNamedInTheResult) {
  const RunFolder run = MakeRun("run", Both(4));
  fs::remove(folder_ / ("c/traces/" + run.plan().traces[5].file));
  Finish(run);
  const auto result = ReadResult(run);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().mine->unreadable.size(), 1U);
  EXPECT_EQ(result.value().causes->traces.size(), kTraces - 1);
  EXPECT_EQ(Found(run), InProcess());
}

TEST_F(VerbsTest, OneKindOfEvidenceAlone) {
  const RunFolder run = MakeRun("run", {.causes = causality::ExtractOptions{.impact = false}});
  EXPECT_EQ(run.Count(Verb::kMap), 1U) << "small corpora are one shard";
  Finish(run);
  const auto result = ReadResult(run);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.value().mine);
  EXPECT_TRUE(result.value().causes->cells.empty());
  EXPECT_FALSE(result.value().causes->rows.empty());
}

TEST_F(VerbsTest, AnEmptyCorpusHasAResult) {
  ASSERT_TRUE(corpus::Corpus::Create(folder_ / "empty").ok());
  const auto plan = MakePlan(folder_ / "empty", Both(4));
  ASSERT_TRUE(plan.ok());
  const auto run = RunFolder::Create(folder_ / "run", plan.value());
  ASSERT_TRUE(run.ok());
  Finish(run.value());
  EXPECT_TRUE(ReadResult(run.value()).value().mine->traces.empty());
}

TEST_F(VerbsTest, PlansComeBackFromJsonAndBrokenOnesAreRefused) {
  PlanOptions options = Both(5);
  options.mine->scenarios = {"Open*", "quote\"d"};
  options.causes->component.globs = {"*.sys"};
  options.max_trace_bytes = 12345;
  const Plan plan = MakePlan(folder_ / "c", options).value();
  const std::string json = PlanToJson(plan);
  const auto back = PlanFromJson(json, "plan.json");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(PlanToJson(back.value()), json);
  EXPECT_EQ(back.value().mine->scenarios, options.mine->scenarios);
  for (const std::string_view bad : {"", "{}", "[1,2]", "{\"version\": 3}"}) {
    EXPECT_FALSE(PlanFromJson(bad, "plan.json").ok()) << bad;
  }
  std::string ends = json;
  const size_t at = ends.find("\"shard_ends\"");
  ends.replace(ends.find_first_of("0123456789", at), 1, "999");
  EXPECT_FALSE(PlanFromJson(ends, "plan.json").ok());
  std::string outside = json;
  outside.replace(outside.find(plan.traces[0].file), plan.traces[0].file.size(), "../../passwd");
  EXPECT_FALSE(PlanFromJson(outside, "plan.json").ok());
}

}  // namespace
}  // namespace culprit::scale::TEST_FILE
