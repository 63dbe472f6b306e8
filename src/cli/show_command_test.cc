// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "cli/shell_run.h"
#include "corpus/corpus.h"
#include "trace/small_trace.h"
#include "waitgraph/area.h"
#include "waitgraph/auto_instances.h"

namespace culprit::cli::TEST_FILE {
namespace {

using nlohmann::json;
using trace::EventKind;
using trace::SmallTrace;

// ui waits for the lock that worker holds over a disk read.
SmallTrace Example() {
  SmallTrace small(0, 1'000'000);
  small.Thread("[disk]", trace::ThreadKind::kDevice);
  small.Add(EventKind::kRunning, "ui", 0, 100'000, "shop!main;shop!draw");
  small
      .Add(EventKind::kWait, "ui", 100'000, 800'000,
           "shop!main;shop!Cart;libc.so.6!pthread_mutex_lock;[kernel]!futex_do_wait")
      .peer = small.Thread("worker");
  small.Add(EventKind::kReady, "ui", 800'000, 850'000).peer = small.Thread("worker");
  small.Add(EventKind::kRunning, "ui", 850'000, 1'000'000, "shop!main;shop!draw");
  small.Add(EventKind::kRunning, "worker", 0, 200'000, "shop!Save");
  small.Add(EventKind::kWait, "worker", 200'000, 700'000, "shop!Save;[kernel]!io_schedule").peer =
      small.Thread("[disk]");
  small.Add(EventKind::kHardware, "[disk]", 300'000, 700'000, "shop!Save").peer =
      small.Thread("worker");
  small.trace.events.back().arg0 = 4096;
  small.Add(EventKind::kRunning, "worker", 700'000, 1'000'000, "shop!Save");
  return small;
}

class ShowCommandTest : public testing::Test {
 protected:
  std::string WriteExample(bool instances = true) {
    SmallTrace small = Example();
    if (instances) {
      small.AddInstance("Checkout", "ui", 50'000, 900'000);
      small.AddInstance("Browse", "ui", 0, 80'000);
    }
    trace::SortByTime(small.trace.events);
    const std::string path = folder_ / "example.ctrace";
    EXPECT_TRUE(WriteTrace(small.trace, path, Overwrite::kAllow).ok());
    return path;
  }
  int Show(std::vector<std::string> words) {
    output_ = std::make_unique<BufferOutput>();
    words.insert(words.begin(), "show");
    return RunCulprit(words, *output_);
  }
  const std::string& out() const { return output_->out(); }
  const std::string& err() const { return output_->err(); }
  bool Shows(const std::string& line) const { return out().find(line) != std::string::npos; }

  TemporaryFolder folder_;
  std::unique_ptr<BufferOutput> output_;
};

TEST_F(ShowCommandTest, WithoutAnInstanceItListsTheSlowestAndSaysHowToPickOne) {
  const std::string path = WriteExample();
  ASSERT_EQ(Show({path}), 0);
  EXPECT_EQ(out(),
            "instance  duration        at  scenario  thread\n"
            "0           850 us  +50.0 us  Checkout  ui (2)\n"
            "1          80.0 us     +0 ns  Browse    ui (2)\n");
  EXPECT_EQ(err(), "next: culprit show " + path + " 0\n");
  ASSERT_EQ(Show({path, "--scenario", "Browse"}), 0);
  EXPECT_FALSE(Shows("Checkout"));
}

TEST_F(ShowCommandTest, ThePathIsATreeThatSumsToTheInstance) {
  ASSERT_EQ(Show({WriteExample(), "0"}), 0);
  EXPECT_TRUE(
      Shows("critical path\n"
            "   5.9 %   50.0 us  runs  shop!draw < shop!main\n"
            "  82.4 %    700 us  waits [lock]  shop!Cart < shop!main\n"
            "  11.8 %    100 us    worker (3) runs  shop!Save\n"
            "  58.8 %    500 us    worker (3) waits [disk]  shop!Save\n"
            "  11.8 %    100 us      [disk]: before the issue of a read of 4.10 kB\n"
            "  47.1 %    400 us      [disk]: read of 4.10 kB\n"
            "  11.8 %    100 us    worker (3) runs  shop!Save\n"
            "   5.9 %   50.0 us  ready, worker (3) held the CPU\n"
            "   5.9 %   50.0 us  runs  shop!draw < shop!main\n"))
      << out();
  EXPECT_TRUE(Shows("100.0 %   850 us         the instance\n")) << out();
}

TEST_F(ShowCommandTest, LinesLeftOutAreSummed) {
  ASSERT_EQ(Show({WriteExample(), "0", "--max-lines", "2"}), 0);
  EXPECT_TRUE(
      Shows("critical path\n"
            "  82.4 %    700 us  waits [lock]  shop!Cart < shop!main\n"
            "  58.8 %    500 us    worker (3) waits [disk]  shop!Save\n"
            "  58.8 %    500 us      … 2 more\n"
            "  23.5 %    200 us    … 2 more\n"
            "  17.6 %    150 us  … 3 more\n"))
      << out();
  ASSERT_EQ(Show({WriteExample(), "0", "--depth", "0", "--frames", "1"}), 0);
  EXPECT_TRUE(
      Shows("  82.4 %    700 us  waits [lock]  shop!Cart\n"
            "  82.4 %    700 us    … 3 more\n"))
      << out();
}

TEST_F(ShowCommandTest, SumAddsUpWhatIsAlike) {
  ASSERT_EQ(Show({WriteExample(), "0", "--sum"}), 0);
  EXPECT_TRUE(Shows("  23.5 %    200 us    worker (3) runs  shop!Save ×2\n")) << out();
  EXPECT_TRUE(Shows("  11.8 %    100 us  runs  shop!draw < shop!main ×2\n")) << out();
}

TEST_F(ShowCommandTest, JsonLeavesNothingOut) {
  ASSERT_EQ(Show({WriteExample(), "0", "--json", "--max-lines", "1"}), 0);
  const json shown = json::parse(out());
  EXPECT_EQ(shown["scenario"], "Checkout");
  EXPECT_EQ(shown["dur_ns"], 850'000);
  int64_t leaves_ns = 0;
  for (const json& s : shown["segments"]) {
    if (s["kind"] != "wait") leaves_ns += s["dur_ns"].get<int64_t>();
  }
  EXPECT_EQ(leaves_ns, 850'000);
  EXPECT_EQ(shown["account"]["hardware_ns"], 500'000);
  EXPECT_EQ(shown["segments"].size(), 9U);
  EXPECT_EQ(shown["segments"][1]["class"], "lock");
  EXPECT_EQ(shown["segments"][4]["note"], "queueing");
  EXPECT_EQ(shown["segments"][4]["parent"], 3);
}

TEST_F(ShowCommandTest, TheGraphNamesEveryNodeOnce) {
  ASSERT_EQ(Show({WriteExample(), "0", "--graph"}), 0);
  EXPECT_TRUE(Shows("wait graph, 7 nodes\n")) << out();
  EXPECT_TRUE(Shows("#1 ui (2) waits [lock]  shop!Cart < shop!main\n")) << out();
  EXPECT_TRUE(Shows("[disk] serves a read of 4.10 kB  shop!Save\n")) << out();
  ASSERT_EQ(Show({WriteExample(), "0", "--graph", "--json"}), 0);
  const json shown = json::parse(out());
  ASSERT_EQ(shown["nodes"].size(), 7U);
  const json& wait = shown["nodes"][1];
  EXPECT_EQ(wait["woken_by"], "worker (3)");
  EXPECT_EQ(wait["children_end"].get<int>() - wait["children_begin"].get<int>(), 2);
}

TEST_F(ShowCommandTest, DotIsAGraph) {
  for (const char* what : {"--path", "--graph"}) {
    ASSERT_EQ(Show({WriteExample(), "0", what, "--dot"}), 0);
    EXPECT_TRUE(out().starts_with("digraph culprit {\n"));
    EXPECT_TRUE(out().ends_with("}\n"));
    EXPECT_TRUE(Shows(" -> ")) << out();
    if (HasProgram("dot")) {
      const std::string file = folder_ / "g.dot";
      ASSERT_TRUE(WriteWholeFile(file, out(), Overwrite::kAllow).ok());
      EXPECT_EQ(RunShell("dot -Tsvg '" + file + "' > /dev/null").code, 0);
    }
  }
}

TEST_F(ShowCommandTest, LanesShowWhoWokeWhom) {
  ASSERT_EQ(Show({WriteExample(), "0", "--lanes"}), 0);
  EXPECT_TRUE(Shows("ui (2)      │")) << out();
  EXPECT_TRUE(Shows("[disk]      │")) << out();
  EXPECT_TRUE(Shows("(1) +650 us  [disk] → worker (3) waits [disk]  shop!Save, 500 us\n")) << out();
  EXPECT_TRUE(Shows("(2) +750 us  worker (3) → waits [lock]  shop!Cart < shop!main, 700 us\n"))
      << out();
}

TEST_F(ShowCommandTest, WhatIsNotThereIsAnErrorWithAHint) {
  const std::string path = WriteExample();
  EXPECT_EQ(Show({path, "7"}), 1);
  EXPECT_NE(err().find("has no instance 7"), std::string::npos) << err();
  EXPECT_NE(err().find("its instances are 0 to 1"), std::string::npos) << err();
  EXPECT_EQ(Show({path, "seven"}), 1);
  EXPECT_EQ(Show({folder_ / "nowhere"}), 1);
}

TEST_F(ShowCommandTest, InACorpusAnInstanceIsTraceAndIndex) {
  const std::string path = folder_ / "corpus";
  {
    corpus::Corpus corpus = corpus::Corpus::Create(path).value();
    ASSERT_TRUE(corpus.Add(WriteExample(), {}).ok());
  }
  ASSERT_EQ(Show({path}), 0);
  EXPECT_TRUE(Shows("example:0")) << out();
  EXPECT_EQ(err(), "next: culprit show " + path + " example:0\n");
  ASSERT_EQ(Show({path, "example"}), 0);
  EXPECT_TRUE(Shows("example:1")) << out();
  ASSERT_EQ(Show({path, "example:0"}), 0);
  EXPECT_TRUE(Shows("instance  example:0 of example, from +50.0 us\n")) << out();
  EXPECT_EQ(Show({path, "exampel:0"}), 1);
  EXPECT_EQ(Show({path, "example:2"}), 1);
}

TEST_F(ShowCommandTest, ATraceWithoutInstancesStillHasSomethingToShow) {
  const std::string path = WriteExample(false);
  ASSERT_EQ(Show({path}), 0);
  EXPECT_FALSE(Shows("no instances")) << out();
  ASSERT_EQ(Show({path, "0", "--json"}), 0);
  const json shown = json::parse(out());
  int64_t sum_ns = 0;
  for (const auto& [kind, dur_ns] : shown["account"].items()) sum_ns += dur_ns.get<int64_t>();
  EXPECT_EQ(sum_ns, shown["dur_ns"]);
}

TEST_F(ShowCommandTest, FoundInstancesCanBeAskedForWhereOthersAreMarked) {
  const std::string path = WriteExample();
  ASSERT_EQ(Show({path, "--auto"}), 0);
  EXPECT_FALSE(Shows("Checkout")) << out();
  EXPECT_NE(err().find("next: culprit show " + path + " 0 --auto\n"), std::string::npos) << err();
  ASSERT_EQ(Show({path, "0", "--auto", "--not-idle", "shop!*"}), 0);
  EXPECT_NE(err().find(" 0 --auto --not-idle 'shop!*' --lanes\n"), std::string::npos) << err();
  ASSERT_EQ(Show({path, "--scenario", "Check*"}), 0);
  EXPECT_TRUE(Shows("Checkout")) << out();
  EXPECT_FALSE(Shows("Browse")) << out();
}

TEST_F(ShowCommandTest, SimulatedInstancesConserveTime) {
  const std::string path = folder_ / "synth";
  BufferOutput silent;
  ASSERT_EQ(RunCulprit({"synth", "--traces", "2", "--seed", "3", "-o", path}, silent), 0);
  ASSERT_EQ(Show({path, "--json", "--max-lines", "1000"}), 0);
  const json list = json::parse(out());
  ASSERT_GT(list["slowest"].size(), 20U);
  size_t shown = 0;
  for (const json& row : list["slowest"]) {
    if (++shown > 25) break;
    ASSERT_EQ(Show({path, row["instance"], "--json"}), 0);
    const json instance = json::parse(out());
    int64_t sum_ns = 0;
    for (const auto& [kind, dur_ns] : instance["account"].items()) sum_ns += dur_ns.get<int64_t>();
    EXPECT_EQ(sum_ns, row["dur_ns"]) << row["instance"];
  }
}

// The recorded convoy: what was found in it by hand before.
TEST_F(ShowCommandTest, PostgresConvoyIsTheLockHeldOverTheDiskWait) {
  const std::string data =
      CULPRIT_SOURCE_DIR "/../shared/data/bugs/postgresql-15-notify-convoy/buggy.sched.txt.zst";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no recording at " << data;
  const std::string path = folder_ / "pg";
  BufferOutput silent;
  ASSERT_EQ(RunCulprit({"import", data, "-o", path}, silent), 0);
  const corpus::Corpus corpus = corpus::Corpus::Open(path).value();
  const trace::Trace trace = trace::ReadTrace(corpus.TracePath(corpus.List().value()[0])).value();
  const waitgraph::Timelines timelines(trace);
  const waitgraph::AutoInstances found = waitgraph::FindInstances(timelines);
  std::vector<trace::Instance> backends;
  for (const trace::Instance& instance : found.instances) {
    if (found.scenarios[instance.scenario.value].starts_with("postgres")) {
      backends.push_back(instance);
    }
  }
  ASSERT_GT(backends.size(), 5'000U);
  const auto account = [&](const waitgraph::AreaOptions& options) {
    waitgraph::AreaAccount sum;
    const waitgraph::Area area = waitgraph::AreaOfInterest(timelines, backends, options);
    for (const waitgraph::AreaAccount& a : area.accounts) {
      EXPECT_EQ(a.running_ns + a.ready_ns + a.hardware_ns + a.unattributed_ns, a.total_ns);
      sum.Add(a);
    }
    return sum;
  };
  const waitgraph::AreaAccount lock = account({.with = {"postgres!PreCommit_Notify"}});
  EXPECT_GT(lock.kept_ns * 100, lock.total_ns * 75);
  EXPECT_LT(lock.unattributed_ns * 100, lock.total_ns);
  const waitgraph::AreaAccount disk = account({.classes = {waitgraph::WaitClass::kDisk}});
  EXPECT_GT(disk.kept_ns * 100, disk.total_ns * 10);
  EXPECT_LT(disk.kept_ns * 100, disk.total_ns * 20);
  const waitgraph::AreaAccount sync = account({.with = {"libc.so.6!fdatasync"}});
  EXPECT_GT(sync.kept_ns * 100, sync.total_ns * 35);
  // The same disk wait is charged to many through the convoy.
  const waitgraph::Area area =
      waitgraph::AreaOfInterest(timelines, backends, {.classes = {waitgraph::WaitClass::kDisk}});
  std::map<waitgraph::EventIndex, int64_t> distinct;
  int64_t attributed_ns = 0;
  for (const waitgraph::AreaEvent& e : area.events) {
    distinct[e.event] = trace.events[e.event].dur_ns;
    attributed_ns += e.cost_ns;
  }
  int64_t distinct_ns = 0;
  for (const auto& [event, dur_ns] : distinct) distinct_ns += dur_ns;
  EXPECT_GT(attributed_ns, distinct_ns * 10);
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
