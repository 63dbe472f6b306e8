// SPDX-License-Identifier: Apache-2.0
//
// The corpus commands from outside: what they print, what they return, and
// that a corpus survives many processes at once and kill -9 at any moment.
#include "corpus/corpus.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "base/database.h"
#include "base/file.h"
#include "base/test_folder.h"
#include "trace/random_trace.h"
#include "trace/trace_writer.h"

namespace culprit::TEST_FILE {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

class CorpusCommandTest : public testing::Test {
 protected:
  struct Ran {
    int code = -1;  // -1: killed
    std::string out;
    std::string err;
  };

  // Starts the program with its streams in files of the given stem.
  pid_t Start(const Words& words, const std::string& stem) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const auto redirect = [&](const std::string& suffix, int to) {
      const std::string path = work_ / (stem + suffix);
      ::dup2(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), to);
    };
    redirect(".out", STDOUT_FILENO);
    redirect(".err", STDERR_FILENO);
    std::vector<char*> arguments = {const_cast<char*>(CULPRIT_BINARY)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(CULPRIT_BINARY, arguments.data());
    ::_exit(127);
  }

  static int Wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  Ran Run(const Words& words) const {
    Ran ran;
    ran.code = Wait(Start(words, "run"));
    ran.out = ReadWholeFile(work_ / "run.out").value();
    ran.err = ReadWholeFile(work_ / "run.err").value();
    return ran;
  }
  json RunJson(const Words& words) const {
    const Ran ran = Run(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return json::parse(ran.out);
  }

  std::string TraceFile(const std::string& name, uint64_t seed, size_t events = 200) const {
    return work_.Write(name,
                       trace::EncodeTrace(trace::RandomTrace({.seed = seed, .events = events}),
                                          {.block_events = 64}));
  }
  Words TraceFiles(size_t count, size_t events = 200) const {
    Words paths;
    for (size_t i = 0; i < count; ++i)
      paths.push_back(TraceFile(std::to_string(i) + ".ctrace", i, events));
    return paths;
  }
  static Words Joined(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::set<std::string> Names(const std::string& corpus) const {
    std::set<std::string> names;
    const json listed = RunJson({"corpus", "list", corpus, "--json"});
    for (const json& row : listed["traces"]) names.insert(row["name"]);
    return names;
  }
  // Starts the command and kills it after a while; true if it was still alive.
  bool RunAndKill(const Words& words, std::chrono::microseconds after) const {
    const pid_t child = Start(words, "killed");
    std::this_thread::sleep_for(after);
    ::kill(child, SIGKILL);
    return Wait(child) == -1;
  }

  TestFolder work_;
  const std::string corpus_ = work_ / "c";
};

TEST_F(CorpusCommandTest, AddListRemoveAndCheckAgree) {
  const Words paths = TraceFiles(3);
  const Ran added = Run(Joined({"corpus", "add", corpus_, "--label", "release=2"}, paths));
  EXPECT_EQ(added.code, 0) << added.err;
  EXPECT_NE(added.out.find("added 3 traces\n"), std::string::npos) << added.out;
  EXPECT_NE(added.err.find("next: culprit info " + corpus_), std::string::npos) << added.err;
  const Ran again = Run(Joined({"corpus", "add", corpus_}, paths));
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.out.find("added 0 traces, 3 already there\n"), std::string::npos) << again.out;

  const json traces = RunJson({"corpus", "list", corpus_, "--json"})["traces"];
  ASSERT_EQ(traces.size(), 3u);
  const json& first = traces[0];
  EXPECT_EQ(first["name"], "0");
  EXPECT_EQ(first["events"], 200);
  EXPECT_EQ(first["dur_ns"], 1'000'000'000);
  EXPECT_EQ(first["threads"], 7);
  EXPECT_EQ(first["instances"], 5);
  EXPECT_EQ(first["complete"], true);
  EXPECT_EQ(first["labels"]["release"], "2");
  EXPECT_EQ(first["bytes"], fs::file_size(corpus_ + "/" + first["file"].get<std::string>()));

  const json scenarios = RunJson({"corpus", "list", corpus_, "--scenarios", "--json"})["scenarios"];
  ASSERT_EQ(scenarios.size(), 2u);
  EXPECT_EQ(scenarios[0]["name"], "Scenario0");
  EXPECT_EQ(scenarios[0]["instances"], 9);
  EXPECT_EQ(scenarios[0]["p50_ns"], 700);
  EXPECT_EQ(scenarios[0]["p90_ns"], 700);
  const json instances =
      RunJson({"corpus", "list", corpus_, "--instances", "Scenario1", "--json"})["instances"];
  EXPECT_EQ(instances.size(), 6u);

  EXPECT_EQ(Run({"corpus", "check", corpus_}).out, "checked 3 traces, 600 events: no problem\n");
  EXPECT_EQ(Run({"corpus", "rm", corpus_, "1", "2"}).out, "removed 2 traces\n");
  EXPECT_EQ(Names(corpus_), std::set<std::string>{"0"});
}

TEST_F(CorpusCommandTest, FiltersChooseTraces) {
  const Words paths = TraceFiles(2);
  EXPECT_EQ(Run({"corpus", "add", corpus_, paths[0], "--name", "x", "--label", "k=1"}).code, 0);
  EXPECT_EQ(Run({"corpus", "add", corpus_, paths[1], "--name", "y", "--label", "k=2"}).code, 0);
  const auto count = [&](const Words& flags) {
    return RunJson(Joined({"corpus", "list", corpus_, "--json"}, flags))["traces"].size();
  };
  EXPECT_EQ(count({"--label", "k=1"}), 1u);
  EXPECT_EQ(count({"--label", "k=1", "--label", "k=2"}), 0u);
  EXPECT_EQ(count({"--label", "tier=gold"}), 2u);
  EXPECT_EQ(count({"--app", "none"}), 0u);
  EXPECT_EQ(count({"--name", "[xz]"}), 1u);
  EXPECT_EQ(count({"--scenario", "Scenario1"}), 2u);
  EXPECT_EQ(count({"--min-duration", "2s"}), 0u);
}

TEST_F(CorpusCommandTest, OneBadFileDoesNotStopTheOthers) {
  Words paths = TraceFiles(3);
  paths[1] = work_.Write("bad.txt", "not a trace");
  const Ran ran = Run(Joined({"corpus", "add", corpus_}, paths));
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("added 2 traces, 1 failed\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("bad.txt: "), std::string::npos) << ran.err;
  EXPECT_EQ(Names(corpus_), (std::set<std::string>{"0", "2"}));
}

TEST_F(CorpusCommandTest, ADamagedTraceIsAddedWithAWarning) {
  const std::string path = TraceFile("cut.ctrace", 1, 2000);
  fs::resize_file(path, fs::file_size(path) / 2);
  const Ran ran = Run({"corpus", "add", corpus_, path});
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.err.find("is damaged"), std::string::npos) << ran.err;
  EXPECT_EQ(RunJson({"corpus", "list", corpus_, "--json"})["traces"][0]["complete"], false);
  EXPECT_EQ(Run({"corpus", "check", corpus_}).code, 0);
}

TEST_F(CorpusCommandTest, WrongUseIsExplained) {
  const std::string path = TraceFile("a.ctrace", 1);
  const auto error = [&](const Words& words) {
    const Ran ran = Run(words);
    EXPECT_EQ(ran.code, 1) << ran.err;
    return ran.err;
  };
  EXPECT_NE(error({"corpus", "list", work_ / "none"}).find("hint: "), std::string::npos);
  EXPECT_NE(error({"corpus", "check", work_ / "none"}).find("hint: "), std::string::npos);
  EXPECT_NE(error({"corpus", "list", work_.path()}).find("is not a corpus"), std::string::npos);
  EXPECT_NE(error({"corpus", "add", work_.path(), path}).find("neither empty nor a corpus"),
            std::string::npos);
  ASSERT_EQ(Run({"corpus", "add", corpus_, path, "--name", "monday"}).code, 0);
  EXPECT_NE(error({"corpus", "rm", corpus_, "mondy"}).find("did you mean 'monday'?"),
            std::string::npos);
  EXPECT_NE(error({"corpus", "list", corpus_, "--instances", "Scenari0"}).find("did you mean"),
            std::string::npos);
  EXPECT_NE(error({"corpus", "add", corpus_, path, path, "--name", "x"}).find("--name names one"),
            std::string::npos);
  EXPECT_NE(error({"corpus", "add", corpus_, path, "--label", "=x"}).find("KEY=VALUE"),
            std::string::npos);
  EXPECT_NE(error({"corpus", "list", corpus_, "--scenarios", "--app", "x"}).find("--app"),
            std::string::npos);
}

TEST_F(CorpusCommandTest, CheckFailsOnAChangedTraceAndNamesIt) {
  ASSERT_EQ(Run({"corpus", "add", corpus_, TraceFile("a.ctrace", 1)}).code, 0);
  const json row = RunJson({"corpus", "list", corpus_, "--json"})["traces"][0];
  const std::string path = corpus_ + "/" + row["file"].get<std::string>();
  std::string bytes = ReadWholeFile(path).value();
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteWholeFile(path, bytes, Overwrite::kAllow).ok());
  const Ran text = Run({"corpus", "check", corpus_});
  EXPECT_EQ(text.code, 1);
  EXPECT_NE(text.out.find("1 problem\n"), std::string::npos) << text.out;
  const Ran as_json = Run({"corpus", "check", corpus_, "--json"});
  EXPECT_EQ(as_json.code, 1);
  EXPECT_EQ(json::parse(as_json.out)["problems"][0]["trace"], "a");
}

TEST_F(CorpusCommandTest, ABrokenCatalogIsRebuiltOnRequestOnly) {
  ASSERT_EQ(Run(Joined({"corpus", "add", corpus_}, TraceFiles(3))).code, 0);
  const std::string catalog = corpus_ + "/catalog.sqlite";
  ASSERT_TRUE(WriteWholeFile(catalog, "garbage", Overwrite::kAllow).ok());
  for (const char* verb : {"list", "check"}) {
    const Ran ran = Run({"corpus", verb, corpus_});
    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.err.find("--repair"), std::string::npos) << ran.err;
  }
  const Ran repaired = Run({"corpus", "check", corpus_, "--repair"});
  EXPECT_EQ(repaired.code, 0) << repaired.err;
  EXPECT_NE(repaired.out.find("rebuilt the catalog"), std::string::npos);
  EXPECT_EQ(ReadWholeFile(catalog + ".broken-1").value(), "garbage");
  EXPECT_EQ(Names(corpus_).size(), 3u);
}

