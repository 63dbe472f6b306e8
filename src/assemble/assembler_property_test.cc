// SPDX-License-Identifier: Apache-2.0
// Thousands of random streams of facts, with disorder and holes, against a naive account of
// time.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "assemble/assembled_recording.h"

namespace culprit::assemble::TEST_FILE {
namespace {

// What the model promises beyond the tiling: every wait that names its waker
// has the unwait that says so.
void ExpectWakersMatch(const Trace& trace) {
  std::multiset<std::tuple<int64_t, ThreadId, ThreadId>> unwaits;
  for (const Event& e : trace.events) {
    if (e.kind == EventKind::kUnwait) unwaits.insert({e.time_ns, e.thread, e.peer});
  }
  for (const Event& e : trace.events) {
    if (e.kind != EventKind::kWait || !e.peer.valid()) continue;
    EXPECT_TRUE(unwaits.contains({e.end_ns(), e.peer, e.thread})) << Show(trace, e);
  }
}

// Facts drawn blindly: times that jump back, CPUs and tids that contradict each
// other, threads that die and come back, with and without CPU numbers.
class RandomFacts {
 public:
  explicit RandomFacts(uint32_t seed) : random_(seed) {}

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  void Feed(Recording& r, int facts) {
    const int64_t tids = 1 + Below(5);
    const int64_t cpus = 1 + Below(3);
    for (int i = 0; i < facts; ++i) {
      now_ += Below(4) * Below(20);
      const int64_t t = Below(10) == 0 ? now_ - Below(50) : now_;
      const auto cpu = Below(12) == 0 ? kNoCpu : static_cast<uint16_t>(Below(cpus));
      const auto tid = [&] { return Below(tids + 2) - 1; };
      One(r, t, cpu, tid(), tid());
    }
  }

 private:
  void One(Recording& r, int64_t t, uint16_t cpu, int64_t a, int64_t b) {
    switch (Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        EXPECT_TRUE(r.a.Switch({.time_ns = t,
                                .cpu = cpu,
                                .prev_tid = a,
                                .next_tid = b,
                                .prev_runnable = Below(3) == 0,
                                .prev_exiting = Below(20) == 0})
                        .ok());
        break;
      case 4:
      case 5:
      case 6:
        r.Waking(t, cpu, a, b, static_cast<WakeContext>(Below(3)));
        break;
      case 7:
      case 8:
        r.Sample(t, cpu, a, b == 1 ? "f" : "g");
        break;
      case 9:
        EXPECT_TRUE(r.a.SyscallEnter(t, cpu, a, 5).ok());
        break;
      case 10:
        EXPECT_TRUE(r.a.SyscallExit(t, cpu, a, 5, 0).ok());
        break;
      case 11:
        if (Below(3) == 0) r.a.Exit(t, a);
        if (Below(3) == 0) r.a.Fork(t, a, b, b);
        break;
    }
  }

  std::mt19937 random_;
  int64_t now_ = 1000;
};

TEST(AssemblerPropertyTest, AnyFactsConserveTime) {
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    Recording r;
    RandomFacts(seed).Feed(r, static_cast<int>(seed % 97) + 2);
    const Trace trace = r.Finish();
    const auto report = CheckConservation(trace);
    ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.first_problem;
    if (trace.metadata.has_switches) ExpectWakersMatch(trace);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// A machine that is simulated exactly, then recorded with some facts dropped.
// Without drops the assembled tiles are the simulation's; with drops they still
// tile, and the busy time stays within the recording.
class Machine {
 public:
  Machine(uint32_t seed, int cpus, int threads)
      : random_(seed),
        running_(static_cast<size_t>(cpus), 0),
        state_(static_cast<size_t>(threads) + 1) {}

  void Run(Recording& r, int steps, int drop_per_mille) {
    for (int i = 0; i < steps; ++i) {
      now_ += 1 + Below(30);
      const auto cpu = static_cast<uint16_t>(Below(static_cast<int64_t>(running_.size())));
      const int64_t prev = running_[cpu];
      const bool keep = Below(1000) >= drop_per_mille;
      if (Below(3) == 0) {
        WakeOne(r, cpu, prev, keep);
      } else {
        Reschedule(r, cpu, prev, keep);
      }
    }
    for (size_t cpu = 0; cpu < running_.size(); ++cpu) {
      if (running_[cpu] != 0) busy_ns_[running_[cpu]] += now_ - since_[cpu];
    }
  }

  int64_t now_ = 1000;
  std::map<int64_t, int64_t> busy_ns_;

 private:
  enum State : uint8_t { kAsleep, kRunnable, kOnCpu };
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  void WakeOne(Recording& r, uint16_t cpu, int64_t waker, bool keep) {
    const int64_t wakee = 1 + Below(static_cast<int64_t>(state_.size()) - 1);
    if (state_[static_cast<size_t>(wakee)] != kAsleep) return;
    state_[static_cast<size_t>(wakee)] = kRunnable;
    if (keep) r.Waking(now_, cpu, waker, wakee, WakeContext::kUnknown);
  }

  void Reschedule(Recording& r, uint16_t cpu, int64_t prev, bool keep) {
    std::vector<int64_t> runnable = {0};
    for (size_t i = 1; i < state_.size(); ++i) {
      if (state_[i] == kRunnable) runnable.push_back(static_cast<int64_t>(i));
    }
    const int64_t next =
        runnable[static_cast<size_t>(Below(static_cast<int64_t>(runnable.size())))];
    if (next == prev) return;
    const bool preempted = prev != 0 && Below(4) == 0;
    if (prev != 0) {
      state_[static_cast<size_t>(prev)] = preempted ? kRunnable : kAsleep;
      busy_ns_[prev] += now_ - since_[cpu];
    }
    if (next != 0) state_[static_cast<size_t>(next)] = kOnCpu;
    running_[cpu] = next;
    since_[cpu] = now_;
    if (keep) r.Switch(now_, cpu, prev, next, preempted);
  }

  std::mt19937 random_;
  std::vector<int64_t> running_;
  std::vector<State> state_;
  std::map<size_t, int64_t> since_;
};

std::map<int64_t, int64_t> BusyByTid(const Trace& trace) {
  std::map<int64_t, int64_t> busy;
  for (const Event& e : trace.events) {
    if (e.kind != EventKind::kRunning) continue;
    busy[trace.dictionary.threads()[e.thread.value].tid] += e.dur_ns;
  }
  return busy;
}

TEST(AssemblerPropertyTest, AWholeRecordingGivesTheTrueRunningTimes) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Recording r;
    Machine machine(seed, 1 + seed % 3, 1 + seed % 6);
    machine.Run(r, 60, 0);
    const Trace trace = r.Finish(machine.now_);
    std::erase_if(machine.busy_ns_, [](const auto& row) { return row.second == 0; });
    if (!trace.metadata.has_switches) continue;
    ASSERT_EQ(BusyByTid(trace), machine.busy_ns_) << "seed " << seed;
    ASSERT_EQ(Counted(trace, kInferredText), 0u) << "seed " << seed;
    const auto report = CheckConservation(trace);
    ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.first_problem;
  }
}

TEST(AssemblerPropertyTest, ARecordingWithHolesStillConservesTime) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Recording r;
    Machine machine(seed, 1 + seed % 3, 1 + seed % 6);
    machine.Run(r, 80, static_cast<int>(seed % 5) * 100);
    const Trace trace = r.Finish(machine.now_);
    const auto report = CheckConservation(trace);
    ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.first_problem;
    if (trace.metadata.has_switches) ExpectWakersMatch(trace);
  }
}

}  // namespace
}  // namespace culprit::assemble::TEST_FILE
