// SPDX-License-Identifier: Apache-2.0
// Each trap of scheduler recordings by name.
#include "assemble/assembler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "assemble/assembled_recording.h"

namespace culprit::assemble::TEST_FILE {
namespace {

using StringList = std::vector<std::string>;

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

}  // namespace
}  // namespace culprit::assemble::TEST_FILE
