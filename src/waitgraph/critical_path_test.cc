// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/critical_path.h"

#include <gtest/gtest.h>

#include <string>

#include "trace/small_trace.h"
#include "waitgraph/critical_path_conserved.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;
using trace::SmallTrace;
using trace::ThreadId;
using trace::ThreadKind;

class Path : public ::testing::Test {
 protected:
  Event& Wait(const std::string& who, int64_t begin_ns, int64_t end_ns, const std::string& waker,
              std::string_view stack = "app!W") {
    const ThreadId waker_id = waker.empty() ? ThreadId() : small.Thread(waker);
    Event& e = small.Add(EventKind::kWait, who, begin_ns, end_ns, stack);
    e.peer = waker_id;
    if (waker.empty()) e.flags = trace::kWakerUnknown;
    return e;
  }
  void Run(const std::string& who, int64_t begin_ns, int64_t end_ns,
           std::string_view stack = "app!R") {
    small.Add(EventKind::kRunning, who, begin_ns, end_ns, stack);
  }
  // "0-10 a running", with a dash for each level; waits too.
  std::vector<std::string> Of(const std::string& who, int64_t t0_ns, int64_t t1_ns,
                              const PathOptions& options = {}) {
    const trace::Instance instance = {
        .scenario = {}, .thread = small.Thread(who), .t0_ns = t0_ns, .t1_ns = t1_ns};
    trace::SortByTime(small.trace.events);
    const CriticalPath path = FindCriticalPath(Timelines(small.trace), instance, options);
    ExpectConserved(path, instance);
    std::vector<std::string> lines;
    for (size_t i = 0; i < path.segments.size(); ++i) {
      const Segment& s = path.segments[i];
      const trace::Dictionary& d = small.trace.dictionary;
      std::string line(DepthOf(path, i), '-');
      line += std::to_string(s.begin_ns) + ".." + std::to_string(s.end_ns) + " " +
              std::string(d.Text(d.threads()[s.thread.value].name)) + " " +
              std::string(Name(s.kind));
      if (s.note != SegmentNote::kNone) line += ": " + std::string(Name(s.note));
      lines.push_back(line);
    }
    return lines;
  }
  using Lines = std::vector<std::string>;

  SmallTrace small{0, 100};
};

TEST_F(Path, Figure1OfStackMine) {
  Run("T1", 0, 10);
  Wait("T1", 10, 60, "T2");
  small.Add(EventKind::kReady, "T1", 60, 65).peer = small.Thread("T2");
  Run("T1", 65, 100);
  small.Add(EventKind::kReady, "T2", 0, 15).peer = small.Thread("T1");
  for (int64_t i = 0; i < 4; ++i) Run("T2", 15 + 10 * i, 25 + 10 * i);
  Run("T2", 55, 90);
  EXPECT_EQ(Of("T1", 5, 70),
            (Lines{"5..10 T1 running", "10..60 T1 wait", "-10..15 T2 ready", "-15..25 T2 running",
                   "-25..35 T2 running", "-35..45 T2 running", "-45..55 T2 running",
                   "-55..60 T2 running", "60..65 T1 ready", "65..70 T1 running"}));
}

// 003 figure 1: the delay of a disk read and a decryption travels through the
// MDU lock and the file table's to the user interface.
TEST_F(Path, Figure1OfTheDriverStudy) {
  small.Thread("[disk]", ThreadKind::kDevice);
  Run("UI", 0, 5);
  Wait("UI", 5, 95, "W0", "Browser!TabCreate;fv.sys!QueryFileTable;kernel!AcquireLock");
  Run("UI", 95, 100);
  Run("W0", 0, 4);
  Wait("W0", 4, 90, "W1", "Browser!Worker;fv.sys!QueryFileTable;kernel!AcquireLock");
  Run("W0", 90, 100);
  Run("W1", 0, 3);
  Wait("W1", 3, 80, "AV", "Browser!Worker;fv.sys!QueryFileTable;fs.sys!AcquireMDU");
  Run("W1", 80, 100);
  Run("AV", 0, 2);
  Wait("AV", 2, 70, "CM", "AV!Worker;fs.sys!AcquireMDU;kernel!RequireResource");
  Run("AV", 70, 100);
  Run("CM", 0, 1);
  Wait("CM", 1, 60, "SYS", "CM!Worker;fs.sys!AcquireMDU;kernel!WaitForObject");
  Run("CM", 60, 100);
  Wait("SYS", 0, 40, "[disk]", "kernel!Worker;fs.sys!Read;kernel!WaitForObject");
  Run("SYS", 40, 100, "kernel!Worker;se.sys!ReadDecrypt");
  small.Add(EventKind::kHardware, "[disk]", 10, 40, "DiskService").peer = small.Thread("SYS");
  EXPECT_EQ(Of("UI", 0, 100),
            (Lines{"0..5 UI running", "5..95 UI wait", "-5..90 W0 wait", "--5..80 W1 wait",
                   "---5..70 AV wait", "----5..60 CM wait", "-----5..40 SYS wait",
                   "------5..10 [disk] hardware: queueing", "------10..40 [disk] hardware",
                   "-----40..60 SYS running", "----60..70 CM running", "---70..80 AV running",
                   "--80..90 W1 running", "-90..95 W0 running", "95..100 UI running"}));
}

// The waker came to life within the wait: what was before is nobody's.
TEST_F(Path, TimeBeforeTheWakersFirstActivityIsUnattributed) {
  Wait("a", 0, 50, "b");
  Run("a", 50, 60);
  Run("b", 30, 60);
  EXPECT_EQ(Of("a", 0, 60), (Lines{"0..50 a wait", "-0..30 b unattributed: before the waker",
                                   "-30..50 b running", "50..60 a running"}));
}

// A path that ends with the waker's last tile would drop the tail of the wait.
TEST_F(Path, TheUncoveredTailOfAWaitIsKept) {
  Wait("a", 0, 50, "b");
  Run("a", 50, 60);
  Run("b", 0, 20);
  EXPECT_EQ(Of("a", 0, 60), (Lines{"0..50 a wait", "-0..20 b running", "-20..50 b unattributed",
                                   "50..60 a running"}));
}

TEST_F(Path, AWakerThatSleptUnexplainedIsNotBlamed) {
  Wait("a", 0, 50, "b");
  Run("a", 50, 60);
  Wait("b", 0, 40, "");
  Run("b", 40, 60);
  EXPECT_EQ(Of("a", 0, 60),
            (Lines{"0..50 a wait", "-0..40 b wait", "--0..40 b unattributed: waker asleep",
                   "-40..50 b running", "50..60 a running"}));
}

// Who woke b at 80 has nothing to do with what ended at 50.
TEST_F(Path, AWaitIsResolvedWithinTheWindowOfTheWaitItExplains) {
  Wait("a", 0, 50, "b");
  Run("a", 50, 90);
  Wait("b", 10, 80, "c");
  Run("b", 0, 10);
  Run("b", 80, 90);
  Run("c", 0, 90);
  EXPECT_EQ(Of("a", 0, 60), (Lines{"0..50 a wait", "-0..10 b running", "-10..50 b wait",
                                   "--10..50 b unattributed: waker asleep", "50..60 a running"}));
}

// The instance ends within the wait: the chain that ends it later still counts.
TEST_F(Path, AWaitThatOutlastsTheInstanceIsExplainedUpToItsEnd) {
  Wait("a", 0, 80, "b");
  Run("a", 80, 90);
  Wait("b", 0, 70, "c");
  Run("b", 70, 90);
  Run("c", 0, 90);
  EXPECT_EQ(Of("a", 5, 50), (Lines{"5..50 a wait", "-5..50 b wait", "--5..50 c running"}));
}

TEST_F(Path, AWaitOpenAtTheEndOfTheTraceIsUnknown) {
  Run("a", 0, 20);
  Wait("a", 20, 100, "");
  EXPECT_EQ(Of("a", 0, 100),
            (Lines{"0..20 a running", "20..100 a wait", "-20..100 a unattributed: waker unknown"}));
}

TEST_F(Path, ALostWakerIsSaidToBeLost) {
  Wait("a", 0, 20, "").flags = trace::kWakerLost;
  EXPECT_EQ(Of("a", 0, 20), (Lines{"0..20 a wait", "-0..20 a unattributed: waker lost"}));
}

TEST_F(Path, AWaitOfLengthZeroTakesNothing) {
  Run("a", 0, 20);
  Wait("a", 20, 20, "b");
  Run("a", 20, 40);
  Run("b", 0, 40);
  EXPECT_EQ(Of("a", 0, 40), (Lines{"0..20 a running", "20..40 a running"}));
}

TEST_F(Path, OutsideItsThreadsLifeAnInstanceIsUnattributed) {
  Run("a", 10, 20);
  EXPECT_EQ(Of("a", 0, 30),
            (Lines{"0..10 a unattributed", "10..20 a running", "20..30 a unattributed"}));
}

