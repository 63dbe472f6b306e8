// SPDX-License-Identifier: Apache-2.0
//
// culprit record against programs that know what they do (tests/programs): who
// waited for whom and for how long, where, and what ran for how long.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "recorded_program.h"

namespace culprit::TEST_FILE {
namespace {

using nlohmann::json;
using trace::Event;
using trace::EventKind;
using trace::ThreadId;

constexpr int64_t kMs = 1'000'000;

// Frame pointers lead from a wait in the C library to its caller only where the
// library keeps them, which distributions for x86-64 do not.
#if defined(__x86_64__)
constexpr bool kSeesCallersOfLibc = false;
#else
constexpr bool kSeesCallersOfLibc = true;
#endif

// 5 %, but at least what a machine with more to do than CPUs needs to get
// somebody from one instruction to the next.
bool Near(int64_t recorded_ns, int64_t told_ns, int64_t floor_ns = 3 * kMs) {
  return std::abs(recorded_ns - told_ns) <= std::max(floor_ns, told_ns / 20);
}

// The longest wait of a thread that lies within its window.
const Event* WaitWithin(const RecordedProgram& recorded, ThreadId thread, const json& told) {
  const int64_t from_ns = told["from_ns"];
  const int64_t until_ns = told["until_ns"];
  const Event* longest = nullptr;
  for (const Event& event : recorded.trace.events) {
    if (event.kind != EventKind::kWait || event.thread != thread) continue;
    // At these two instants the thread ran: it read the clock.
    EXPECT_FALSE(event.time_ns < from_ns && from_ns < event.end_ns()) << told;
    EXPECT_FALSE(event.time_ns < until_ns && until_ns < event.end_ns()) << told;
    if (event.time_ns < from_ns || event.end_ns() > until_ns) continue;
    if (longest == nullptr || event.dur_ns > longest->dur_ns) longest = &event;
  }
  return longest;
}

bool IsBy(const RecordedProgram& recorded, const Event& wait, const json& by) {
  const trace::Dictionary& dictionary = recorded.trace.dictionary;
  if (!wait.peer.valid()) return false;
  const trace::Thread& waker = dictionary.threads()[wait.peer.value];
  if (by.is_number()) return waker.kind == trace::ThreadKind::kUser && waker.tid == by;
  return waker.kind == trace::ThreadKind::kDevice &&
         dictionary.Text(waker.name).starts_with("[" + by.get<std::string>());
}

bool HasItsUnwait(const RecordedProgram& recorded, const Event& wait) {
  return std::any_of(recorded.trace.events.begin(), recorded.trace.events.end(),
                     [&](const Event& event) {
                       return event.kind == EventKind::kUnwait && event.time_ns == wait.end_ns() &&
                              event.thread == wait.peer && event.peer == wait.thread;
                     });
}

Deviations CheckWait(const RecordedProgram& recorded, const json& told) {
  const trace::Dictionary& dictionary = recorded.trace.dictionary;
  const ThreadId thread = recorded.ThreadAt(told["tid"], told["from_ns"]);
  EXPECT_TRUE(thread.valid()) << told;
  if (!thread.valid()) return {};
  const Event* wait = WaitWithin(recorded, thread, told);
  const int64_t due_ns = told["wake_ns"].get<int64_t>() - told["from_ns"].get<int64_t>();
  // Who comes after the wake-up, on a busy machine, has nothing to wait for.
  if (wait == nullptr && due_ns <= 0) return {};
  if (wait == nullptr) return {"no wait for " + told.dump()};
  EXPECT_TRUE(!kSeesCallersOfLibc || recorded.HasFrame(wait->stack, told["in"]))
      << told << ": " << dictionary.StackText(wait->stack);
  EXPECT_TRUE(HasItsUnwait(recorded, *wait)) << told;
  Deviations deviations;
  if (!IsBy(recorded, *wait, told["by"])) {
    deviations.push_back("ended by " + dictionary.ThreadLabel(wait->peer) + ": " + told.dump());
  } else if (wait->end_ns() < told["wake_ns"]) {
    deviations.push_back("ended before its time: " + told.dump());
  }
  if (due_ns > 0 && !Near(wait->dur_ns, due_ns)) {
    deviations.push_back("lasted " + std::to_string(wait->dur_ns) + " ns: " + told.dump());
  }
  return deviations;
}

Deviations CheckWaits(const RecordedProgram& recorded) {
  Deviations all;
  for (const json& told : recorded.Told("wait")) {
    const Deviations one = CheckWait(recorded, told);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

int64_t RunningNs(const RecordedProgram& recorded, int64_t tid, const std::string& frame) {
  int64_t total_ns = 0;
  for (const Event& event : recorded.trace.events) {
    if (event.kind != EventKind::kRunning) continue;
    if (recorded.trace.dictionary.threads()[event.thread.value].tid != tid) continue;
    if (frame.empty() || recorded.HasFrame(event.stack, frame)) total_ns += event.dur_ns;
  }
  return total_ns;
}

// Running time of a thread between two samples whose stack nobody saw: whoever
// loses the CPU often has much of it, and it says so.
int64_t UnsampledNs(const RecordedProgram& recorded, int64_t tid) {
  int64_t total_ns = 0;
  for (const Event& event : recorded.trace.events) {
    const bool unsampled = event.kind == EventKind::kRunning && !event.stack.valid();
    const bool is_its = recorded.trace.dictionary.threads()[event.thread.value].tid == tid;
    if (unsampled && is_its) total_ns += event.dur_ns;
  }
  return total_ns;
}

// By samples, one a millisecond, function by function.
bool IsItsShare(const RecordedProgram& recorded, int64_t ran_ns, const json& told) {
  const int64_t unsampled_ns = UnsampledNs(recorded, told["tid"]);
  const int64_t cpu_ns = told["cpu_ns"];
  return unsampled_ns < cpu_ns / 2 && Near(ran_ns, cpu_ns, 8 * kMs + unsampled_ns);
}

Deviations CheckRuns(const RecordedProgram& recorded) {
  Deviations deviations;
  for (const json& told : recorded.Told("run")) {
    const int64_t ran_ns = RunningNs(recorded, told["tid"], told["in"]);
    if (!IsItsShare(recorded, ran_ns, told)) {
      deviations.push_back("ran " + std::to_string(ran_ns) + " ns: " + told.dump());
    }
  }
  return deviations;
}

std::string ProcessName(const RecordedProgram& recorded, ThreadId thread) {
  const trace::Dictionary& dictionary = recorded.trace.dictionary;
  const trace::ProcessId process = dictionary.threads()[thread.value].process;
  return std::string(dictionary.Text(dictionary.processes()[process.value].name));
}

TEST(RecordTruth, InAConvoyEveryoneWaitsForTheOneBefore) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("mutex_convoy"), [](const RecordedProgram& recorded) {
    EXPECT_EQ(recorded.Told("wait").size(), 3u);
    const json first = recorded.Told("wait").at(0);
    const ThreadId thread = recorded.ThreadAt(first["tid"], first["from_ns"]);
    EXPECT_TRUE(thread.valid() && ProcessName(recorded, thread) == "mutex_convoy") << first;
    return CheckWaits(recorded);
  });
}

TEST(RecordTruth, AConsumerWaitsForItsProducer) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("condition_variable"), [](const RecordedProgram& recorded) {
    EXPECT_EQ(recorded.Told("wait").size(), 4u);
    return CheckWaits(recorded);
  });
}

TEST(RecordTruth, AChainOfPipesIsSeenAcrossProcesses) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("pipe_chain"), [](const RecordedProgram& recorded) {
    EXPECT_EQ(recorded.Told("wait").size(), 6u);
    return CheckWaits(recorded);
  });
}

TEST(RecordTruth, SleepsAreEndedByTheTimerAlone) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("timer_sleep"), [](const RecordedProgram& recorded) {
    EXPECT_EQ(recorded.Told("wait").size(), 4u);
    return CheckWaits(recorded);
  });
}

TEST(RecordTruth, AFutexIsEndedByItsWakerOrByItsTimeout) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("futex"), [](const RecordedProgram& recorded) {
    EXPECT_EQ(recorded.Told("wait").size(), 2u);
    return CheckWaits(recorded);
  });
}

// Bytes of the disk requests of a thread between two times.
int64_t DiskBytes(const RecordedProgram& recorded, ThreadId thread, int64_t from_ns,
                  int64_t until_ns) {
  int64_t bytes = 0;
  for (const Event& event : recorded.trace.events) {
    if (event.kind != EventKind::kHardware || event.peer != thread) continue;
    if (event.time_ns >= from_ns && event.end_ns() <= until_ns) bytes += event.arg0;
  }
  return bytes;
}

TEST(RecordTruth, DirectReadsWaitForTheDisk) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  struct stat place = {};
  ASSERT_EQ(stat(folder.path().c_str(), &place), 0);
  const std::string device = "/sys/dev/block/" + std::to_string(major(place.st_dev)) + ":" +
                             std::to_string(minor(place.st_dev));
  if (access(device.c_str(), F_OK) != 0) GTEST_SKIP() << folder.path() << " is on no block device";
  RecordUntilRight(ProgramPath("disk_read") + " " + folder / "file",
                   [](const RecordedProgram& recorded) -> Deviations {
                     if (!recorded.Told("cannot").empty()) return {};
                     const std::vector<json> waits = recorded.Told("wait");
                     const json& first = waits.front();
                     const ThreadId thread = recorded.ThreadAt(first["tid"], first["from_ns"]);
                     EXPECT_EQ(
                         DiskBytes(recorded, thread, first["from_ns"], waits.back()["until_ns"]),
                         recorded.Told("bytes").at(0)["bytes"]);
                     return CheckWaits(recorded);
                   });
}

TEST(RecordTruth, CpuTimeIsTheThreadsOwnAndItsFunctionsHaveTheirShares) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("cpu_hog"), [](const RecordedProgram& recorded) {
    Deviations deviations = CheckRuns(recorded);
    int64_t told_ns = 0;
    for (const json& told : recorded.Told("run")) told_ns += told["cpu_ns"].get<int64_t>();
    const int64_t ran_ns = RunningNs(recorded, recorded.Told("run").at(0)["tid"], "");
    if (!Near(ran_ns, told_ns)) deviations.push_back("ran " + std::to_string(ran_ns) + " in all");
    return deviations;
  });
}

TEST(RecordTruth, AThreadIdUsedAgainIsAnotherThread) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("thread_id_reuse"), [](const RecordedProgram& recorded) {
    if (!recorded.Told("cannot").empty()) return Deviations();
    const std::vector<json> waits = recorded.Told("wait");
    EXPECT_EQ(waits.size(), 2u);
    EXPECT_EQ(waits.front()["tid"], waits.back()["tid"]);
    std::set<size_t> threads;
    for (const json& told : waits) {
      const ThreadId thread = recorded.ThreadAt(told["tid"], told["from_ns"]);
      EXPECT_TRUE(thread.valid()) << told;
      if (!thread.valid()) continue;
      threads.insert(thread.value);
      const trace::Dictionary& dictionary = recorded.trace.dictionary;
      EXPECT_EQ(dictionary.Text(dictionary.threads()[thread.value].name), told["wait"]);
    }
    EXPECT_EQ(threads.size(), 2u);
    return CheckWaits(recorded);
  });
}

TEST(RecordTruth, OfAStormOfForksEveryChildIsThereWithItsLife) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("fork_storm"), [](const RecordedProgram& recorded) {
    std::map<int64_t, const trace::Process*> by_pid;
    for (const trace::Process& process : recorded.trace.dictionary.processes()) {
      by_pid[process.pid] = &process;
    }
    EXPECT_EQ(recorded.Told("child").size(), 150u);
    for (const json& told : recorded.Told("child")) {
      const auto it = by_pid.find(told["child"]);
      EXPECT_TRUE(it != by_pid.end()) << told;
      if (it == by_pid.end()) continue;
      EXPECT_NE(it->second->start_ns, trace::kNoTime) << told;
      EXPECT_NE(it->second->end_ns, trace::kNoTime) << told;
      EXPECT_LT(it->second->start_ns, it->second->end_ns) << told;
    }
    return CheckWaits(recorded);
  });
}

TEST(RecordTruth, FramesFromBeforeAnExecKeepTheirNames) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("exec_twice"), [](const RecordedProgram& recorded) {
    Deviations deviations = CheckWaits(recorded);
    const json told = recorded.Told("exec").at(0);
    const int64_t at_ns = told["at_ns"];
    const ThreadId thread = recorded.ThreadAt(told["exec"], at_ns);
    EXPECT_TRUE(thread.valid());
    if (!thread.valid()) return deviations;
    EXPECT_EQ(ProcessName(recorded, thread), "sleep");
    int64_t slept_ns = 0;
    for (const Event& event : recorded.trace.events) {
      if (event.thread != thread || event.time_ns < at_ns) continue;
      EXPECT_FALSE(recorded.HasFrame(event.stack, "SleepBeforeExec"));
      const std::string place = kSeesCallersOfLibc ? "sleep!" : "nanosleep";
      const bool sleeps = event.kind == EventKind::kWait && recorded.HasFrame(event.stack, place);
      if (sleeps) slept_ns = std::max(slept_ns, event.dur_ns);
    }
    if (!Near(slept_ns, 60 * kMs)) deviations.push_back("slept " + std::to_string(slept_ns));
    return deviations;
  });
}

TEST(RecordTruth, ALibraryThatCameLateAndWentEarlyIsNamed) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("late_library") + " " + ProgramPath("late_module.so"),
                   [](const RecordedProgram& recorded) {
                     const json told = recorded.Told("run").at(0);
                     EXPECT_GT(
                         RunningNs(recorded, told["tid"], "late_module.so!ComputeInTheLibrary"), 0);
                     Deviations deviations = CheckWaits(recorded);
                     for (const std::string& text : CheckRuns(recorded)) deviations.push_back(text);
                     return deviations;
                   });
}

// The leaf of the stack is the compiled code: a frame of no file, which has the
// name that the map gives it.
TEST(RecordTruth, CompiledCodeStandsBelowItsCaller) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordUntilRight(ProgramPath("perf_map"), [](const RecordedProgram& recorded) {
    std::filesystem::remove(recorded.Told("map").at(0)["map"].get<std::string>());
    const trace::Dictionary& dictionary = recorded.trace.dictionary;
    int64_t compiled_ns = 0;
    for (const Event& event : recorded.trace.events) {
      if (event.kind != EventKind::kRunning || !event.stack.valid()) continue;
      const trace::StackNode& leaf = dictionary.stacks()[event.stack.value];
      const trace::Frame& frame = dictionary.frames()[leaf.frame.value];
      if (!leaf.parent.valid() || (frame.flags & trace::kKernelMode) != 0) continue;
      const std::string caller = dictionary.FrameName(dictionary.stacks()[leaf.parent.value].frame);
      const std::string_view name = frame.function.valid() ? dictionary.Text(frame.function) : "";
      if (caller.find("RunCompiledCode") == std::string::npos) continue;
      if (name == "CountDownJit") compiled_ns += event.dur_ns;
    }
    Deviations deviations = CheckRuns(recorded);
    if (!IsItsShare(recorded, compiled_ns, recorded.Told("run").at(0))) {
      deviations.push_back("compiled code ran " + std::to_string(compiled_ns) + " ns");
    }
    return deviations;
  });
}

}  // namespace
}  // namespace culprit::TEST_FILE
