// SPDX-License-Identifier: Apache-2.0
//
// Wait classes and automatic instances on recordings: real ones of other
// machines where they are at hand, one made here where perf may, and simulated
// ones whose marks are left aside.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/shell_run.h"
#include "trace/trace_reader.h"
#include "waitgraph/instance_source.h"
#include "waitgraph/wait_class.h"

namespace culprit::TEST_FILE {
namespace {

namespace fs = std::filesystem;
using cli::RunShell;
using cli::TemporaryFolder;
using trace::EventKind;
using waitgraph::EventIndex;
using waitgraph::InstanceSource;
using waitgraph::Role;
using waitgraph::Timelines;
using waitgraph::WaitClass;

const std::string kData = CULPRIT_SOURCE_DIR "/../shared/data/";

int Culprit(const std::string& arguments) {
  return RunShell(std::string(CULPRIT_BINARY) + " " + arguments).code;
}

std::vector<std::string> TracesOf(const std::string& corpus) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(corpus + "/traces")) {
    if (entry.path().extension() == ".ctrace") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The first trace that importing this makes.
trace::Trace Import(const TemporaryFolder& folder, const std::string& input) {
  const std::string corpus = folder.path() + "/corpus";
  fs::remove_all(corpus);
  EXPECT_EQ(Culprit("import " + input + " -o " + corpus), 0) << input;
  const std::vector<std::string> paths = TracesOf(corpus);
  EXPECT_FALSE(paths.empty()) << input;
  return paths.empty() ? trace::Trace() : trace::ReadTrace(paths.front()).value();
}

bool HasFrame(const trace::Dictionary& dictionary, trace::StackId stack, std::string_view name) {
  const std::vector<trace::FrameId> frames = dictionary.StackFrames(stack);
  return std::any_of(frames.begin(), frames.end(), [&](trace::FrameId frame) {
    return dictionary.Text(dictionary.frames()[frame.value].function) == name;
  });
}

const Role* FindRole(const InstanceSource& source, const std::string& scenario) {
  const auto it = std::find_if(source.roles.begin(), source.roles.end(),
                               [&](const Role& role) { return role.scenario == scenario; });
  return it == source.roles.end() ? nullptr : &*it;
}

// Time of waits with this frame that were not called idle.
int64_t DelayAt(const trace::Trace& trace, const InstanceSource& source, std::string_view frame) {
  int64_t total_ns = 0;
  for (EventIndex i = 0; i < trace.events.size(); ++i) {
    const trace::Event& event = trace.events[i];
    if (event.kind == EventKind::kWait && !source.idle_wait[i] &&
        HasFrame(trace.dictionary, event.stack, frame)) {
      total_ns += event.dur_ns;
    }
  }
  return total_ns;
}

class PostgresConvoy : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(Input("buggy"))) GTEST_SKIP() << "no " << Input("buggy");
  }
  static std::string Input(const std::string& run) {
    return kData + "bugs/postgresql-15-notify-convoy/" + run + ".sched.txt.zst";
  }
  TemporaryFolder folder_;
};

TEST_F(PostgresConvoy, TheBackendsIdleWhereTheyReadFromTheClient) {
  const trace::Trace trace = Import(folder_, Input("buggy"));
  const Timelines timelines(trace);
  const InstanceSource source = InstancesOf(timelines);
  const Role* const backend = FindRole(source, "postgres: PostgresMain");
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(backend->threads, 16U);
  EXPECT_EQ(backend->idle_frame, "postgres!pq_getbyte");
  EXPECT_GT(backend->instances, 20'000U);
  int64_t lock_ns = 0;
  for (EventIndex i = 0; i < trace.events.size(); ++i) {
    const trace::Event& event = trace.events[i];
    if (event.kind != EventKind::kWait) continue;
    if (!HasFrame(trace.dictionary, event.stack, "PreCommit_Notify")) continue;
    EXPECT_FALSE(source.idle_wait[i]);
    lock_ns += event.dur_ns;
  }
  // 81 % of the backends' time, found before by other means.
  EXPECT_GT(lock_ns * 100, backend->instance_ns * 75);
  EXPECT_LT(lock_ns * 100, backend->instance_ns * 87);
  const Role* const writer = FindRole(source, "postgres: WalWriterMain");
  ASSERT_NE(writer, nullptr);
  EXPECT_EQ(writer->threads, 0U);
  EXPECT_EQ(writer->left_out_threads, 1U);
}

TEST_F(PostgresConvoy, TheHealthyRunIsCutTheSameWay) {
  const trace::Trace trace = Import(folder_, Input("normal"));
  const Timelines timelines(trace);
  const InstanceSource source = InstancesOf(timelines);
  const Role* const backend = FindRole(source, "postgres: PostgresMain");
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(backend->threads, 16U);
  EXPECT_EQ(backend->idle_frame, "postgres!pq_getbyte");
  EXPECT_EQ(DelayAt(trace, source, "PreCommit_Notify"), 0);
  EXPECT_GT(DelayAt(trace, source, "fdatasync"), 0);
}

// Stacks of kernels 3.19, 5.10, 5.15 and 6.18, x86-64 and arm64. The few that
// say nothing are drivers' own.
TEST(WaitClassOnRecordings, NearlyEveryRecordedStackSaysSomething) {
  const TemporaryFolder folder;
  size_t tried = 0;
  for (const char* file :
       {"bugs/postgresql-15-notify-convoy/normal.sched.txt.zst", "trace-dat/langraph-v7-stacks.dat",
        "perfetto/android12-cpuschedstack.pftrace",
        "perf-script/perfview-symbol-tests.trace.zip"}) {
    if (!fs::exists(kData + file)) continue;
    ++tried;
    const trace::Trace trace = Import(folder, kData + file);
    const Timelines timelines(trace);
    const waitgraph::WaitFacts facts =
        ClassifyWaits(timelines, waitgraph::ClassifyStacks(trace.dictionary));
    size_t with_stack = 0;
    size_t silent = 0;
    for (EventIndex i = 0; i < trace.events.size(); ++i) {
      if (trace.events[i].kind != EventKind::kWait || !trace.events[i].stack.valid()) continue;
      ++with_stack;
      silent += facts.by_event[i].purpose == waitgraph::WaitPurpose::kUnknown ? 1 : 0;
    }
    EXPECT_GT(with_stack, 200U) << file;
    EXPECT_LE(silent * 100, with_stack * 3) << file << ": " << silent << " of " << with_stack;
  }
  if (tried == 0) GTEST_SKIP() << "no recordings under " << kData;
}

// The kernel this runs on: programs whose waits are known, recorded now.
TEST(WaitClassOnThisKernel, KnownProgramsWaitForWhatTheyWaitFor) {
  if (::geteuid() != 0) GTEST_SKIP() << "perf needs root to record wake-ups";
  const TemporaryFolder folder;
  const std::string data = folder.path() + "/perf.data";
  const std::string work =
      "sleep 0.2; (sleep 0.1; echo) | cat > /dev/null; "
      "dd if=/dev/zero of=" +
      folder.path() + "/file bs=64k count=4 oflag=sync";
  const auto outcome =
      RunShell("perf record -a -g -e sched:sched_switch -e sched:sched_waking -o " + data +
               " -- sh -c '" + work + "'");
  if (outcome.code != 0) GTEST_SKIP() << "perf cannot record here: " << outcome.text;
  const trace::Trace trace = Import(folder, data);
  const Timelines timelines(trace);
  const waitgraph::WaitFacts facts =
      ClassifyWaits(timelines, waitgraph::ClassifyStacks(trace.dictionary));
  std::map<std::string, std::map<WaitClass, int64_t>> waited_ns;
  for (EventIndex i = 0; i < trace.events.size(); ++i) {
    const trace::Event& event = trace.events[i];
    if (event.kind != EventKind::kWait || !event.stack.valid()) continue;
    const trace::Thread& thread = trace.dictionary.threads()[event.thread.value];
    waited_ns[std::string(trace.dictionary.Text(thread.name))][facts.by_event[i].wait_class] +=
        event.dur_ns;
  }
  if (waited_ns["sleep"].empty()) GTEST_SKIP() << "the recording has no kernel stacks";
  EXPECT_GT(waited_ns["sleep"][WaitClass::kTimer], 250'000'000);
  EXPECT_GT(waited_ns["cat"][WaitClass::kIpc], 50'000'000);
  EXPECT_GT(waited_ns["sh"][WaitClass::kChild], 100'000'000);
  EXPECT_EQ(waited_ns["dd"][WaitClass::kOther], 0);
}

// Marked instances of simulated machines lie in the time that was not called
// idle: what a user waited for is never lost as idleness.
TEST(AutoInstancesOnSimulatedMachines, WhatUsersWaitedForIsInInstances) {
  const TemporaryFolder folder;
  ASSERT_EQ(Culprit("synth --traces 3 --seed 5 -o " + folder.path() + "/demo"), 0);
  for (const std::string& path : TracesOf(folder.path() + "/demo")) {
    const trace::Trace trace = trace::ReadTrace(path).value();
    const Timelines timelines(trace);
    using Options = waitgraph::InstanceSourceOptions;
    const InstanceSource source = InstancesOf(timelines, {.wanted = Options::Wanted::kAutomatic});
    int64_t marked_ns = 0;
    int64_t found_ns = 0;
    for (const trace::Instance& mark : trace.instances) {
      marked_ns += mark.dur_ns();
      for (const trace::Instance& found : source.instances) {
        if (found.thread != mark.thread) continue;
        const int64_t begin_ns = std::max(mark.t0_ns, found.t0_ns);
        const int64_t end_ns = std::min(mark.t1_ns, found.t1_ns);
        found_ns += std::max<int64_t>(0, end_ns - begin_ns);
      }
    }
    EXPECT_GT(marked_ns, 0);
    EXPECT_GE(found_ns * 100, marked_ns * 97) << path;
    // And most of the threads' time is idleness, as it is in truth.
    EXPECT_GT(source.idle_ns + source.left_out_ns, source.instance_ns) << path;
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE
