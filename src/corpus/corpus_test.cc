// SPDX-License-Identifier: Apache-2.0
#include "corpus/corpus.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "base/test_folder.h"
#include "corpus/staging.h"
#include "trace/random_trace.h"
#include "trace/small_trace.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::corpus::TEST_FILE {
namespace {

namespace fs = std::filesystem;

class CorpusTest : public testing::Test {
 protected:
  // A trace file of its own content for every seed.
  std::string TraceFile(const std::string& name, uint64_t seed, size_t events = 300) {
    const trace::Trace trace = trace::RandomTrace({.seed = seed, .events = events});
    return work_.Write(name, trace::EncodeTrace(trace, {.block_events = 100}));
  }
  std::string Folder() const { return work_ / "corpus"; }
  Corpus Make() { return Corpus::Create(Folder()).value(); }
  static size_t FilesIn(const std::string& folder) {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder)) count += entry.is_regular_file();
    return count;
  }
  size_t ContentCount() const { return FilesIn(Folder() + "/traces"); }
  size_t StagingCount() const { return FilesIn(Folder() + "/traces/.staging"); }
  CheckReport Checked(bool repair = false) {
    return CheckCorpus(Folder(), {.repair = repair}, progress_).value();
  }
  // Changes the catalog behind the corpus's back.
  void Tamper(const char* sql) {
    const Database database =
        Database::Open(Folder() + "/catalog.sqlite", Database::Mode::kReadWrite).value();
    ASSERT_TRUE(database.Execute(sql).ok());
  }
  void FlipByte(const std::string& path, uint64_t offset) {
    std::string bytes = ReadWholeFile(path).value();
    ASSERT_LT(offset, bytes.size());
    bytes[offset] = static_cast<char>(bytes[offset] ^ 0x55);
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  }

  TestFolder work_;
  Progress progress_;
};

TEST_F(CorpusTest, AnAddedTraceIsStoredByContentAndDescribed) {
  const std::string source = TraceFile("first.ctrace", 1);
  Corpus corpus = Make();
  const AddOutcome outcome = corpus.Add(source, {.labels = {{"tier", "lead"}}}).value();
  EXPECT_EQ(outcome.kind, AddOutcome::Kind::kAdded);
  EXPECT_EQ(outcome.name, "first");
  EXPECT_TRUE(outcome.complete);

  const TraceRow row = corpus.Find("first").value();
  EXPECT_EQ(row.id, outcome.id);
  EXPECT_EQ(row.sha256, FileSha256(source).value());
  EXPECT_EQ(row.file, row.sha256.substr(0, 32) + ".ctrace");
  EXPECT_EQ(ReadWholeFile(corpus.TracePath(row)).value(), ReadWholeFile(source).value());
  EXPECT_EQ(row.events, 300u);
  EXPECT_EQ(row.threads, 7u);
  EXPECT_EQ(row.instances, 5u);
  EXPECT_EQ(row.dur_ns, 1'000'000'000);
  EXPECT_EQ(row.labels,
            (std::map<std::string, std::string>{{"region", "north"}, {"tier", "lead"}}));
  const trace::Trace trace = trace::ReadTrace(source).value();
  for (size_t kind = 0; kind < trace::kEventKinds; ++kind) {
    const auto count =
        std::count_if(trace.events.begin(), trace.events.end(), [&](const trace::Event& event) {
          return event.kind == static_cast<trace::EventKind>(kind);
        });
    EXPECT_EQ(row.kind_counts[kind], static_cast<uint64_t>(count));
  }
  const auto instances = corpus.InstancesOf(row).value();
  ASSERT_EQ(instances.size(), 5u);
  EXPECT_EQ(instances[1].scenario, "Scenario1");
  EXPECT_EQ(instances[1].dur_ns, 700);
  EXPECT_EQ(instances[1].thread_name, "worker");
  EXPECT_EQ(StagingCount(), 0u);
}

TEST_F(CorpusTest, AddingTheSameContentAgainChangesOnlyLabels) {
  const std::string source = TraceFile("a.ctrace", 1);
  fs::copy_file(source, work_ / "b.ctrace");
  Corpus corpus = Make();
  const int64_t id = corpus.Add(source, {}).value().id;
  const AddOutcome again =
      corpus.Add(work_ / "b.ctrace", {.name = "other", .labels = {{"k", "v"}}}).value();
  EXPECT_EQ(again.kind, AddOutcome::Kind::kAlreadyThere);
  EXPECT_EQ(again.id, id);
  EXPECT_EQ(again.name, "a");
  EXPECT_EQ(corpus.List().value().size(), 1u);
  EXPECT_EQ(corpus.Find("a").value().labels.at("k"), "v");
  EXPECT_EQ(ContentCount(), 1u);
}

TEST_F(CorpusTest, ATakenNameGetsASuffix) {
  Corpus corpus = Make();
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto outcome = corpus.Add(TraceFile("run.ctrace", seed), {});
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.value().name, seed == 1 ? "run" : "run-" + std::to_string(seed));
  }
  EXPECT_EQ(corpus.Add(TraceFile("x.ctrace", 9), {.name = "a/b\n"}).value().name, "a_b_");
}

TEST_F(CorpusTest, AFileThatIsNoTraceIsRefusedAndLeavesNothing) {
  Corpus corpus = Make();
  for (const std::string& bytes : {std::string(), std::string("hello"), std::string(5000, 'x')}) {
    const auto outcome = corpus.Add(work_.Write("bad", bytes), {});
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().file, work_ / "bad");
  }
  EXPECT_FALSE(corpus.Add(work_ / "missing", {}).ok());
  EXPECT_FALSE(corpus.Add(work_.path(), {}).ok());
  EXPECT_EQ(ContentCount(), 0u);
  EXPECT_EQ(StagingCount(), 0u);
  EXPECT_TRUE(corpus.List().value().empty());
}

TEST_F(CorpusTest, ACutTraceIsAddedWithWhatCanBeRead) {
  const std::string source = TraceFile("cut.ctrace", 1, 1000);
  fs::resize_file(source, fs::file_size(source) * 2 / 3);
  Corpus corpus = Make();
  const AddOutcome outcome = corpus.Add(source, {}).value();
  EXPECT_FALSE(outcome.complete);
  EXPECT_FALSE(outcome.diagnostics.empty());
  const TraceRow row = corpus.Find("cut").value();
  EXPECT_FALSE(row.complete);
  EXPECT_GT(row.skipped, 0u);
  EXPECT_GT(row.events, 0u);
  EXPECT_LT(row.events, 1000u);
  const CheckReport report = Checked();
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.damaged_when_added, 1u);
}

TEST_F(CorpusTest, ATraceWithARottenBlockIsAddedWithoutThatBlock) {
  const std::string source = TraceFile("rotten.ctrace", 1, 1000);
  uint64_t inside = 0;
  {
    const trace::TraceReader reader = trace::TraceReader::Open(source).value();
    inside = reader.blocks()[3].offset + reader.blocks()[3].length - 2;
  }
  FlipByte(source, inside);
  Corpus corpus = Make();
  EXPECT_FALSE(corpus.Add(source, {}).value().complete);
  const TraceRow row = corpus.Find("rotten").value();
  EXPECT_EQ(row.damaged_blocks, 1u);
  EXPECT_EQ(row.events, 900u);
  EXPECT_TRUE(Checked().ok());
}

TEST_F(CorpusTest, AddManyGivesNamesInOrderWhateverTheThreads) {
  std::vector<std::string> paths;
  for (uint64_t seed = 0; seed < 70; ++seed) {
    fs::create_directory(work_ / std::to_string(seed));
    paths.push_back(TraceFile(std::to_string(seed) + "/t.ctrace", seed / 2, 20));
  }
  paths[10] = work_.Write("bad", "not a trace");
  const auto run = [&](const std::string& folder, size_t jobs) {
    Corpus corpus = Corpus::Create(folder).value();
    std::string text;
    const auto results = corpus.AddMany(paths, {}, jobs, progress_);
    for (const auto& result : results) {
      text += !result.ok() ? "failed "
                           : result.value().name + "#" + std::to_string(result.value().id) + " ";
    }
    return text;
  };
  const std::string one = run(work_ / "one", 1);
  EXPECT_EQ(one, run(work_ / "four", 4));
  EXPECT_EQ(one.find("t#1 t#1 t-2#2 t-2#2 "), 0u);
  EXPECT_NE(one.find("failed t-6#6 t-7#7"), std::string::npos);
  EXPECT_EQ(Corpus::Open(work_ / "four").value().List().value().size(), 35u);
}

TEST_F(CorpusTest, AStagedBatchIsAddedWholly) {
  Corpus corpus = Make();
  std::vector<StagedTrace> staged;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::string path = corpus.NewStagingPath().value();
    const trace::Trace trace = trace::RandomTrace({.seed = seed == 3 ? 1 : seed, .events = 50});
    ASSERT_TRUE(trace::WriteTrace(trace, path, Overwrite::kRefuse).ok());
    staged.push_back({path, "sim", {{"seed", std::to_string(seed)}}});
  }
  const auto outcomes = corpus.AddStaged(staged).value();
  EXPECT_EQ(outcomes[0].name, "sim");
  EXPECT_EQ(outcomes[1].name, "sim-2");
  EXPECT_EQ(outcomes[2].kind, AddOutcome::Kind::kAlreadyThere);
  EXPECT_EQ(outcomes[2].id, outcomes[0].id);
  EXPECT_EQ(StagingCount(), 0u);
  EXPECT_TRUE(Checked().ok());
}

TEST_F(CorpusTest, AStagedBatchWithABadFileChangesNothing) {
  Corpus corpus = Make();
  const std::string good = corpus.NewStagingPath().value();
  ASSERT_TRUE(trace::WriteTrace(trace::RandomTrace({}), good, Overwrite::kRefuse).ok());
  const std::string bad = corpus.NewStagingPath().value();
  ASSERT_TRUE(WriteWholeFile(bad, "not a trace", Overwrite::kRefuse).ok());
  EXPECT_FALSE(corpus.AddStaged({{good, "good", {}}, {bad, "bad", {}}}).ok());
  EXPECT_TRUE(corpus.List().value().empty());
  EXPECT_EQ(StagingCount(), 2u);
  EXPECT_EQ(ContentCount(), 0u);
}

TEST_F(CorpusTest, AFailedTransactionPutsTheFilesBack) {
  Corpus corpus = Make();
  std::vector<StagedTrace> staged;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    staged.push_back({corpus.NewStagingPath().value(), "s", {}});
    ASSERT_TRUE(trace::WriteTrace(trace::RandomTrace({.seed = seed}), staged.back().path,
                                  Overwrite::kRefuse)
                    .ok());
  }
  // The second cannot take its place: a folder of that name is in the way.
  const std::string second = FileSha256(staged[1].path).value().substr(0, 32) + ".ctrace";
  fs::create_directory(Folder() + "/traces/" + second);
  EXPECT_FALSE(corpus.AddStaged(staged).ok());
  EXPECT_TRUE(corpus.List().value().empty());
  EXPECT_EQ(ContentCount(), 0u);
  EXPECT_EQ(StagingCount(), 2u);
  fs::remove(Folder() + "/traces/" + second);
  EXPECT_TRUE(corpus.AddStaged(staged).ok());
}

TEST_F(CorpusTest, StagingPathsAreDistinctAcrossThreads) {
  Corpus corpus = Make();
  std::vector<std::vector<std::string>> paths(4);
  std::vector<std::thread> threads;
  for (auto& mine : paths) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) mine.push_back(corpus.NewStagingPath().value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> all;
  for (const auto& mine : paths) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

TEST_F(CorpusTest, RemovingIsAllOrNothing) {
  Corpus corpus = Make();
  ASSERT_TRUE(corpus.Add(TraceFile("alpha.ctrace", 1), {}).ok());
  ASSERT_TRUE(corpus.Add(TraceFile("beta.ctrace", 2), {}).ok());
  const auto failed = corpus.Remove({"alpha", "betta"});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("did you mean 'beta'?"), std::string::npos);
  EXPECT_EQ(corpus.List().value().size(), 2u);
  EXPECT_EQ(corpus.Remove({"alpha", "alpha"}).value(), 1u);
  EXPECT_EQ(ContentCount(), 1u);
  EXPECT_EQ(corpus.Remove({"beta"}).value(), 1u);
  EXPECT_EQ(ContentCount(), 0u);
  EXPECT_TRUE(Checked().strays.empty());
}

TEST_F(CorpusTest, AnInterruptedRemovalIsFinishedByRepair) {
  const std::string source = TraceFile("a.ctrace", 1);
  Corpus corpus = Make();
  ASSERT_TRUE(corpus.Add(source, {}).ok());
  const char* const interrupted =
      "PRAGMA foreign_keys = ON; INSERT INTO condemned SELECT file FROM traces; "
      "DELETE FROM traces";
  Tamper(interrupted);
  EXPECT_EQ(Checked().strays.size(), 1u);
  EXPECT_EQ(ContentCount(), 1u);
  EXPECT_EQ(Checked(true).strays.size(), 1u);
  EXPECT_EQ(ContentCount(), 0u);
  EXPECT_TRUE(corpus.List().value().empty());

  // Added again before the repair, the file is wanted again.
  ASSERT_TRUE(corpus.Add(source, {}).ok());
  Tamper(interrupted);
  ASSERT_TRUE(corpus.Add(source, {}).ok());
  const CheckReport report = Checked(true);
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.strays.empty());
  EXPECT_EQ(report.traces, 1u);
}

TEST_F(CorpusTest, OpenSaysWhatAFolderIsNot) {
  const auto message = [](const std::string& path) { return Corpus::Open(path).error().message; };
  EXPECT_NE(message(work_ / "none").find("No such file"), std::string::npos);
  EXPECT_FALSE(Corpus::Open(work_ / "none").error().hint.empty());
  EXPECT_NE(message(work_.Write("file", "x")).find("a corpus is a folder"), std::string::npos);
  EXPECT_NE(message(work_.path()).find("no catalog.sqlite"), std::string::npos);
  const auto created = Corpus::Create(work_.path());
  ASSERT_FALSE(created.ok());
  EXPECT_NE(created.error().message.find("neither empty nor a corpus"), std::string::npos);
  EXPECT_FALSE(fs::exists(work_ / "catalog.sqlite"));
}

TEST_F(CorpusTest, AnInterruptedCreationIsFinishedByTheNextUse) {
  fs::create_directories(Folder() + "/traces");
  EXPECT_TRUE(Corpus::Create(Folder()).ok());
  std::ofstream(Folder() + "/catalog.sqlite", std::ios::trunc).flush();
  EXPECT_TRUE(Corpus::Open(Folder()).value().List().value().empty());
}

TEST_F(CorpusTest, OtherFilesInTheFolderAreLeftAlone) {
  Make();
  std::ofstream(Folder() + "/truth.json") << "{}";
  std::ofstream(Folder() + "/traces/notes.txt") << "x";
  EXPECT_TRUE(Checked(true).strays.empty());
  EXPECT_TRUE(fs::exists(Folder() + "/truth.json"));
  EXPECT_TRUE(fs::exists(Folder() + "/traces/notes.txt"));
}

TEST_F(CorpusTest, CheckNoticesEveryDisagreement) {
  Corpus corpus = Make();
  ASSERT_TRUE(corpus.Add(TraceFile("a.ctrace", 1), {}).ok());
  const TraceRow row = corpus.Find("a").value();
  const std::string path = corpus.TracePath(row);
  const auto problem = [&] {
    const CheckReport report = Checked();
    return report.problems.empty() ? "" : report.problems.front().what;
  };
  EXPECT_EQ(problem(), "");
  const std::vector<std::pair<const char*, const char*>> changes = {
      {"UPDATE traces SET wait = wait + 1", "UPDATE traces SET wait = wait - 1"},
      {"UPDATE traces SET events = events + 1", "UPDATE traces SET events = events - 1"},
      {"UPDATE traces SET threads = threads + 1", "UPDATE traces SET threads = threads - 1"},
      {"UPDATE traces SET machine = 'x'", "UPDATE traces SET machine = 'box'"},
      {"UPDATE instances SET t1_ns = t1_ns + 1", "UPDATE instances SET t1_ns = t1_ns - 1"},
      {"UPDATE scenarios SET name = name || 'x'",
       "UPDATE scenarios SET name = substr(name, 1, length(name) - 1)"},
      {"UPDATE instances SET idx = idx + 9", "UPDATE instances SET idx = idx - 9"}};
  for (const auto& [change, back] : changes) {
    Tamper(change);
    EXPECT_NE(problem(), "") << change;
    Tamper(back);
    EXPECT_EQ(problem(), "") << back;
  }
  const std::string bytes = ReadWholeFile(path).value();
  for (size_t offset = 20; offset < bytes.size(); offset += bytes.size() / 40 + 1) {
    FlipByte(path, offset);
    EXPECT_NE(problem(), "") << offset;
    FlipByte(path, offset);
  }
  EXPECT_EQ(problem(), "");
  fs::resize_file(path, bytes.size() - 1);
  EXPECT_NE(problem().find("bytes, not"), std::string::npos);
  fs::remove(path);
  EXPECT_NE(problem().find("No such file"), std::string::npos);
}