TEST_F(CorpusCommandTest, ManyProcessesMayAddListAndRemoveAtOnce) {
  const Words paths = TraceFiles(12);
  std::vector<pid_t> children;
  for (size_t p = 0; p < 8; ++p) {
    Words words = {"corpus", "add", corpus_};
    for (size_t i = 0; i < paths.size(); ++i) words.push_back(paths[(i + p * 3) % paths.size()]);
    children.push_back(Start(words, "adder" + std::to_string(p)));
  }
  for (size_t p = 0; p < children.size(); ++p) {
    EXPECT_EQ(Wait(children[p]), 0)
        << ReadWholeFile(work_ / ("adder" + std::to_string(p) + ".err")).value();
  }
  EXPECT_EQ(Names(corpus_).size(), paths.size());

  children.clear();
  for (size_t p = 0; p < 12; ++p) {
    const std::string number = std::to_string(p);
    children.push_back(p % 3 == 0   ? Start({"corpus", "rm", corpus_, number}, "mixed" + number)
                       : p % 3 == 1 ? Start({"corpus", "list", corpus_}, "mixed" + number)
                                    : Start({"corpus", "check", corpus_}, "mixed" + number));
  }
  for (size_t p = 0; p < children.size(); ++p) {
    EXPECT_EQ(Wait(children[p]), 0)
        << p << ReadWholeFile(work_ / ("mixed" + std::to_string(p) + ".err")).value();
  }
  EXPECT_EQ(Names(corpus_).size(), paths.size() - 4);
  const json report = RunJson({"corpus", "check", corpus_, "--json"});
  EXPECT_TRUE(report["problems"].empty());
  EXPECT_TRUE(report["strays"].empty());
}

