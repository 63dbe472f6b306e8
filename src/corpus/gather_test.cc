// SPDX-License-Identifier: Apache-2.0
#include "corpus/gather.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/parallel.h"
#include "base/test_folder.h"
#include "corpus/corpus.h"
#include "trace/small_trace.h"
#include "trace/trace_writer.h"

namespace culprit::corpus::TEST_FILE {
namespace {

struct Doubled {
  explicit Doubled(const trace::Trace& trace) : events(trace.events.size() * 2) {}
  const size_t events;
};

// Takes the machine's name and the number of events from each trace.
class Names final : public PartCollector<std::string> {
 public:
  explicit Names(std::string parameters = "", std::string kind = "names")
      : PartCollector({.name = std::move(kind), .parameters = std::move(parameters)}) {}

  uint64_t bytes_an_event() const override { return 100; }
  void AddUnreadable(const std::string& line) override { text += "(" + line + ")"; }

  std::string text;
  mutable std::atomic<int> extracted{0};

 protected:
  std::string ExtractPart(TraceViews& views) const override {
    ++extracted;
    const trace::Trace& trace = views.trace();
    EXPECT_EQ(&views.Of<Doubled>(), &views.Of<Doubled>()) << "a view is made once";
    EXPECT_EQ(views.Of<Doubled>().events, trace.events.size() * 2);
    return trace.metadata.machine + ":" + std::to_string(trace.events.size());
  }
  std::string EncodePart(const std::string& part) const override { return part; }
  std::optional<std::string> DecodePart(std::string_view bytes) const override {
    if (bytes.find(':') == std::string_view::npos) return std::nullopt;
    return std::string(bytes);
  }
  void AddPart(std::string part, const std::string& name) override {
    text += name + "=" + part + " ";
  }
};

class GatherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto corpus = Corpus::Create(folder_ / "c");
    ASSERT_TRUE(corpus.ok());
    std::vector<int> numbers(kTraces);
    std::iota(numbers.begin(), numbers.end(), 0);
    AddTraces(corpus.value(), numbers);
  }

  static void AddTraces(Corpus& corpus, const std::vector<int>& numbers) {
    std::vector<StagedTrace> staged;
    for (const int number : numbers) staged.push_back(Stage(corpus, number));
    ASSERT_TRUE(corpus.AddStaged(staged).ok());
  }

  static StagedTrace Stage(Corpus& corpus, int number) {
    trace::SmallTrace small(0, 1000);
    for (int i = 0; i <= number; ++i) {
      small.Add(trace::EventKind::kRunning, "a", i * 10, i * 10 + 10, "app!main");
    }
    small.trace.metadata.machine = "box" + std::to_string(number);
    const std::string path = corpus.NewStagingPath().value();
    EXPECT_TRUE(WriteTrace(small.trace, path, Overwrite::kRefuse).ok());
    return {.path = path, .name = "t" + std::to_string(number + 100).substr(1)};
  }

  GatherReport Run(std::vector<Collector*> collectors, const GatherOptions& options = {}) {
    auto report = Gather(folder_ / "c", collectors, options, progress_);
    EXPECT_TRUE(report.ok());
    return report.ok() ? report.value() : GatherReport();
  }

  std::vector<TraceRow> Rows() { return Corpus::Open(folder_ / "c").value().List().value(); }
  std::string PathOf(int number) {
    return folder_ / ("c/traces/" + Rows().at(static_cast<size_t>(number)).file);
  }
  static std::string Expected() {
    std::string text;
    for (int i = 0; i < kTraces; ++i) {
      const std::string digits = std::to_string(i + 100).substr(1);
      text += "t" + digits + "=box" + std::to_string(i) + ":" + std::to_string(i + 1) + " ";
    }
    return text;
  }

  static constexpr int kTraces = 40;
  TestFolder folder_;
  Progress progress_;
};

TEST_F(GatherTest, AddsInTheOrderOfTheCatalogForAnyNumberOfThreads) {
  for (const size_t jobs : {1, 2, 3, 8, 50}) {
    for (const bool summaries : {false, true}) {
      Names names;
      Run({&names}, {.jobs = jobs, .use_summaries = summaries});
      EXPECT_EQ(names.text, Expected()) << jobs;
    }
  }
}

TEST_F(GatherTest, ASecondTimeNothingIsRead) {
  Names first;
  const GatherReport cold = Run({&first});
  EXPECT_EQ(cold.traces_read, 40U);
  EXPECT_EQ(cold.summaries_made, 40U);
  EXPECT_EQ(first.extracted, 40);
  Names second;
  const GatherReport warm = Run({&second});
  EXPECT_EQ(warm.traces_read, 0U);
  EXPECT_EQ(warm.summaries_used, 40U);
  EXPECT_EQ(second.extracted, 0);
  EXPECT_EQ(second.text, first.text);
}

TEST_F(GatherTest, OnlyAddedTracesAreRead) {
  Names first;
  Run({&first});
  auto corpus = Corpus::Open(folder_ / "c");
  AddTraces(corpus.value(), {77});
  Names second;
  EXPECT_EQ(Run({&second}).traces_read, 1U);
  EXPECT_EQ(second.text, Expected() + "t77=box77:78 ");
}

