// SPDX-License-Identifier: Apache-2.0
// Each trap of scheduler recordings by name, then thousands of random streams of
// facts, with disorder and holes, against a naive account of time.
#include "assemble/assembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::assemble {
namespace {

using trace::Event;
using trace::EventKind;
using trace::StackId;
using trace::ThreadId;
using trace::Trace;

class Recording {
 public:
  Recording() : writer_([this](std::string_view bytes) { return Keep(bytes); }), a(writer_) {}

  StackId Stack(std::string_view leaf) {
    return writer_.dictionary().InternStack({}, writer_.dictionary().InternFrame("m", leaf));
  }
  void Switch(int64_t t, uint16_t cpu, int64_t prev, int64_t next, bool runnable = false,
              std::string_view leaf = {}) {
    EXPECT_TRUE(a.Switch({.time_ns = t,
                          .cpu = cpu,
                          .prev_tid = prev,
                          .next_tid = next,
                          .prev_runnable = runnable,
                          .prev_stack = leaf.empty() ? StackId() : Stack(leaf)})
                    .ok());
  }
  void Waking(int64_t t, uint16_t cpu, int64_t waker, int64_t wakee,
              WakeContext context = WakeContext::kThread, std::string_view device = {}) {
    EXPECT_TRUE(a.Waking({.time_ns = t,
                          .cpu = cpu,
                          .waker_tid = waker,
                          .wakee_tid = wakee,
                          .context = context,
                          .device = device})
                    .ok());
  }
  void Sample(int64_t t, uint16_t cpu, int64_t tid, std::string_view leaf) {
    EXPECT_TRUE(
        a.Sample({.time_ns = t, .cpu = cpu, .tid = tid, .period_ns = 10, .stack = Stack(leaf)})
            .ok());
  }
  Trace Finish(int64_t end_ns = 0) {
    EXPECT_TRUE(a.Finish(end_ns).ok());
    EXPECT_TRUE(writer_.Finish().ok());
    Trace trace =
        std::move(trace::TraceReader::FromBytes(std::move(bytes_), "test")).value().ReadAll();
    trace.diagnostics.Merge(a.diagnostics());
    return trace;
  }

 private:
  Status Keep(std::string_view bytes) {
    bytes_ += bytes;
    return {};
  }

  std::string bytes_;
  trace::TraceWriter writer_;

 public:
  Assembler a;
};

std::string Show(const Trace& trace, const Event& e) {
  const auto tid = [&](ThreadId id) {
    if (!id.valid()) return std::string("-");
    const trace::Thread& row = trace.dictionary.threads()[id.value];
    return row.tid >= 0 ? std::to_string(row.tid) : std::string(trace.dictionary.Text(row.name));
  };
  std::string text = std::string(trace::Name(e.kind)) + " " + tid(e.thread) + " [" +
                     std::to_string(e.time_ns) + "," + std::to_string(e.end_ns()) + ")";
  if (e.peer.valid()) text += " peer " + tid(e.peer);
  if (e.stack.valid()) text += " " + trace.dictionary.StackText(e.stack);
  static constexpr std::array<std::string_view, 8> kFlagNames = {
      "not-sampled", "preempted", "unknown", "lost", "inferred", "unfinished", "begin", "end"};
  for (size_t i = 0; i < kFlagNames.size(); ++i) {
    if (e.flags >> i & 1) text += " " + std::string(kFlagNames[i]);
  }
  return text;
}

// Events of one tid (or all) in time order, one a line.
std::vector<std::string> Lines(const Trace& trace, int64_t tid = -1) {
  std::vector<std::string> lines;
  for (const Event& event : trace.events) {
    const bool mine = tid < 0 || trace.dictionary.threads()[event.thread.value].tid == tid;
    if (mine) lines.push_back(Show(trace, event));
  }
  return lines;
}

uint64_t Counted(const Trace& trace, std::string_view what) {
  const auto it = trace.diagnostics.rows().find(what);
  return it == trace.diagnostics.rows().end() ? 0 : it->second.count;
}

using ::testing::Test;
using StringList = std::vector<std::string>;

constexpr std::string_view kInferredText = "switch missing from the recording, inferred";

void ExpectConserved(const Trace& trace) {
  const auto report = CheckConservation(trace);
  EXPECT_TRUE(report.ok()) << report.first_problem;
}

TEST(AssemblerTest, AWaitEndsAtItsWakingAndTheReadyDelayFollows) {
  Recording r;
  r.Switch(100, 0, 1, 2, false, "block");
  r.Waking(150, 0, 2, 1);
  r.Switch(180, 0, 2, 1, false, "done");
  const Trace trace = r.Finish(200);
  EXPECT_EQ(Lines(trace, 1),
            (StringList{"wait 1 [100,150) peer 2 m!block", "ready 1 [150,180) peer 2 m!block",
                        "running 1 [180,200) not-sampled"}));
  EXPECT_EQ(Lines(trace, 2),
            (StringList{"running 2 [100,180) not-sampled", "unwait 2 [150,150) peer 1",
                        "wait 2 [180,200) m!done unknown"}));
  ExpectConserved(trace);
  EXPECT_TRUE(trace.metadata.has_switches);
  EXPECT_TRUE(trace.metadata.has_wakers);
  EXPECT_EQ(trace.metadata.cpus, 1u);
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(AssemblerTest, APreemptedThreadDidNotWait) {
  Recording r;
  r.Switch(100, 0, 1, 2, true, "spin");
  r.Switch(120, 0, 2, 1);
  const Trace trace = r.Finish(130);
  EXPECT_EQ(Lines(trace, 1), (StringList{"ready 1 [100,120) peer 2 m!spin preempted",
                                         "running 1 [120,130) not-sampled"}));
  ExpectConserved(trace);
}

TEST(AssemblerTest, AWakingBeforeTheSwitchOutGivesAWaitOfNoLength) {
  Recording r;
  r.Switch(100, 0, 0, 1);
  r.Switch(100, 1, 0, 2);
  r.Waking(150, 1, 2, 1);
  r.Switch(155, 0, 1, 0, false, "block");
  r.Switch(170, 0, 0, 1);
  const Trace trace = r.Finish(180);
  EXPECT_EQ(Lines(trace, 1),
            (StringList{"running 1 [100,155) not-sampled", "ready 1 [155,170) m!block",
                        "wait 1 [155,155) peer 2 m!block", "running 1 [170,180) not-sampled"}));
  EXPECT_EQ(Lines(trace, 2)[1], "unwait 2 [155,155) peer 1");
  ExpectConserved(trace);
}

TEST(AssemblerTest, AnEarlyWakingDoesNotEndALaterWait) {
  Recording r;
  r.Switch(100, 0, 0, 1);
  r.Switch(100, 1, 0, 2);
  r.Waking(150, 1, 2, 1);  // the condition held before it slept: it went on running
  r.Switch(500, 0, 1, 0, false, "block");
  r.Waking(900, 1, 2, 1);
  r.Switch(910, 0, 0, 1);
  const Trace trace = r.Finish(1000);
  EXPECT_EQ(Lines(trace, 1)[1], "wait 1 [500,900) peer 2 m!block");
  EXPECT_EQ(Counted(trace, "waking of a thread that was not waiting"), 1u);
  ExpectConserved(trace);
}

TEST(AssemblerTest, InterruptsAndTheIdleTaskAreDevices) {
  Recording r;
  r.Switch(100, 0, 1, 2, false, "block");
  r.Waking(150, 0, 2, 1, WakeContext::kInterrupt);  // 2 was only interrupted
  r.Switch(160, 0, 2, 1, false, "read");
  r.Waking(170, 1, 0, 2, WakeContext::kUnknown);
  r.Switch(180, 0, 1, 2, false, "send");
  r.Waking(190, 0, 2, 1, WakeContext::kInterrupt, "disk");
  const Trace trace = r.Finish(200);
  EXPECT_EQ(Lines(trace, 1)[0], "wait 1 [100,150) peer [interrupt] m!block");
  EXPECT_EQ(Lines(trace, 2)[1], "wait 2 [160,170) peer [interrupt] m!read");
  EXPECT_EQ(Lines(trace, 1)[3], "wait 1 [180,190) peer [disk] m!send");
  ExpectConserved(trace);
}

TEST(AssemblerTest, AThreadSeenOnAnIdleCpuCameAtItsWaking) {
  Recording r;
  r.Switch(100, 0, 1, 0, false, "block");
  r.Switch(100, 1, 0, 2);
  r.Waking(150, 1, 2, 1);
  // idle -> 1 is missing
  r.Switch(180, 0, 1, 0, false, "again");
  const Trace trace = r.Finish(200);
  EXPECT_EQ(Lines(trace, 1), (StringList{"wait 1 [100,150) peer 2 m!block",
                                         "running 1 [150,180) not-sampled inferred",
                                         "wait 1 [180,200) m!again unknown"}));
  EXPECT_EQ(Counted(trace, kInferredText), 1u);
  EXPECT_EQ(trace.metadata.properties.at("switches.inferred"), "1");
  ExpectConserved(trace);
}

TEST(AssemblerTest, ItCannotComeBeforeTheCpuWentIdle) {
  Recording r;
  r.Switch(100, 0, 1, 3, false, "block");
  r.Switch(100, 1, 0, 2);
  r.Waking(150, 1, 2, 1);
  r.Switch(160, 0, 3, 0);
  r.Switch(180, 0, 1, 0, false, "again");
  const Trace trace = r.Finish(200);
  EXPECT_EQ(Lines(trace, 1)[1], "ready 1 [150,160) peer 3 m!block inferred");
  EXPECT_EQ(Lines(trace, 1)[2], "running 1 [160,180) not-sampled inferred");
  ExpectConserved(trace);
}

TEST(AssemblerTest, WithoutAWakingItCameAtTheFirstEvidence) {
  Recording r;
  r.Switch(90, 1, 0, 2);
  r.Waking(95, 1, 2, 7);
  r.Switch(100, 0, 1, 0, false, "block");
  r.Sample(170, 0, 1, "work");
  r.Switch(180, 0, 1, 0, false, "again");
  const Trace trace = r.Finish(200);
  EXPECT_EQ(Lines(trace, 1), (StringList{"wait 1 [100,170) m!block lost inferred",
                                         "running 1 [170,180) m!work inferred",
                                         "wait 1 [180,200) m!again unknown"}));
  ExpectConserved(trace);
}

TEST(AssemblerTest, TwoSwitchesThatDisagreeDisplaceTheOccupant) {
  Recording r;
  r.Switch(100, 0, 0, 1);
  r.Switch(150, 0, 2, 3);  // 1 -> 2 is missing
  const Trace trace = r.Finish(200);
  EXPECT_EQ(Lines(trace, 1), (StringList{"running 1 [100,150) not-sampled inferred",
                                         "wait 1 [150,200) unknown inferred"}));
  EXPECT_EQ(Lines(trace, 2), (StringList{"wait 2 [150,200) unknown"}));
  ExpectConserved(trace);
}

TEST(AssemblerTest, AThreadOnTwoCpusMovedUnseen) {
  Recording r;
  r.Switch(100, 0, 0, 1);
  r.Sample(120, 0, 1, "here");
  r.Sample(150, 1, 1, "there");
  r.Switch(160, 1, 1, 0);
  const Trace trace = r.Finish(170);
  EXPECT_EQ(Lines(trace, 1),
            (StringList{"running 1 [100,120) m!here", "running 1 [120,160) m!there inferred",
                        "wait 1 [160,170) unknown"}));
  ExpectConserved(trace);
}

TEST(AssemblerTest, SamplesShareOutTheSpan) {
  Recording r;
  r.Switch(100, 0, 0, 1);
  r.Sample(110, 0, 1, "a");
  r.Sample(130, 0, 1, "b");
  r.Switch(150, 0, 1, 0);
  const Trace trace = r.Finish();
  EXPECT_EQ(Lines(trace, 1), (StringList{"running 1 [100,110) m!a", "running 1 [110,150) m!b",
                                         "wait 1 [150,150) unknown"}));
  ExpectConserved(trace);
}

TEST(AssemblerTest, SamplesBeforeTheFirstSwitchAreTilesToo) {
  Recording r;
  r.Sample(50, 0, 1, "early");
  r.Waking(60, 0, 1, 2);
  r.Sample(70, 1, 2, "woken");
  r.Switch(100, 0, 1, 0);
  const Trace trace = r.Finish(120);
  EXPECT_EQ(Lines(trace, 1)[0], "running 1 [50,100) m!early");
  EXPECT_EQ(Lines(trace, 2), (StringList{"running 2 [60,120) m!woken inferred"}));
  ExpectConserved(trace);
}

TEST(AssemblerTest, WithoutSwitchesASampleIsItsPeriod) {
  Recording r;
  r.Sample(100, 0, 1, "a");
  r.Sample(110, 0, 1, "b");
  const Trace trace = r.Finish();
  EXPECT_EQ(Lines(trace), (StringList{"running 1 [100,110) m!a", "running 1 [110,120) m!b"}));
  EXPECT_FALSE(trace.metadata.has_switches);
  EXPECT_EQ(trace.metadata.end_ns, 120);
  ExpectConserved(trace);
}

TEST(AssemblerTest, TidsAreReused) {
  Recording r;
  r.a.Fork(50, 9, 1, 1);
  r.Switch(100, 0, 0, 1);
  r.a.Exit(110, 1);
  r.Switch(120, 0, 1, 0);
  r.a.Fork(130, 9, 1, 1);
  r.Switch(140, 0, 0, 1);
  const Trace trace = r.Finish(150);
  ASSERT_EQ(trace.dictionary.threads().size(), 2u);
  EXPECT_EQ(trace.dictionary.threads()[0].start_ns, 50);
  EXPECT_EQ(trace.dictionary.threads()[0].end_ns, 120);
  EXPECT_EQ(trace.dictionary.threads()[1].start_ns, 130);
  EXPECT_NE(trace.dictionary.threads()[0].process, trace.dictionary.threads()[1].process);
  EXPECT_EQ(Lines(trace),
            (StringList{"running 1 [100,120) not-sampled", "running 1 [140,150) not-sampled"}));
  ExpectConserved(trace);
}

TEST(AssemblerTest, AThreadThatNeverEndedGivesWayToItsSuccessor) {
  Recording r;
  r.Switch(100, 0, 0, 1);
  r.a.Fork(130, 9, 1, 1);
  r.Switch(140, 1, 0, 1);
  const Trace trace = r.Finish(150);
  EXPECT_EQ(trace.dictionary.threads().size(), 2u);
  ExpectConserved(trace);
}

TEST(AssemblerTest, SystemCallsAreJoined) {
  Recording r;
  EXPECT_TRUE(r.a.SyscallExit(90, 0, 1, 3, 0).ok());
  EXPECT_TRUE(r.a.SyscallEnter(100, 0, 1, 63).ok());
  EXPECT_TRUE(r.a.SyscallExit(110, 0, 1, 63, 5).ok());
  EXPECT_TRUE(r.a.SyscallEnter(120, 0, 1, 64).ok());  // its exit is lost
  EXPECT_TRUE(r.a.SyscallEnter(130, 0, 1, 98).ok());
  const Trace trace = r.Finish(150);
  EXPECT_EQ(Lines(trace), (StringList{"syscall 1 [100,110)", "syscall 1 [130,150) unfinished"}));
  EXPECT_EQ(trace.events[0].arg0, 63);
  EXPECT_EQ(trace.events[0].arg1, 5);
  EXPECT_EQ(Counted(trace, "system call exit without its entry"), 1u);
  EXPECT_EQ(Counted(trace, "system call entry without its exit"), 1u);
}

TEST(AssemblerTest, BlockRequestsAreTheDisks) {
  Recording r;
  const BlockFact request = {
      .time_ns = 100, .device = "8:0", .sector = 77, .bytes = 4096, .operation = 1, .tid = 5};
  EXPECT_TRUE(r.a.BlockIssue(request).ok());
  EXPECT_TRUE(r.a.BlockIssue({.time_ns = 105, .device = "8:0", .sector = 99}).ok());
  EXPECT_TRUE(r.a.BlockComplete({.time_ns = 140, .device = "8:0", .sector = 77}).ok());
  EXPECT_TRUE(
      r.a.BlockComplete({.time_ns = 145, .device = "8:0", .sector = 78, .bytes = 512}).ok());
  const Trace trace = r.Finish(150);
  EXPECT_EQ(Lines(trace), (StringList{"hardware [disk 8:0] [100,140) peer 5",
                                      "hardware [disk 8:0] [105,150) unfinished"}));
  EXPECT_EQ(trace.events[0].arg0, 4096);
  EXPECT_EQ(trace.events[0].arg1, 1);
  EXPECT_EQ(Counted(trace, "block request completed without its issue"), 1u);
}

TEST(AssemblerTest, AFlushIsMatchedWithoutItsSector) {
  Recording r;
  EXPECT_TRUE(r.a.BlockIssue({.time_ns = 100, .device = "8:0", .sector = 0, .operation = 2}).ok());
  EXPECT_TRUE(
      r.a.BlockComplete({.time_ns = 140, .device = "8:0", .sector = UINT64_MAX, .operation = 2})
          .ok());
  // The end of the write that the flush was for: nothing was issued for it.
  EXPECT_TRUE(
      r.a.BlockComplete({.time_ns = 141, .device = "8:0", .sector = 0, .operation = 1}).ok());
  const Trace trace = r.Finish();
  EXPECT_EQ(Lines(trace), (StringList{"hardware [disk 8:0] [100,140)"}));
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(AssemblerTest, OutermostSlicesAreInstances) {
  Recording r;
  EXPECT_TRUE(r.a.SliceBegin(100, 1, "frame").ok());
  EXPECT_TRUE(r.a.SliceBegin(110, 1, "layout").ok());
  EXPECT_TRUE(r.a.SliceEnd(120, 1).ok());
  EXPECT_TRUE(r.a.SliceEnd(130, 1, "other").ok());
  EXPECT_TRUE(r.a.SliceEnd(140, 1, "frame").ok());
  EXPECT_TRUE(r.a.SliceBegin(150, 1, "hang").ok());
  const Trace trace = r.Finish(200);
  ASSERT_EQ(trace.instances.size(), 2u);
  EXPECT_EQ(trace.dictionary.Text(trace.instances[0].scenario), "frame");
  EXPECT_EQ(trace.instances[0].dur_ns(), 40);
  EXPECT_EQ(trace.instances[1].t1_ns, 200);
  EXPECT_EQ(trace.events.size(), 6u);
  EXPECT_EQ(Counted(trace, "slice end without its begin"), 1u);
}

TEST(AssemblerTest, TimeThatRunsBackwardsIsMovedAndCounted) {
  Recording r;
  r.Switch(100, 0, 1, 2);
  r.Waking(90, 0, 2, 1);
  r.Switch(120, 0, 2, 1);
  const Trace trace = r.Finish(130);
  EXPECT_EQ(Lines(trace, 1)[1], "wait 1 [100,100) peer 2");
  EXPECT_EQ(Counted(trace, "fact earlier than one before it, moved to that one's time"), 1u);
  ExpectConserved(trace);
}

TEST(AssemblerTest, NamesAndProcesses) {
  Recording r;
  r.a.Name(10, 10, "server");
  r.a.Name(10, 11, "worker");
  r.a.ProcessName(10, "server", "server --port 80");
  r.a.Cgroup(10, "/system.slice");
  r.Switch(100, 0, 11, 12);
  r.a.Name(-1, 12, "stray");
  const Trace trace = r.Finish(110);
  const auto& d = trace.dictionary;
  ASSERT_EQ(d.processes().size(), 2u);
  EXPECT_EQ(d.Text(d.processes()[0].name), "server");
  EXPECT_EQ(d.Text(d.processes()[0].command_line), "server --port 80");
  EXPECT_EQ(d.Text(d.processes()[0].cgroup), "/system.slice");
  EXPECT_EQ(d.Text(d.processes()[1].name), "stray");
  EXPECT_EQ(d.threads()[1].process, trace::ProcessId(0));
  ExpectConserved(trace);
}

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
}  // namespace culprit::assemble
