// SPDX-License-Identifier: Apache-2.0
#include "causality/gather.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_folder.h"
#include "causality/figure_one.h"
#include "causality/impact.h"
#include "corpus/corpus.h"
#include "trace/trace_writer.h"
#include "waitgraph/timelines_random.h"

namespace culprit::causality::TEST_FILE {
namespace {

class Gather : public ::testing::Test {
 protected:
  std::string Write(const trace::Trace& trace, const std::string& name) {
    const std::string path = folder_ / (name + ".ctrace");
    EXPECT_TRUE(WriteTrace(trace, path, Overwrite::kRefuse).ok());
    return path;
  }
  GatherOptions Options(size_t jobs = 2) {
    GatherOptions options;
    options.extract.component.globs = {"*.sys"};
    options.jobs = jobs;
    return options;
  }

  TestFolder folder_;
  Progress progress_;
};

TEST_F(Gather, OfACorpusIsTheSameForAnyNumberOfThreads) {
  auto corpus = corpus::Corpus::Create(folder_ / "corpus");
  ASSERT_TRUE(corpus.ok());
  for (int i = 0; i < 12; ++i) {
    trace::Trace trace = i % 3 == 0 ? FigureOne::Slow() : FigureOne::Fast();
    trace.metadata.machine = "box" + std::to_string(i);
    ASSERT_TRUE(corpus.value().Add(Write(trace, "t" + std::to_string(i)), {}).ok());
  }
  const auto one = GatherEvidence(folder_ / "corpus", Options(1), progress_);
  const auto many = GatherEvidence(folder_ / "corpus", Options(8), progress_);
  ASSERT_TRUE(one.ok());
  ASSERT_TRUE(many.ok());
  EXPECT_EQ(one.value().instances.size(), 12U);
  ASSERT_EQ(one.value().rows.size(), many.value().rows.size());
  for (size_t i = 0; i < one.value().rows.size(); ++i) {
    EXPECT_EQ(one.value().rows[i].node, many.value().rows[i].node);
    EXPECT_EQ(one.value().rows[i].cost_ns, many.value().rows[i].cost_ns);
  }
  const ImpactResult a = MeasureImpact(one.value());
  const ImpactResult b = MeasureImpact(many.value());
  EXPECT_EQ(a.whole.d_wait_ns, b.whole.d_wait_ns);
  EXPECT_EQ(a.whole.d_wait_ns, 4 * 690 + 8 * 15);
  EXPECT_EQ(a.whole.ia_wait_interval->low, b.whole.ia_wait_interval->low);
}

TEST_F(Gather, TakesATraceFileToo) {
  const auto evidence = GatherEvidence(Write(FigureOne::Slow(), "one"), Options(), progress_);
  ASSERT_TRUE(evidence.ok());
  EXPECT_EQ(evidence.value().instances.size(), 1U);
  EXPECT_FALSE(evidence.value().rows.empty());
}

TEST_F(Gather, NamesTracesThatDoNotFitTheMemoryAllowed) {
  GatherOptions options = Options();
  options.max_memory_bytes = 100;
  const auto evidence = GatherEvidence(Write(FigureOne::Slow(), "one"), options, progress_);
  ASSERT_TRUE(evidence.ok());
  EXPECT_TRUE(evidence.value().instances.empty());
  ASSERT_EQ(evidence.value().unreadable.size(), 1U);
}

TEST_F(Gather, OfWhatIsNoTraceIsAnError) {
  EXPECT_FALSE(GatherEvidence(folder_ / "nothing", Options(), progress_).ok());
}

TEST_F(Gather, FindsInstancesWhereNoneAreMarkedAndLeavesIdleWaitsOut) {
  uint64_t found = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const trace::Trace trace = waitgraph::RandomSchedule({.seed = seed, .steps = 400}).Make();
    ExtractOptions options;
    options.component.globs = {"*"};
    const Evidence evidence = ExtractTrace(trace, "t", options);
    EXPECT_TRUE(evidence.traces[0].automatic);
    found += evidence.instances.size();
  }
  EXPECT_GT(found, 30U);
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