TEST_F(GatherTest, OtherParametersAreOtherSummaries) {
  Names first("a");
  Run({&first});
  Names second("b");
  EXPECT_EQ(Run({&second}).traces_read, 40U);
}

TEST_F(GatherTest, TwoCollectorsShareOneReading) {
  Names one("", "one");
  Run({&one});
  Names again("", "one");
  Names other("", "other");
  const GatherReport report = Run({&again, &other});
  EXPECT_EQ(report.traces_read, 40U);
  EXPECT_EQ(again.extracted, 0);
  EXPECT_EQ(other.extracted, 40);
  EXPECT_EQ(again.text, other.text);
}

TEST_F(GatherTest, ADamagedSummaryIsMadeAgain) {
  Names first;
  Run({&first});
  const std::vector<SummaryFile> files = ListSummaries(folder_ / "c");
  ASSERT_EQ(files.size(), 40U);
  const std::string cut = folder_ / ("c/" + files[3].path);
  const std::string whole = ReadWholeFile(cut).value();
  ASSERT_TRUE(WriteWholeFile(cut, whole.substr(0, 30), Overwrite::kAllow).ok());
  // Whole, but of another trace.
  const std::string foreign = folder_ / ("c/" + files[7].path);
  ASSERT_TRUE(WriteWholeFile(foreign, whole, Overwrite::kAllow).ok());
  Names second;
  EXPECT_EQ(Run({&second}).traces_read, 2U);
  EXPECT_EQ(second.text, first.text);
  EXPECT_EQ(ReadWholeFile(cut).value(), whole);
}

TEST_F(GatherTest, ASummaryThatDoesNotDecodeIsMadeAgain) {
  Names first;
  Run({&first});
  SummaryStore(folder_ / "c").Put(Rows()[5].sha256, first.summary(), "no colon in it");
  Names second;
  EXPECT_EQ(Run({&second}).traces_read, 1U);
  EXPECT_EQ(second.text, first.text);
}

TEST_F(GatherTest, NamesTracesThatVanishedOrAreDamagedAndGoesOn) {
  Names first;
  Run({&first});
  const std::string gone = PathOf(2);
  const std::string cut = PathOf(4);
  ASSERT_TRUE(std::filesystem::remove(gone));
  const std::string bytes = ReadWholeFile(cut).value();
  ASSERT_TRUE(WriteWholeFile(cut, bytes.substr(0, 24), Overwrite::kAllow).ok());
  for (const bool summaries : {true, false}) {
    Names second;
    Run({&second}, {.use_summaries = summaries});
    EXPECT_NE(second.text.find("(t02: " + gone), std::string::npos) << second.text;
    EXPECT_NE(second.text.find("(t04: not one event could be read"), std::string::npos);
    EXPECT_NE(second.text.find("t39=box39:40"), std::string::npos);
  }
}

TEST_F(GatherTest, NoSummaryIsKeptOfAFileThatIsNotWhatTheCatalogSays) {
  const std::string cut = PathOf(30);
  const std::string bytes = ReadWholeFile(cut).value();
  ASSERT_TRUE(WriteWholeFile(cut, bytes.substr(0, bytes.size() - 20), Overwrite::kAllow).ok());
  Names first;
  EXPECT_EQ(Run({&first}).summaries_made, 39U);
  ASSERT_TRUE(WriteWholeFile(cut, bytes, Overwrite::kAllow).ok());
  Names second;
  EXPECT_EQ(Run({&second}).traces_read, 1U);
  EXPECT_EQ(second.text, Expected());
}

TEST_F(GatherTest, WithoutAWritableFolderItWorksAndSaysWhy) {
  folder_.Write("c/summaries", "in the way");
  Names names;
  const GatherReport report = Run({&names});
  EXPECT_EQ(names.text, Expected());
  EXPECT_FALSE(report.why_not_kept.empty());
}

TEST_F(GatherTest, TracesOverTheBoundAreNamedWhetherOrNotThereAreSummaries) {
  // 20 events of 100 bytes each.
  const GatherOptions tight{.max_trace_bytes = 2000};
  Names cold;
  Run({&cold}, tight);
  Names first;
  Run({&first});
  Names warm;
  Run({&warm}, tight);
  EXPECT_EQ(cold.text, warm.text);
  EXPECT_NE(cold.text.find("t19=box19:20"), std::string::npos);
  EXPECT_NE(cold.text.find("(t20: its 21 events need about 2.10 kB of memory"), std::string::npos);
}

TEST_F(GatherTest, ATinyMemoryBoundOnlyMakesItSlower) {
  Names names;
  Run({&names}, {.memory_bytes = 1, .jobs = 8, .use_summaries = false});
  EXPECT_EQ(names.text, Expected());
}

TEST_F(GatherTest, RemovingATraceRemovesItsSummaries) {
  Names names;
  Run({&names});
  auto corpus = Corpus::Open(folder_ / "c");
  ASSERT_TRUE(corpus.value().Remove({"t03", "t04"}).ok());
  EXPECT_EQ(ListSummaries(folder_ / "c").size(), 38U);
}