TEST_F(CorpusTest, CheckNoticesTimeThatIsNotAccountedFor) {
  Corpus corpus = Make();
  for (const int64_t second_begins_ns : {40, 45}) {
    trace::SmallTrace small(0, 100);
    small.Add(trace::EventKind::kRunning, "T", 0, 40);
    small.Add(trace::EventKind::kRunning, "T", second_begins_ns, 100);
    const std::string name = "gap" + std::to_string(second_begins_ns - 40);
    const std::string path = work_.Write(name, trace::EncodeTrace(small.trace));
    ASSERT_TRUE(corpus.Add(path, {}).ok());
  }
  const CheckReport report = Checked();
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].trace, "gap5");
  EXPECT_NE(report.problems[0].what.find("not fully accounted for"), std::string::npos);
}

TEST_F(CorpusTest, AddingALostFileAgainPutsItBack) {
  const std::string source = TraceFile("a.ctrace", 1);
  Corpus corpus = Make();
  ASSERT_TRUE(corpus.Add(source, {}).ok());
  fs::remove(corpus.TracePath(corpus.Find("a").value()));
  EXPECT_FALSE(Checked().ok());
  EXPECT_EQ(corpus.Add(source, {}).value().kind, AddOutcome::Kind::kAlreadyThere);
  EXPECT_TRUE(Checked().ok());
}

TEST_F(CorpusTest, RepairTakesInStrayTracesAndRemovesDeadStaging) {
  Corpus corpus = Make();
  const std::string stray = TraceFile("stray.ctrace", 1);
  const std::string hash = FileSha256(stray).value();
  fs::rename(stray, Folder() + "/traces/" + hash.substr(0, 32) + ".ctrace");
  const std::string unreadable = Folder() + "/traces/" + std::string(32, 'a') + ".ctrace";
  std::ofstream(unreadable) << "of a later version, perhaps";
  const std::string mine = corpus.NewStagingPath().value();
  std::ofstream(mine) << "being written";
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream(corpus.NewStagingPath().value()) << "never finished";
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);

  EXPECT_EQ(Checked().strays.size(), 3u);
  EXPECT_EQ(StagingCount(), 2u);
  const CheckReport report = Checked(true);
  EXPECT_EQ(report.strays.size(), 3u);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.traces, 1u);
  EXPECT_EQ(corpus.List().value().front().name, "recovered-" + hash.substr(0, 12));
  EXPECT_TRUE(fs::exists(mine));
  EXPECT_EQ(StagingCount(), 1u);
  EXPECT_TRUE(fs::exists(unreadable));
}

TEST_F(CorpusTest, StagedFilesOfOtherSystemsAreKeptForADay) {
  Make();
  const std::string path = Folder() + "/traces/.staging/1-00000000-0.ctrace";
  std::ofstream(path.c_str()) << "x";
  EXPECT_EQ(WriterOf("1-00000000-0.ctrace"), StagingWriter::kElsewhere);
  EXPECT_TRUE(Checked(true).strays.empty());
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(25));
  EXPECT_EQ(Checked(true).strays.size(), 1u);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(CorpusTest, ALostCatalogIsRebuiltFromTheTraces) {
  {
    Corpus corpus = Make();
    ASSERT_TRUE(corpus.Add(TraceFile("a.ctrace", 1), {}).ok());
    ASSERT_TRUE(corpus.Add(TraceFile("b.ctrace", 2), {}).ok());
  }
  const std::string catalog = Folder() + "/catalog.sqlite";
  const std::vector<std::string> broken = {"garbage", std::string(8192, '\0'), ""};
  for (size_t i = 0; i < broken.size(); ++i) {
    std::ofstream(catalog, std::ios::trunc) << broken[i];
    EXPECT_FALSE(Corpus::Open(Folder()).ok());
    EXPECT_FALSE(Corpus::Create(Folder()).ok());
    const auto unrepaired = CheckCorpus(Folder(), {}, progress_);
    ASSERT_FALSE(unrepaired.ok());
    EXPECT_NE(unrepaired.error().hint.find("--repair"), std::string::npos);
    const CheckReport report = Checked(true);
    EXPECT_TRUE(report.ok());
    EXPECT_TRUE(report.catalog_rebuilt);
    EXPECT_EQ(report.traces, 2u);
    EXPECT_EQ(report.old_catalog, catalog + ".broken-" + std::to_string(i + 1));
    EXPECT_EQ(ReadWholeFile(report.old_catalog).value(), broken[i]);
  }
  fs::remove(catalog);
  EXPECT_FALSE(Corpus::Open(Folder()).ok());
  EXPECT_EQ(Checked(true).traces, 2u);
}

TEST_F(CorpusTest, ARebuiltCatalogKeepsNamesAndLabelsThatCanBeRead) {
  {
    Corpus corpus = Make();
    ASSERT_TRUE(corpus.Add(TraceFile("a.ctrace", 1), {.labels = {{"k", "v"}}}).ok());
    ASSERT_TRUE(corpus.Add(TraceFile("b.ctrace", 2), {}).ok());
  }
  Tamper("PRAGMA application_id = 1");
  EXPECT_TRUE(Checked(true).catalog_rebuilt);
  const Corpus corpus = Corpus::Open(Folder()).value();
  EXPECT_EQ(corpus.Find("a").value().labels.at("k"), "v");
  EXPECT_TRUE(corpus.Find("b").ok());
}

TEST_F(CorpusTest, ADecayedTraceStaysAProblemAfterARebuildUntilItIsAddedAgain) {
  const std::string source = TraceFile("a.ctrace", 1, 1000);
  std::string path;
  {
    Corpus corpus = Make();
    ASSERT_TRUE(corpus.Add(source, {}).ok());
    path = corpus.TracePath(corpus.Find("a").value());
  }
  FlipByte(path, fs::file_size(path) / 2);
  fs::remove(Folder() + "/catalog.sqlite");
  const CheckReport report = Checked(true);
  EXPECT_EQ(report.traces, 1u);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.problems[0].what.find("before the catalog was rebuilt"), std::string::npos);
  ASSERT_TRUE(Corpus::Open(Folder()).value().Add(source, {}).ok());
  EXPECT_TRUE(Checked().ok());
  EXPECT_EQ(Corpus::Open(Folder()).value().List().value().size(), 1u);
}

TEST_F(CorpusTest, ANewerCatalogIsNeverRebuilt) {
  {
    Corpus corpus = Make();
    ASSERT_TRUE(corpus.Add(TraceFile("a.ctrace", 1), {}).ok());
  }
  Tamper("PRAGMA user_version = 2");
  const auto report = CheckCorpus(Folder(), {.repair = true}, progress_);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("version 2"), std::string::npos);
  EXPECT_FALSE(fs::exists(Folder() + "/catalog.sqlite.broken-1"));
}

TEST_F(CorpusTest, AReadOnlyCorpusCanBeReadButNotChanged) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become a user without rights";
  const std::string other = TraceFile("b.ctrace", 2);
  {
    Corpus corpus = Make();
    ASSERT_TRUE(corpus.Add(TraceFile("a.ctrace", 1), {}).ok());
  }
  fs::permissions(work_.path(), fs::perms(0755));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(9);
    auto corpus = Corpus::Open(Folder());
    if (!corpus.ok()) ::_exit(1);
    if (corpus.value().List().value().size() != 1) ::_exit(2);
    if (!CheckCorpus(Folder(), {.repair = false, .jobs = 1}, progress_).ok()) ::_exit(3);
    if (corpus.value().Add(other, {}).ok()) ::_exit(4);
    const auto removed = corpus.value().Remove({"a"});
    if (removed.ok() || removed.error().message.find("read-only") == std::string::npos) ::_exit(5);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Corpus::Open(Folder()).value().List().value().size(), 1u);
}

TEST_F(CorpusTest, ThreadsMayShareACorpus) {
  Corpus corpus = Make();
  std::vector<std::string> paths;
  for (uint64_t seed = 0; seed < 12; ++seed)
    paths.push_back(TraceFile(std::to_string(seed) + ".ctrace", seed, 30));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const std::string& path : paths) {
        EXPECT_TRUE(corpus.Add(path, {}).ok());
        EXPECT_TRUE(corpus.List().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(corpus.List().value().size(), paths.size());
  EXPECT_EQ(StagingCount(), 0u);
  EXPECT_TRUE(Checked().ok());
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