TEST_F(Path, ADiskWaitSplitsAtTheIssue) {
  small.Thread("[disk]", ThreadKind::kDevice);
  small.Thread("[disk 8:0]", ThreadKind::kDevice);
  Wait("a", 0, 50, "[disk]", "app!Read;[kernel]!io_schedule");
  small.Add(EventKind::kHardware, "[disk 8:0]", 20, 48).peer = small.Thread("a");
  Run("a", 50, 60);
  EXPECT_EQ(Of("a", 0, 60), (Lines{"0..50 a wait", "-0..20 [disk 8:0] hardware: queueing",
                                   "-20..50 [disk 8:0] hardware", "50..60 a running"}));
}

TEST_F(Path, WithoutTheRequestADiskWaitIsTheDevicesWhole) {
  small.Thread("[disk]", ThreadKind::kDevice);
  Wait("a", 0, 50, "[disk]", "app!Read;[kernel]!io_schedule");
  EXPECT_EQ(Of("a", 0, 50), (Lines{"0..50 a wait", "-0..50 [disk] hardware"}));
}

TEST_F(Path, TheIdleTaskIsHardware) {
  small.Thread("swapper", ThreadKind::kIdle);
  Wait("a", 0, 50, "swapper");
  EXPECT_EQ(Of("a", 0, 50), (Lines{"0..50 a wait", "-0..50 swapper hardware"}));
}

// Only false records let a blocked thread wake another.
TEST_F(Path, AWakerAlreadyOnThePathIsACycle) {
  Wait("a", 0, 50, "b");
  Wait("b", 0, 40, "a");
  Run("b", 40, 50);
  EXPECT_EQ(Of("a", 0, 50), (Lines{"0..50 a wait", "-0..40 b wait", "--0..40 b unattributed: cycle",
                                   "-40..50 b running"}));
}

TEST_F(Path, DeeperThanAllowedIsUnattributed) {
  Wait("a", 0, 50, "b");
  Wait("b", 0, 40, "c");
  Run("b", 40, 50);
  Run("c", 0, 50);
  EXPECT_EQ(Of("a", 0, 50, {.max_depth = 1}),
            (Lines{"0..50 a wait", "-0..40 b wait", "--0..40 b unattributed: too deep",
                   "-40..50 b running"}));
}

class LockTimeout : public Path {
 protected:
  static constexpr std::string_view kLock =
      "app!Main;app!Update;libc.so.6!pthread_mutex_timedlock;[kernel]!futex_do_wait";
  static constexpr std::string_view kOtherLock =
      "app!Main;app!Flush;libc.so.6!pthread_mutex_lock;[kernel]!futex_do_wait";
  static constexpr std::string_view kPoll = "app!Main;app!Loop;[kernel]!do_epoll_wait";
  LockTimeout() { small.Thread("[timer]", ThreadKind::kDevice); }
};

TEST_F(LockTimeout, EnteredAgainIsTheFinalWakers) {
  Wait("a", 0, 20, "[timer]", kLock);
  Run("a", 20, 22);
  Wait("a", 22, 40, "[timer]", kLock);
  Run("a", 40, 42);
  Wait("a", 42, 60, "b", kLock);
  Run("b", 0, 80);
  EXPECT_EQ(Of("a", 0, 60),
            (Lines{"0..20 a wait: waited again", "-0..20 b running", "20..22 a running",
                   "22..40 a wait: waited again", "-22..40 b running", "40..42 a running",
                   "42..60 a wait", "-42..60 b running"}));
}

TEST_F(LockTimeout, TheNextToWakeAWaiterAtTheSameSiteIsInferred) {
  Wait("a", 0, 20, "[timer]", kLock);
  Run("a", 20, 80);
  Wait("c", 10, 60, "b", kLock);
  Run("b", 0, 80);
  EXPECT_EQ(Of("a", 0, 30),
            (Lines{"0..20 a wait: inferred holder", "-0..20 b running", "20..30 a running"}));
}

TEST_F(LockTimeout, AnotherSiteTellsNothing) {
  Wait("a", 0, 20, "[timer]", kLock);
  Run("a", 20, 80);
  Wait("c", 10, 60, "b", kOtherLock);
  Run("b", 0, 80);
  EXPECT_EQ(Of("a", 0, 20),
            (Lines{"0..20 a wait", "-0..20 a unattributed: timeout: holder unknown"}));
}