TEST_F(GatherTest, CheckKnowsSummariesAndRepairRemovesThoseOfNobody) {
  Names names;
  Run({&names});
  SummaryStore(folder_ / "c").Put(std::string(64, 'e'), names.summary(), "x:1");
  Progress progress;
  const auto seen = CheckCorpus(folder_ / "c", {}, progress);
  ASSERT_TRUE(seen.ok());
  EXPECT_TRUE(seen.value().ok());
  EXPECT_EQ(seen.value().summaries, 41U);
  ASSERT_EQ(seen.value().strays.size(), 1U);
  EXPECT_EQ(ListSummaries(folder_ / "c").size(), 41U);
  ASSERT_TRUE(CheckCorpus(folder_ / "c", {.repair = true}, progress).ok());
  EXPECT_EQ(ListSummaries(folder_ / "c").size(), 40U);
}

TEST_F(GatherTest, SeveralAtOnceAreHarmless) {
  std::array<Names, 6> all;
  ParallelFor(all.size(), all.size(), [&](size_t i) {
    const std::array<Collector*, 1> collectors = {&all[i]};
    Progress silent;
    EXPECT_TRUE(Gather(folder_ / "c", collectors, {.jobs = 2}, silent).ok());
  });
  for (const Names& names : all) EXPECT_EQ(names.text, Expected());
  Names after;
  EXPECT_EQ(Run({&after}).traces_read, 0U);
  for (const SummaryFile& file : ListSummaries(folder_ / "c")) EXPECT_FALSE(file.temporary);
}

TEST_F(GatherTest, ATraceThatChangesWhileItIsReadDisturbsNoOther) {
  const std::string changing = PathOf(20);
  const std::string bytes = ReadWholeFile(changing).value();
  std::atomic<bool> stop{false};
  // In place, as no corpus does it: cut, grown, other bytes, gone, back again.
  std::thread writer([&] {
    for (int i = 0; !stop.load(); ++i) {
      std::error_code code;
      if (i % 4 == 0) std::filesystem::resize_file(changing, bytes.size() / 2, code);
      if (i % 4 == 1) std::filesystem::resize_file(changing, bytes.size(), code);
      if (i % 4 == 2) std::filesystem::remove(changing, code);
      if (i % 4 == 3) std::ofstream(changing, std::ios::binary) << bytes;
    }
  });
  for (int round = 0; round < 50; ++round) {
    Names names;
    Run({&names}, {.jobs = 2});
    EXPECT_NE(names.text.find("t19=box19:20 "), std::string::npos);
    EXPECT_NE(names.text.find("t21=box21:22 "), std::string::npos);
  }
  stop.store(true);
  writer.join();
  // Whatever was kept of it meanwhile is what the whole file gives.
  std::ofstream(changing, std::ios::binary) << bytes;
  Names after;
  Run({&after});
  EXPECT_EQ(after.text, Expected());
}

TEST_F(GatherTest, ClocksOfOtherHostsPlayNoPart) {
  Names first;
  Run({&first});
  // Written by hosts whose clocks are years ahead and behind.
  int number = 0;
  for (const SummaryFile& file : ListSummaries(folder_ / "c")) {
    const auto years = std::chrono::hours(24 * 365 * (++number % 2 == 0 ? 20 : -20));
    std::filesystem::last_write_time(folder_ / ("c/" + file.path),
                                     std::filesystem::file_time_type::clock::now() + years);
  }
  std::filesystem::last_write_time(
      PathOf(3), std::filesystem::file_time_type::clock::now() + std::chrono::hours(24 * 365));
  Names second;
  EXPECT_EQ(Run({&second}).traces_read, 0U);
  EXPECT_EQ(second.text, Expected());
  const auto removed = TrimSummaries(folder_ / "c", 0);
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed.value().files, 40U);
}

size_t Occurrences(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST_F(GatherTest, AFewDamagedAmongManyAreNamedOnceEach) {
  for (const int number : {3, 17, 29}) {
    const std::string bytes = ReadWholeFile(PathOf(number)).value();
    std::ofstream(PathOf(number), std::ios::binary) << std::string(bytes.size(), '\0');
  }
  std::string expected;
  for (const size_t jobs : {1, 2, 8}) {
    Names names;
    const GatherReport report = Run({&names}, {.jobs = jobs});
    EXPECT_EQ(report.traces, 40U);
    EXPECT_EQ(Occurrences(names.text, "(t"), 3U) << names.text;
    EXPECT_EQ(Occurrences(names.text, "=box"), 37U) << names.text;
    if (expected.empty()) expected = names.text;
    EXPECT_EQ(names.text, expected) << jobs;
  }
}

TEST_F(GatherTest, TakesOneTraceFile) {
  Names names;
  const std::string path = PathOf(1);
  const std::array<Collector*, 1> collectors = {&names};
  ASSERT_TRUE(Gather(path, collectors, {}, progress_).ok());
  EXPECT_EQ(names.text, path + "=box1:2 ");
  EXPECT_FALSE(Gather(folder_ / "nothing", collectors, {}, progress_).ok());
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