TEST_F(CorpusCommandTest, AKillAtAnyMomentLeavesAWholeCorpus) {
  const Words paths = TraceFiles(6, 4000);
  const Words add = Joined({"corpus", "add", corpus_}, paths);
  const Words remove = {"corpus", "rm", corpus_, "0", "1", "2", "3", "4", "5"};
  const std::set<std::string> all = {"0", "1", "2", "3", "4", "5"};
  const auto timed = [&](const Words& words) {
    const auto start = Clock::now();
    EXPECT_EQ(Run(words).code, 0);
    return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  };
  const auto add_takes = timed(add);
  const auto remove_takes = timed(remove);
  std::mt19937 random(42);
  // A little beyond the end, so that the last steps are hit as well.
  const auto moment = [&](std::chrono::microseconds takes) {
    return std::chrono::microseconds(random() % (static_cast<uint64_t>(takes.count()) * 5 / 4 + 1));
  };
  const auto deadline = Clock::now() + std::chrono::seconds(15);
  int rounds = 0;
  int killed = 0;
  for (; rounds < 60 && (rounds < 10 || Clock::now() < deadline); ++rounds) {
    // Every third time the corpus does not exist yet.
    if (rounds % 3 == 0) fs::remove_all(corpus_);
    const bool existed = fs::exists(corpus_);
    killed += RunAndKill(add, moment(add_takes));
    const Ran check = Run({"corpus", "check", corpus_});
    if (existed) {
      ASSERT_EQ(check.code, 0) << check.out << check.err;
      const size_t there = Names(corpus_).size();
      ASSERT_TRUE(there == 0 || there == all.size()) << there;
    }
    const Ran again = Run(add);
    ASSERT_EQ(again.code, 0) << again.out << again.err;
    ASSERT_EQ(Names(corpus_), all);

    killed += RunAndKill(remove, moment(remove_takes));
    ASSERT_EQ(Run({"corpus", "check", corpus_}).code, 0);
    const size_t left = Names(corpus_).size();
    ASSERT_TRUE(left == 0 || left == all.size()) << left;
    if (left != 0) {
      ASSERT_EQ(Run(remove).code, 0);
    }
  }
  EXPECT_GT(killed, rounds / 4);
  ASSERT_EQ(Run(add).code, 0);
  ASSERT_EQ(Run({"corpus", "check", corpus_, "--repair"}).code, 0);
  const json report = RunJson({"corpus", "check", corpus_, "--json"});
  EXPECT_TRUE(report["strays"].empty()) << report;
  EXPECT_EQ(report["traces"], all.size());
  std::printf("%d rounds, %d of %d commands killed while running\n", rounds, killed, 2 * rounds);
}

TEST_F(CorpusCommandTest, AKilledRepairCanBeRepeatedAndLosesNoName) {
  ASSERT_EQ(Run(Joined({"corpus", "add", corpus_}, TraceFiles(8, 2000))).code, 0);
  const std::set<std::string> all = Names(corpus_);
  const Words repair = {"corpus", "check", corpus_, "--repair"};
  const auto spoil = [&] {
    const auto catalog = Database::Open(corpus_ + "/catalog.sqlite", Database::Mode::kReadWrite);
    ASSERT_TRUE(catalog.value().Execute("PRAGMA application_id = 1").ok());
  };
  spoil();
  const auto start = Clock::now();
  ASSERT_EQ(Run(repair).code, 0);
  const auto takes = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  for (int round = 0; round < 15; ++round) {
    spoil();
    RunAndKill(repair, takes * round / 15);
    const Ran again = Run(repair);
    ASSERT_EQ(again.code, 0) << again.out << again.err;
    ASSERT_EQ(Names(corpus_), all) << round;
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE
