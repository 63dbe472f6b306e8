// SPDX-License-Identifier: Apache-2.0
//
// culprit impact, contrast and diff from outside: against what was planted in
// simulated corpora, on real recordings, and on a server recorded here whose
// fault is known.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "recorded_program.h"

namespace culprit::TEST_FILE {
namespace {

namespace fs = std::filesystem;
using cli::RunShell;
using cli::ShellOutcome;
using cli::TemporaryFolder;
using nlohmann::json;

ShellOutcome Culprit(const std::string& arguments) {
  return RunShell(std::string(CULPRIT_BINARY) + " " + arguments);
}

json CulpritJson(const std::string& arguments) {
  const ShellOutcome outcome = Culprit(arguments + " --json 2>/dev/null");
  EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.text;
  json parsed = json::parse(outcome.text, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << arguments << ": " << outcome.text;
  return parsed;
}

bool IsSubset(const json& part, const json& whole) {
  return std::all_of(part.begin(), part.end(), [&](const json& name) {
    return std::find(whole.begin(), whole.end(), name) != whole.end();
  });
}

bool HasChain(const json& pattern, const json& chain) {
  return IsSubset(chain["wait"], pattern["wait"]) && IsSubset(chain["unwait"], pattern["unwait"]) &&
         IsSubset(chain["running"], pattern["running"]);
}

bool HasFunction(const json& names, const std::string& function) {
  return std::any_of(names.begin(), names.end(), [&](const json& name) {
    return name.get<std::string>().find(function) != std::string::npos;
  });
}

// ---- simulated fleets

class Planted : public testing::Test {
 protected:
  // One corpus for all tests here: 60 traces take seconds to simulate.
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    ASSERT_EQ(Culprit("synth --like drivers --traces 60 --seed 5 -o " + Corpus()).code, 0);
    truth_ = new json(json::parse(ReadWholeFile(Corpus() + "/truth.json").value()));
  }
  static void TearDownTestSuite() {
    delete truth_;
    delete folder_;
  }
  static std::string Corpus() { return *folder_ / "c"; }
  static json Bug(const std::string& name) {
    for (const json& bug : (*truth_)["bugs"]) {
      if (bug["name"] == name) return bug;
    }
    ADD_FAILURE() << "nothing planted of " << name;
    return {};
  }

  static TemporaryFolder* folder_;
  static json* truth_;
};
TemporaryFolder* Planted::folder_ = nullptr;
json* Planted::truth_ = nullptr;

TEST_F(Planted, ImpactIsWhatTheDefinitionsSay) {
  const json impact = CulpritJson("impact " + Corpus() + " --component '*.sys'");
  ASSERT_GT(impact["rows"].size(), 3U);
  const json& whole = impact["rows"][0];
  EXPECT_EQ(whole["component"], "*.sys");
  EXPECT_EQ(whole["d_scn_ns"], impact["d_scn_ns"]);
  for (const json& row : impact["rows"]) {
    const auto scn_ns = row["d_scn_ns"].get<double>();
    const auto wait_ns = row["d_wait_ns"].get<double>();
    const auto distinct_ns = row["d_waitdist_ns"].get<double>();
    EXPECT_LE(distinct_ns, wait_ns);
    EXPECT_NEAR(row["ia_wait"].get<double>(), wait_ns / scn_ns, 1e-5);
    EXPECT_NEAR(row["ia_run"].get<double>(), row["d_run_ns"].get<double>() / scn_ns, 1e-5);
    EXPECT_NEAR(row["ia_opt"].get<double>(), (wait_ns - distinct_ns) / scn_ns, 1e-5);
    // No module waits more than all of them together.
    EXPECT_LE(wait_ns, whole["d_wait_ns"].get<double>()) << row;
    EXPECT_LE(row["d_run_ns"].get<double>(), whole["d_run_ns"].get<double>()) << row;
  }
  int64_t sum_ns = 0;
  int64_t wait_ns = 0;
  for (const json& row : impact["scenarios"]) {
    sum_ns += row["d_scn_ns"].get<int64_t>();
    wait_ns += row["d_wait_ns"].get<int64_t>();
  }
  // Scenarios without the component have no row.
  EXPECT_LE(sum_ns, impact["d_scn_ns"].get<int64_t>());
  EXPECT_EQ(wait_ns, whole["d_wait_ns"].get<int64_t>());
}

// The truth names functions of these drivers; with all of them in the component,
// storport.sys stands nearer to the leaf of every disk wait.
constexpr const char* kDriversOfTruth = " -c fv.sys -c fs.sys -c se.sys -c graphics.sys";

TEST_F(Planted, TheChainsStandInTheFirstTenPatterns) {
  for (const char* name : {"file-table-lock", "graphics-hard-fault"}) {
    const json bug = Bug(name);
    const json contrast = CulpritJson("contrast " + Corpus() + kDriversOfTruth + " --scenario " +
                                      bug["scenario"].get<std::string>());
    const json& patterns = contrast["patterns"];
    const auto found = std::find_if(patterns.begin(), patterns.end(), [&](const json& pattern) {
      return HasChain(pattern, bug["chain"]);
    });
    ASSERT_NE(found, patterns.end()) << name << ": " << patterns;
    EXPECT_LT(found - patterns.begin(), 10) << name;
    EXPECT_TRUE((*found)["slow_only"].get<bool>()) << *found;
    EXPECT_LE((*found)["p_value"].get<double>(), 0.05) << *found;
    // Its examples are instances in which it was planted, and can be shown.
    ASSERT_FALSE((*found)["examples"].empty());
    for (const json& example : (*found)["examples"]) {
      EXPECT_TRUE(IsSubset(json::array({example}), bug["instances"])) << example;
      EXPECT_EQ(Culprit("show " + Corpus() + " " + example.get<std::string>() + " --lanes").code,
                0);
    }
  }
}

TEST_F(Planted, WhatIsByDesignOrOnlyADeviceIsNoPattern) {
  const json contrast =
      CulpritJson("contrast " + Corpus() + " -c '*.sys' --scenario ExplorerOpenFolder");
  EXPECT_GT(contrast["pruned_ns"].get<int64_t>(),
            Bug("direct-disk-read")["cost_ns"].get<int64_t>());
  EXPECT_LT(contrast["ttc"].get<double>(), 0.05);
}

TEST_F(Planted, CostsOfPatternsAndRestAreTheComponents) {
  const json contrast =
      CulpritJson("contrast " + Corpus() + " --component '*.sys' --scenario BrowserTabCreate");
  int64_t sum_ns = 0;
  for (const json& pattern : contrast["patterns"]) sum_ns += pattern["cost_ns"].get<int64_t>();
  EXPECT_EQ(sum_ns, contrast["patterns_ns"].get<int64_t>());
  EXPECT_LE(contrast["itc"].get<double>(), contrast["ttc"].get<double>());
  EXPECT_GE(contrast["pruned_ns"].get<int64_t>(), 0);
}

TEST_F(Planted, AnExceptionTakesAPatternOut) {
  const std::string list = *folder_ / "by-design.txt";
  ASSERT_TRUE(WriteWholeFile(list, "# known since 1.0\nfv.sys!QueryFileTable\nnothing!here\n",
                             Overwrite::kAllow)
                  .ok());
  const json contrast =
      CulpritJson("contrast " + Corpus() + " -c '*.sys' -s BrowserTabCreate --exceptions " + list);
  for (const json& pattern : contrast["patterns"]) {
    EXPECT_FALSE(IsSubset(json::array({"fv.sys!QueryFileTable"}), pattern["wait"])) << pattern;
  }
  EXPECT_GT(contrast["exception_patterns"].get<int>(), 0);
  EXPECT_EQ(contrast["unused_exceptions"], json::array({"nothing!here"}));
}

TEST_F(Planted, NothingDependsOnThreadsOrOnTheOrderOfTraces) {
  // The same traces, added in two orders.
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(Corpus() + "/traces")) {
    if (entry.path().extension() == ".ctrace") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::string forwards;
  std::string backwards;
  for (const std::string& file : files) {
    forwards += " " + file;
    backwards.insert(0, " " + file);
  }
  const std::string sorted = *folder_ / "sorted";
  const std::string shuffled = *folder_ / "shuffled";
  const ShellOutcome first = Culprit("corpus add " + sorted + forwards);
  ASSERT_EQ(first.code, 0) << first.text;
  const ShellOutcome second = Culprit("corpus add " + shuffled + backwards);
  ASSERT_EQ(second.code, 0) << second.text;
  for (const std::string what :
       {"impact CORPUS -c '*.sys'", "contrast CORPUS -c '*.sys' -s 'Browser*'",
        "diff CORPUS CORPUS -c '*.sys' -s 'Browser*' --deals 200"}) {
    const auto run = [&](const std::string& corpus, const std::string& jobs) {
      std::string command = what + " --json -j " + jobs;
      for (size_t at; (at = command.find("CORPUS")) != std::string::npos;) {
        command.replace(at, 6, corpus);
      }
      std::string text = Culprit(command + " 2>/dev/null").text;
      for (size_t at; (at = text.find(corpus)) != std::string::npos;) {
        text.replace(at, corpus.size(), "X");
      }
      return text;
    };
    const std::string once = run(sorted, "1");
    EXPECT_GT(once.size(), 1000U) << once;
    EXPECT_EQ(run(sorted, "2"), once) << what;
    EXPECT_EQ(run(sorted, "8"), once) << what;
    EXPECT_EQ(run(shuffled, "2"), once) << what;
  }
}

TEST_F(Planted, TextNamesTheNextCommandAndItRuns) {
  for (const std::string what : {"impact CORPUS -c '*.sys'", "contrast CORPUS -s MenuDisplay",
                                 "contrast CORPUS -s 'Browser*'"}) {
    std::string command = what;
    command.replace(command.find("CORPUS"), 6, Corpus());
    const ShellOutcome outcome = Culprit(command);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    const size_t at = outcome.text.find("next: culprit ");
    ASSERT_NE(at, std::string::npos) << outcome.text;
    const std::string next = outcome.text.substr(at + 14, outcome.text.find('\n', at) - at - 14);
    const ShellOutcome followed = Culprit(next);
    EXPECT_EQ(followed.code, 0) << next << ": " << followed.text;
  }
}

TEST_F(Planted, WhatIsNotThereIsAnErrorThatSaysWhatIs) {
  const auto fails = [&](const std::string& arguments, const std::string& with) {
    const ShellOutcome outcome = Culprit(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments << ": " << outcome.text;
    EXPECT_NE(outcome.text.find(with), std::string::npos) << arguments << ": " << outcome.text;
  };
  fails("contrast " + Corpus() + " -s NoSuchThing", "ShellViewOpen");
  fails("contrast " + Corpus() + " -s BrowserTabCrate", "did you mean 'BrowserTabCreate'?");
  fails("impact " + Corpus() + " -s NoSuchThing", "ShellViewOpen");
  fails("contrast " + Corpus() + " -s MenuDisplay -c 'nothing*'", "av.sys");
  fails("impact " + Corpus() + " -c 'nothing*'", "av.sys");
  fails("impact " + Corpus() + " -c fss.sys", "did you mean 'fs.sys'?");
  fails("impact " + Corpus() + " --by process -c 'nothing*'", "Browser");
  fails("contrast " + Corpus() + " -s MenuDisplay --fast 1us --slow 2us", "no fast");
  fails("contrast " + Corpus() + " -s MenuDisplay --fast 1h --slow 2h", "no slow");
  fails("contrast " + Corpus() + " -s MenuDisplay --fast 500ms --slow 300ms", "above the slow");
  fails("contrast " + Corpus() + " -s MenuDisplay --fast much", "no duration or percentile");
  fails("contrast " + Corpus() + " --exceptions /nonexistent", "/nonexistent");
  fails("diff " + Corpus() + " " + Corpus() + " --bound lots", "is no share");
  fails("impact /nonexistent", "/nonexistent");
}

// ---- before and after

TEST(Diff, TheSameCorpusTwiceHasNothingToReport) {
  const TemporaryFolder folder;
  const std::string corpus = folder / "c";
  ASSERT_EQ(Culprit("synth --like drivers --traces 12 --seed 3 -o " + corpus).code, 0);
  const json diff = CulpritJson("diff " + corpus + " " + corpus + " -c '*.sys' --bound 1%");
  EXPECT_TRUE(diff["ok"].get<bool>());
  EXPECT_TRUE(diff["only_before"].empty());
  for (const json& scenario : diff["scenarios"]) {
    EXPECT_EQ(scenario["delta_ns"], 0);
    EXPECT_TRUE(scenario["changes"].empty()) << scenario["changes"];
  }
}

// ---- real recordings of others

const std::string kData = CULPRIT_SOURCE_DIR "/../shared/data/";

// Android's scheduler with call stacks, and kernels traced by LTTng without any.
TEST(ContrastOnRecordings, ProcessesHaveTheirImpactWithStacksAndWithout) {
  const TemporaryFolder folder;
  size_t tried = 0;
  for (const std::string file :
       {"perfetto/android12-cpuschedstack.pftrace", "ctf/tracevizlab-simple-kernel.tgz",
        "ctf/tracecompass-many-threads"}) {
    if (!fs::exists(kData + file)) continue;
    ++tried;
    const std::string corpus = folder / std::to_string(tried);
    ASSERT_EQ(Culprit("import " + kData + file + " -o " + corpus).code, 0) << file;
    const json impact = CulpritJson("impact " + corpus + " --by process");
    EXPECT_GT(impact["rows"].size(), 10U) << file;
    const json& whole = impact["rows"][0];
    EXPECT_GT(whole["d_wait_ns"].get<int64_t>(), 0) << file;
    EXPECT_GT(whole["d_run_ns"].get<int64_t>(), 0) << file;
    for (const json& row : impact["rows"]) {
      EXPECT_LE(row["d_waitdist_ns"], row["d_wait_ns"]) << row;
      EXPECT_LE(row["d_wait_ns"], row["d_scn_ns"]) << row;
    }
    const json contrast = CulpritJson("contrast " + corpus + " --by process");
    EXPECT_FALSE(contrast["contrasts"].empty()) << file;
    if (file.starts_with("ctf")) {
      const ShellOutcome outcome = Culprit("impact " + corpus);
      EXPECT_EQ(outcome.code, 1);
      EXPECT_NE(outcome.text.find("try --by process"), std::string::npos) << outcome.text;
    }
  }
  if (tried == 0) GTEST_SKIP() << "no recordings at " << kData;
}

// What is known of it: one lock, handed over in ProcLockWakeup, held over the
// commit's fdatasync in XLogFlush.
TEST(ContrastOnRecordings, ThePostgresConvoyIsWhatAppeared) {
  const std::string bug = kData + "bugs/postgresql-15-notify-convoy/";
  if (!fs::exists(bug + "buggy.sched.txt.zst")) GTEST_SKIP() << "no recording at " << bug;
  const TemporaryFolder folder;
  for (const std::string run : {"normal", "buggy"}) {
    ASSERT_EQ(Culprit("import " + bug + run + ".sched.txt.zst -o " + folder / run).code, 0);
  }
  const ShellOutcome outcome =
      Culprit("diff " + folder / "normal" + " " + folder / "buggy" +
              " -s 'postgres: PostgresMain*' --deals 200 --bound 5% --json 2>/dev/null");
  EXPECT_EQ(outcome.code, 1);
  const json diff = json::parse(outcome.text);
  EXPECT_FALSE(diff["ok"].get<bool>());
  ASSERT_EQ(diff["scenarios"].size(), 1U);
  const json& changes = diff["scenarios"][0]["changes"];
  ASSERT_GT(changes.size(), 2U);
  bool disk = false;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(changes[i]["change"], "appeared") << changes[i];
    EXPECT_TRUE(changes[i]["significant"].get<bool>());
    EXPECT_TRUE(IsSubset(json::array({"postgres!ProcLockWakeup"}), changes[i]["unwait"]));
    disk = disk || HasFunction(changes[i]["running"], "XLogFlush");
  }
  EXPECT_TRUE(disk) << changes[0] << changes[1];
}

// ---- a server recorded here

bool OnABlockDevice(const std::string& path) {
  struct stat place = {};
  if (stat(path.c_str(), &place) != 0) return false;
  const std::string device = "/sys/dev/block/" + std::to_string(major(place.st_dev)) + ":" +
                             std::to_string(minor(place.st_dev));
  return access(device.c_str(), F_OK) == 0;
}

// The request waits for the lock, and the journal's writer ends that wait.
bool IsThePlantedLock(const json& pattern) {
  return HasFunction(pattern["wait"], "LookUpUnderTheLock") &&
         HasFunction(pattern["unwait"], "WriteJournalUnderTheLock");
}

// Behind it is the disk; the writer's own short runs stand behind it too, as
// patterns of their own.
bool HasThePlantedChain(const json& patterns) {
  return std::any_of(patterns.begin(), patterns.begin() + std::min<ptrdiff_t>(3, patterns.size()),
                     [](const json& pattern) {
                       return IsThePlantedLock(pattern) &&
                              HasFunction(pattern["running"], "WriteToTheDisk") &&
                              HasFunction(pattern["running"], "DiskService");
                     });
}

bool TellsAChangeForSure(const ShellOutcome& gate) {
  const json diff = json::parse(gate.text, nullptr, /*allow_exceptions=*/false);
  if (gate.code != 1 || !diff.is_object() || diff["scenarios"].empty()) return false;
  const json& changes = diff["scenarios"][0]["changes"];
  return !changes.empty() && changes[0]["significant"].get<bool>();
}

void RecordJournalServer(const TemporaryFolder& folder, const std::string& variant) {
  std::filesystem::remove(folder / variant + ".ctrace");
  const ShellOutcome recorded =
      Culprit("record --budget 0 -o " + folder / variant + ".ctrace -- " +
              ProgramPath("journal_server") + " " + folder / "journal" + " " + variant);
  ASSERT_EQ(recorded.code, 0) << recorded.text;
}

TEST(ContrastTruth, ALockHeldOverTheDiskIsTheFirstPattern) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TemporaryFolder folder;
  if (!OnABlockDevice(folder.path())) GTEST_SKIP() << folder.path() << " is on no block device";
  const std::string what =
      " --component 'journal_server!*' --except '*!std::*' --except '*!__gthread*' "
      "--scenario '*ServeRequests*'";
  ShellOutcome gate;
  // Another test may take the CPUs from one of the two: then both are recorded again.
  for (int attempt = 0; attempt < 3 && !TellsAChangeForSure(gate); ++attempt) {
    RecordJournalServer(folder, "held");
    RecordJournalServer(folder, "apart");
    gate = Culprit("diff " + folder / "apart.ctrace " + folder / "held.ctrace" + what +
                   " --bound 5% --json 2>/dev/null");
  }
  ASSERT_EQ(
      Culprit("corpus add " + folder / "c " + folder / "held.ctrace " + folder / "apart.ctrace")
          .code,
      0);
  const json contrast = CulpritJson("contrast " + folder / "c" + what + " --rank cost");
  ASSERT_FALSE(contrast["patterns"].empty()) << contrast;
  EXPECT_TRUE(IsThePlantedLock(contrast["patterns"][0])) << contrast["patterns"];
  EXPECT_TRUE(HasThePlantedChain(contrast["patterns"])) << contrast["patterns"];
  EXPECT_LE(contrast["patterns"][0]["p_value"].get<double>(), 0.05);
  EXPECT_EQ(gate.code, 1) << gate.text;
  const json diff = json::parse(gate.text);
  ASSERT_EQ(diff["scenarios"].size(), 1U);
  ASSERT_FALSE(diff["scenarios"][0]["changes"].empty()) << diff;
  const json& first = diff["scenarios"][0]["changes"][0];
  EXPECT_TRUE(IsThePlantedLock(first)) << diff["scenarios"][0]["changes"];
  EXPECT_TRUE(HasThePlantedChain(diff["scenarios"][0]["changes"]));
  EXPECT_EQ(first["change"], "appeared");
  EXPECT_TRUE(first["significant"].get<bool>());
  // And the way back is no loss.
  EXPECT_EQ(
      Culprit("diff " + folder / "held.ctrace " + folder / "apart.ctrace" + what + " --bound 200%")
          .code,
      0);
}

}  // namespace
}  // namespace culprit::TEST_FILE
