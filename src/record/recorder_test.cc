// SPDX-License-Identifier: Apache-2.0
//
// Records for real, small programs of known behaviour. Needs root and a kernel
// with BTF; skipped elsewhere. Bounds on times are wide: the machine may be busy.
#include "record/recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/test_folder.h"
#include "record/bpf_engine.h"
#include "record/machine.h"
#include "record/program_choice.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::record::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

constexpr int64_t kMs = 1'000'000;

bool CanRecord() {
  return BpfEngine::Built() && geteuid() == 0 && access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}

#define SKIP_IF_IT_CANNOT_RECORD() \
  if (!CanRecord()) GTEST_SKIP() << "recording needs root, BTF and a build with the BPF engine"

// A process of our own making, ended with the test.
class Target {
 public:
  explicit Target(void (*work)()) : pid_(fork()) {
    if (pid_ != 0) return;
    work();
    _exit(0);
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

trace::Trace RecordAndCheck(RecordOptions options, RecordOutcome* outcome = nullptr) {
  const TestFolder folder;
  options.path = folder / "t.ctrace";
  const Result<RecordOutcome> result = Record(options, {});
  EXPECT_TRUE(result.ok()) << result.error().ToString();
  if (!result.ok()) return {};
  EXPECT_FALSE(result.value().error.has_value());
  if (outcome != nullptr) *outcome = result.value();
  Result<trace::Trace> trace = trace::ReadTrace(options.path);
  EXPECT_TRUE(trace.ok());
  const auto report = trace::CheckConservation(trace.value());
  EXPECT_TRUE(report.ok()) << report.first_problem;
  return std::move(trace).value();
}

bool HasFrame(const trace::Trace& trace, trace::StackId stack, std::string_view part) {
  return trace.dictionary.StackText(stack).find(part) != std::string::npos;
}

int64_t LongestWait(const trace::Trace& trace, std::string_view frame, std::string_view peer) {
  int64_t longest_ns = 0;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kWait || !HasFrame(trace, event.stack, frame)) continue;
    if (trace.dictionary.ThreadLabel(event.peer).find(peer) == std::string::npos) continue;
    longest_ns = std::max(longest_ns, event.dur_ns);
  }
  return longest_ns;
}

TEST(Recorder, ASleepIsAWaitThatTheTimerEnds) {
  SKIP_IF_IT_CANNOT_RECORD();
  RecordOutcome outcome;
  const trace::Trace trace =
      RecordAndCheck({.command = {"/bin/sh", "-c", "sleep 0.2; exit 3"}, .budget = 0}, &outcome);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.tier, Tier::kBpf);
  const int64_t sleep_ns = LongestWait(trace, "nanosleep", "[timer]");
  EXPECT_GE(sleep_ns, 199 * kMs);
  EXPECT_LE(sleep_ns, 2000 * kMs);
  // The shell waits for its child, which ends the wait by its exit. On a busy
  // machine the child may sleep for a while before its parent waits.
  EXPECT_GE(LongestWait(trace, "wait4", "sleep"), 100 * kMs);
#if defined(__aarch64__)
  // Before there are tables, frame pointers lead on there.
  EXPECT_GT(outcome.complete_stacks * 10, outcome.user_stacks * 5);
#endif
  // It slept before there were unwind tables of it, but not until then.
  if (ProgramChoices({}).front().resumes) {
    const auto slept =
        std::find_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
          return event.kind == EventKind::kWait && event.dur_ns == sleep_ns &&
                 HasFrame(trace, event.stack, "nanosleep");
        });
    ASSERT_NE(slept, trace.events.end());
    EXPECT_FALSE(HasFrame(trace, slept->stack, "[truncated]"))
        << trace.dictionary.StackText(slept->stack);
  }
  EXPECT_TRUE(trace.metadata.properties.contains("overhead.share"));
  EXPECT_EQ(trace.metadata.properties.at("recorder.tier"), "bpf");
}

void FightForALock() {
  std::mutex mutex;
  std::thread other([&] {
    for (;;) {
      const std::lock_guard<std::mutex> lock(mutex);
      usleep(30'000);
    }
  });
  for (;;) {
    usleep(5'000);
    const std::lock_guard<std::mutex> lock(mutex);
  }
}

TEST(Recorder, AWaitForALockIsEndedByItsHolder) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&FightForALock);
  const trace::Trace trace =
      RecordAndCheck({.target = {.pids = {target.pid()}}, .duration_ns = 400 * kMs, .budget = 0});
  int64_t waits = 0;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kWait || !HasFrame(trace, event.stack, "futex")) continue;
    if ((event.flags & trace::kWakerUnknown) != 0) continue;
    const trace::Thread& waker = trace.dictionary.threads()[event.peer.value];
    EXPECT_EQ(waker.kind, trace::ThreadKind::kUser);
    EXPECT_NE(event.peer, event.thread);
    EXPECT_EQ(waker.process, trace.dictionary.threads()[event.thread.value].process);
    ++waits;
  }
  EXPECT_GT(waits, 0);
}

void Compute() {
  volatile uint64_t sum = 0;
  for (;;) sum = sum + 1;
}

TEST(Recorder, RunningTimeIsExactAndSampled) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&Compute);
  usleep(20'000);
  RecordOutcome outcome;
  const trace::Trace trace = RecordAndCheck(
      {.target = {.pids = {target.pid()}}, .duration_ns = 400 * kMs, .budget = 0}, &outcome);
  int64_t running_ns = 0;
  int64_t ready_ns = 0;
  int64_t sampled_ns = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kRunning) running_ns += event.dur_ns;
    if (event.kind == EventKind::kReady) ready_ns += event.dur_ns;
    if (event.kind == EventKind::kRunning && event.stack.valid()) sampled_ns += event.dur_ns;
  }
  const int64_t dur_ns = trace.metadata.end_ns - trace.metadata.begin_ns;
  EXPECT_NEAR(static_cast<double>(running_ns + ready_ns), static_cast<double>(dur_ns), 2e6);
  // On a busy machine it has the CPU for a few milliseconds at a time.
  EXPECT_GT(sampled_ns * 2, running_ns);
}

void PassAToken() {
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) _exit(1);
  std::thread other([&] {
    char byte = 0;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {
    }
  });
  char byte = 0;
  for (int i = 0;; ++i) {
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) _exit(1);
    if (i % 200 == 0) usleep(20'000);
  }
}

TEST(Recorder, ShortWaitsThatAreLeftOutKeepTheirTime) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&PassAToken);
  RecordOutcome outcome;
  const trace::Trace trace = RecordAndCheck({.target = {.pids = {target.pid()}},
                                             .duration_ns = 400 * kMs,
                                             .min_wait_ns = 10 * kMs,
                                             .budget = 0},
                                            &outcome);
  EXPECT_GT(outcome.left_out, 100u);
  // Both threads are accounted for from begin to end.
  int64_t total_ns = 0;
  bool left_out_seen = false;
  bool long_with_stack = false;
  for (const Event& event : trace.events) {
    if (!trace::IsTile(event.kind)) continue;
    total_ns += event.dur_ns;
    left_out_seen = left_out_seen || trace::IsSumOfWaits(event);
    if (event.kind == EventKind::kWait && event.dur_ns >= 10 * kMs) {
      long_with_stack = long_with_stack || HasFrame(trace, event.stack, "nanosleep");
    }
  }
  EXPECT_TRUE(left_out_seen);
  EXPECT_TRUE(long_with_stack);
  const int64_t dur_ns = trace.metadata.end_ns - trace.metadata.begin_ns;
  EXPECT_EQ(total_ns, 2 * dur_ns);
}

volatile int g_sleeps = 0;

__attribute__((noinline)) void SleepOneUnit() {
  usleep(1000);
  g_sleeps = g_sleeps + 1;
}
__attribute__((noinline)) void SleepThreeUnits() {
  usleep(3000);
  g_sleeps = g_sleeps + 3;
}

void SleepInTurns() {
  for (;;) {
    SleepOneUnit();
    SleepThreeUnits();
  }
}

// Every wait has its chance to stand for the others, by its length.
TEST(Recorder, WaitsThatAreLeftOutAreKnownByThoseThatStandForThem) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&SleepInTurns);
  RecordOutcome outcome;
  const trace::Trace trace = RecordAndCheck({.target = {.pids = {target.pid()}},
                                             .duration_ns = 2500 * kMs,
                                             .min_wait_ns = 1000 * kMs,
                                             .budget = 0},
                                            &outcome);
  int64_t summed_ns = 0;
  int64_t one_ns = 0;
  int64_t three_ns = 0;
  uint64_t waits = 0;
  for (const Event& event : trace.events) {
    if (!trace::IsSumOfWaits(event)) continue;
    summed_ns += event.dur_ns;
    waits += static_cast<uint64_t>(event.arg0);
    if (HasFrame(trace, event.stack, "SleepOneUnit")) one_ns += event.dur_ns;
    if (HasFrame(trace, event.stack, "SleepThreeUnits")) three_ns += event.dur_ns;
  }
  const int64_t dur_ns = trace.metadata.end_ns - trace.metadata.begin_ns;
  EXPECT_GT(summed_ns, dur_ns / 2);
  EXPECT_LE(waits, outcome.left_out);
  EXPECT_GT((one_ns + three_ns) * 20, summed_ns * 19);
  // Three quarters.
  EXPECT_GT(three_ns, summed_ns * 55 / 100);
  EXPECT_LT(three_ns, summed_ns * 92 / 100);
}

TEST(Recorder, ARingThatOverflowsLosesRecordsButNoTime) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&PassAToken);
  RecordOutcome outcome;
  const trace::Trace trace = RecordAndCheck({.target = {.pids = {target.pid()}},
                                             .duration_ns = 300 * kMs,
                                             .budget = 0,
                                             .ring_bytes = 16 << 10},
                                            &outcome);
  EXPECT_GT(outcome.lost, 0u);
  EXPECT_EQ(trace.metadata.properties.at("drops.total"), std::to_string(outcome.lost));
  int64_t total_ns = 0;
  for (const Event& event : trace.events) {
    if (trace::IsTile(event.kind)) total_ns += event.dur_ns;
  }
  EXPECT_EQ(total_ns, 2 * (trace.metadata.end_ns - trace.metadata.begin_ns));
}

void SleepForGood() {
  for (;;) pause();
}

TEST(Recorder, AThreadThatNeverRunsIsOneLongWaitWithItsStack) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&SleepForGood);
  usleep(50'000);
  const trace::Trace trace =
      RecordAndCheck({.target = {.pids = {target.pid()}}, .duration_ns = 200 * kMs});
  const auto it = std::find_if(trace.events.begin(), trace.events.end(),
                               [](const Event& event) { return event.kind == EventKind::kWait; });
  ASSERT_TRUE(it != trace.events.end());
  EXPECT_EQ(it->dur_ns, trace.metadata.end_ns - trace.metadata.begin_ns);
  EXPECT_TRUE((it->flags & trace::kWakerUnknown) != 0);
  EXPECT_TRUE(HasFrame(trace, it->stack, "[kernel]!")) << trace.dictionary.StackText(it->stack);
  EXPECT_TRUE(HasFrame(trace, it->stack, "libc")) << trace.dictionary.StackText(it->stack);
}

void SleepAgainAndAgain() {
  for (;;) usleep(200'000);
}

TEST(Recorder, AWaitThatBeganBeforeTheRecordingHasItsWholeStack) {
  SKIP_IF_IT_CANNOT_RECORD();
  if (!ProgramChoices({}).front().resumes) {
    GTEST_SKIP() << "this kernel does not tell when a switch is over (sched_exit_tp)";
  }
  const Target target(&SleepAgainAndAgain);
  usleep(50'000);
  const trace::Trace trace =
      RecordAndCheck({.target = {.pids = {target.pid()}}, .duration_ns = 500 * kMs, .budget = 0});
  const auto it = std::find_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kWait && event.time_ns == trace.metadata.begin_ns;
  });
  ASSERT_TRUE(it != trace.events.end());
  EXPECT_LT(it->end_ns(), trace.metadata.end_ns);
  EXPECT_TRUE(HasFrame(trace, it->stack, "[kernel]!")) << trace.dictionary.StackText(it->stack);
  EXPECT_TRUE(HasFrame(trace, it->stack, "SleepAgainAndAgain"))
      << trace.dictionary.StackText(it->stack);
}

TEST(Recorder, SystemCallsAreRecordedWhenAskedFor) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&PassAToken);
  const trace::Trace trace = RecordAndCheck({.target = {.pids = {target.pid()}},
                                             .duration_ns = 200 * kMs,
                                             .syscalls = true,
                                             .budget = 0});
  const auto calls = std::count_if(trace.events.begin(), trace.events.end(), [](const Event& e) {
    return e.kind == EventKind::kSyscall && e.arg1 == 1 && e.stack.valid();
  });
  EXPECT_GT(calls, 100);
}

TEST(Recorder, TheGovernorLeavesOutWhatIsTooDearAndSaysSo) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&PassAToken);
  RecordOutcome outcome;
  const trace::Trace trace = RecordAndCheck(
      {.target = {.pids = {target.pid()}}, .duration_ns = 600 * kMs, .budget = 0.0001}, &outcome);
  EXPECT_GT(outcome.highest_level, 1);
  const auto notes = std::count_if(trace.events.begin(), trace.events.end(), [&](const Event& e) {
    return e.kind == EventKind::kMarker &&
           trace.dictionary.Text(StringId(static_cast<size_t>(e.arg0)))
               .starts_with("recorder level");
  });
  EXPECT_GT(notes, 0);
}

volatile int g_waits = 0;

__attribute__((noinline)) void WaitHere(int fd) {
  uint64_t word = 0;
  if (read(fd, &word, sizeof(word)) <= 0) _exit(1);
  g_waits = g_waits + 1;
}
// Alike, so that the stack pointer below them is the same, but not so much that a
// compiler makes them one.
__attribute__((noinline)) void WaitByAlpha(int fd) {
  WaitHere(fd);
  g_waits = g_waits + 1;
}
__attribute__((noinline)) void WaitByBeta(int fd) {
  WaitHere(fd);
  g_waits = g_waits + 2;
}

// One place in the program, two ways to it, two kinds of wait in the kernel, each
// twice in a row.
void WaitInTurns() {
  int ends[2];
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const itimerspec often = {.it_interval = {.tv_sec = 0, .tv_nsec = 500'000},
                            .it_value = {.tv_sec = 0, .tv_nsec = 500'000}};
  if (timer < 0 || timerfd_settime(timer, 0, &often, nullptr) != 0 || pipe(ends) != 0) return;
  const std::thread writer([end = ends[1]] {
    for (const uint64_t word = 1; write(end, &word, sizeof(word)) > 0;) usleep(2000);
  });
  for (unsigned turn = 0;; ++turn) {
    const int fd = turn & 4 ? timer : ends[0];
    turn & 2 ? WaitByAlpha(fd) : WaitByBeta(fd);
  }
}

TEST(Recorder, AStackThatIsRememberedIsTheOneThatAWalkFinds) {
  SKIP_IF_IT_CANNOT_RECORD();
  const Target target(&WaitInTurns);
  RecordOutcome outcome;
  const trace::Trace trace = RecordAndCheck({.target = {.pids = {target.pid()}},
                                             .duration_ns = 1500 * kMs,
                                             .sample_period_ns = 0,
                                             .budget = 0},
                                            &outcome);
  int all = 0;
  int each[2][2] = {};
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kWait || !HasFrame(trace, event.stack, "WaitHere")) continue;
    const bool alpha = HasFrame(trace, event.stack, "WaitByAlpha");
    const bool timer = HasFrame(trace, event.stack, "timerfd_read");
    EXPECT_NE(alpha, HasFrame(trace, event.stack, "WaitByBeta"));
    // Else it waits for a page.
    if (timer == HasFrame(trace, event.stack, "pipe_read")) continue;
    ++all;
    ++each[alpha ? 1 : 0][timer ? 1 : 0];
  }
  EXPECT_GT(all, 20);
  // On a busy machine one kind of wait is often over before it is begun.
  for (const auto& [pipes, timers] : each) {
    EXPECT_GT(pipes * 50, all);
    EXPECT_GT(timers * 50, all);
  }
  // By its words, or by its frame pointers.
  EXPECT_GT(std::stoll(trace.metadata.properties.at("unwind.recalled")) +
                std::stoll(trace.metadata.properties.at("unwind.proven")),
            all / 8);
}

// What a flight recorder of 300 ms writes when it has run so long, beside two threads that
// fight for a lock.
void DumpAfter(int64_t run_ns, RecordOptions options, trace::Trace& dumped) {
  const TestFolder folder;
  const Target target(&FightForALock);
  // From when it records on: to prepare takes as long as a busy machine wants.
  int64_t begin_ns = 0;
  bool asked = false;
  const RecordListener listener = {.should_stop = [&] { return asked; },
                                   .should_dump =
                                       [&] {
                                         if (begin_ns == 0) begin_ns = MonotonicNs();
                                         asked = MonotonicNs() - begin_ns > run_ns;
                                         return asked;
                                       }};
  options.target = {.pids = {target.pid()}};
  options.path = folder / "f.ctrace";
  options.budget = 0;
  options.flight_ns = 300 * kMs;
  const Result<RecordOutcome> outcome = Record(options, listener);
  ASSERT_TRUE(outcome.ok()) << outcome.error().ToString();
  ASSERT_EQ(outcome.value().paths.size(), 1u);
  auto trace = trace::ReadTrace(outcome.value().paths[0]);
  ASSERT_TRUE(trace.ok());
  dumped = std::move(trace).value();
  EXPECT_TRUE(trace::CheckConservation(dumped).ok())
      << trace::CheckConservation(dumped).first_problem;
  EXPECT_LE(dumped.metadata.end_ns - dumped.metadata.begin_ns, 400 * kMs);
  EXPECT_GT(LongestWait(dumped, "futex", ""), kMs);
}

TEST(Recorder, AFlightRecorderWritesWhatItRemembers) {
  SKIP_IF_IT_CANNOT_RECORD();
  trace::Trace trace;
  DumpAfter(700 * kMs, {}, trace);
}

// Names begin anew all the time, and nobody would know it by what is written.
TEST(Recorder, AFlightRecorderThatForgetsNamesWritesAsMuch) {
  SKIP_IF_IT_CANNOT_RECORD();
  trace::Trace trace;
  DumpAfter(3000 * kMs, {.flight_names_bytes = 1}, trace);
  if (testing::Test::HasFatalFailure()) return;
  EXPECT_GE(std::stoi(trace.metadata.properties.at("flight.renewals")), 1);
  EXPECT_GE(trace.metadata.end_ns - trace.metadata.begin_ns, 299 * kMs);
  size_t waits = 0;
  for (const trace::Event& event : trace.events) {
    if (event.kind != trace::EventKind::kWait) continue;
    ++waits;
    EXPECT_TRUE(event.stack.valid());
  }
  EXPECT_GT(waits, 10u);
}

TEST(Recorder, TheFallbackConservesTimeToo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  for (const Tier tier : {Tier::kPerfSystem, Tier::kPerfOwn}) {
    RecordOutcome outcome;
    const trace::Trace trace =
        RecordAndCheck({.command = {"/bin/sh", "-c", "sleep 0.1; exit 2"}, .tier = tier}, &outcome);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.tier, tier);
    EXPECT_TRUE(trace.metadata.has_switches);
    EXPECT_GE(LongestWait(trace, "nanosleep", ""), 99 * kMs) << Name(tier);
  }
}

TEST(Recorder, AnExistingFileIsNotOverwritten) {
  const TestFolder folder;
  const std::string path = folder.Write("t.ctrace", "precious");
  const auto outcome = Record({.command = {"true"}, .path = path}, {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(ReadWholeFile(path).value(), "precious");
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