TEST_F(LockTimeout, AnIdleThreadIsNotInferred) {
  small.Thread("[net]", ThreadKind::kDevice);
  Wait("a", 0, 20, "[timer]", kLock);
  Run("a", 20, 80);
  Wait("c", 10, 60, "b", kLock);
  Wait("b", 0, 15, "[net]", kPoll);
  Run("b", 15, 80);
  EXPECT_EQ(Of("a", 0, 20),
            (Lines{"0..20 a wait", "-0..20 a unattributed: timeout: holder unknown"}));
}

TEST_F(LockTimeout, AThreadThatQueuedItselfIsNotInferred) {
  Wait("a", 0, 20, "[timer]", kLock);
  Run("a", 20, 80);
  Wait("c", 10, 60, "b", kLock);
  Wait("b", 0, 18, "d", kLock);
  Run("b", 18, 80);
  Run("d", 0, 5);
  EXPECT_EQ(Of("a", 0, 20).back(), "-0..20 a unattributed: timeout: holder unknown");
}

TEST_F(LockTimeout, AHolderMayWaitForADisk) {
  small.Thread("[disk]", ThreadKind::kDevice);
  Wait("a", 0, 20, "[timer]", kLock);
  Run("a", 20, 80);
  Wait("c", 10, 60, "b", kLock);
  Wait("b", 0, 30, "[disk]", "app!Main;[kernel]!folio_wait_bit_common;[kernel]!io_schedule");
  Run("b", 30, 80);
  EXPECT_EQ(Of("a", 0, 20),
            (Lines{"0..20 a wait: inferred holder", "-0..20 b wait", "--0..20 [disk] hardware"}));
}

TEST_F(LockTimeout, AThreadAlreadyOnThePathIsNotInferred) {
  Wait("a", 0, 40, "b");
  Run("a", 40, 80);
  Wait("b", 0, 20, "[timer]", kLock);
  Run("b", 20, 80);
  Wait("c", 10, 60, "a", kLock);
  EXPECT_EQ(Of("a", 0, 40),
            (Lines{"0..40 a wait", "-0..20 b wait",
                   "--0..20 b unattributed: timeout: holder unknown", "-20..40 b running"}));
}

TEST_F(LockTimeout, ASignalTellsNoMoreThanATimer) {
  Wait("a", 0, 20, "b", kLock);
  small.Add(EventKind::kUnwait, "b", 20, 20, "app!Kill;[kernel]!complete_signal").peer =
      small.Thread("a");
  Run("a", 20, 80);
  Run("b", 0, 80);
  EXPECT_EQ(Of("a", 0, 20),
            (Lines{"0..20 a wait", "-0..20 a unattributed: timeout: holder unknown"}));
}

TEST_F(LockTimeout, ASleepThatEndsByTheTimerIsTheTimers) {
  Wait("a", 0, 20, "[timer]", "app!Main;libc.so.6!nanosleep;[kernel]!do_nanosleep");
  EXPECT_EQ(Of("a", 0, 20), (Lines{"0..20 a wait", "-0..20 [timer] hardware"}));
}

// Each of 1,000 threads waits for all before it: 2k segments for the k-th.
TEST_F(Path, AConvoyOfAThousandThreads) {
  constexpr int64_t kThreads = 1000;
  for (int64_t i = 0; i < kThreads; ++i) {
    const std::string me = "t" + std::to_string(i);
    if (i > 0) Wait(me, 0, i * 10, "t" + std::to_string(i - 1));
    Run(me, i * 10, i * 10 + 10);
  }
  const Timelines timelines(small.trace);
  PathFinder finder(timelines);
  CriticalPath path;
  for (int64_t i = 0; i < kThreads; ++i) {
    const trace::Instance instance = {.scenario = {},
                                      .thread = small.Thread("t" + std::to_string(i)),
                                      .t0_ns = 0,
                                      .t1_ns = i * 10 + 10};
    finder.Find(instance, path);
    ASSERT_EQ(path.segments.size(), static_cast<size_t>(2 * i + 1));
    if (i % 100 == 99) ExpectConserved(path, instance);
  }
}

TEST_F(Path, APathStopsLookingIntoWaitsAtItsBound) {
  for (int64_t i = 0; i < 10; ++i) {
    Wait("a", i * 10, i * 10 + 10, "b");
  }
  for (int64_t i = 0; i < 100; ++i) Run("b", i, i + 1);
  const Lines lines = Of("a", 0, 100, {.max_segments = 25});
  EXPECT_LT(lines.size(), 60U);
  EXPECT_EQ(lines.back(), "-90..100 a unattributed: too deep");
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
