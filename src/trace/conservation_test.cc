// SPDX-License-Identifier: Apache-2.0
#include "trace/conservation.h"

#include <gtest/gtest.h>

#include "trace/small_trace.h"

namespace culprit::trace::TEST_FILE {
namespace {

TEST(Conservation, HoldsWhenTilesAbut) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kRunning, "a", 0, 30);
  small.Add(EventKind::kWait, "a", 30, 80);
  small.Add(EventKind::kReady, "a", 80, 80);
  small.Add(EventKind::kRunning, "a", 80, 100);
  small.Add(EventKind::kReady, "b", 0, 30);
  small.Add(EventKind::kRunning, "b", 30, 80);
  small.Add(EventKind::kReady, "b", 80, 100);
  const ConservationReport report = CheckConservation(small.trace);
  EXPECT_TRUE(report.ok()) << report.first_problem;
  EXPECT_EQ(report.threads_checked, 2u);
  EXPECT_EQ(report.busy_ns, 100);
  EXPECT_EQ(report.idle_ns, 0);
}

TEST(Conservation, ReportsAGapBetweenTwoTiles) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kRunning, "a", 0, 30);
  small.Add(EventKind::kWait, "a", 35, 80);
  const ConservationReport report = CheckConservation(small.trace);
  EXPECT_EQ(report.gaps, 1u);
  EXPECT_EQ(report.gap_ns, 5);
  EXPECT_EQ(report.first_problem, "thread a (1) has a gap at 30 ns");
}

TEST(Conservation, ReportsAThreadInTwoStates) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kRunning, "a", 0, 30);
  small.Add(EventKind::kWait, "a", 20, 80);
  const ConservationReport report = CheckConservation(small.trace);
  EXPECT_EQ(report.overlaps, 1u);
  EXPECT_EQ(report.overlap_ns, 10);
  EXPECT_FALSE(report.ok());
}

TEST(Conservation, ReportsACpuThatRunsTwoThreads) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kRunning, "a", 0, 30, "", 2);
  small.Add(EventKind::kRunning, "b", 29, 60, "", 2);
  small.Add(EventKind::kRunning, "c", 0, 60, "", 3);
  const ConservationReport report = CheckConservation(small.trace);
  EXPECT_EQ(report.cpu_overlaps, 1u);
  EXPECT_EQ(report.busy_ns, 60 + 60);
}

TEST(Conservation, ReportsEventsOutsideTheRecording) {
  SmallTrace small(10, 100);
  small.Add(EventKind::kSyscall, "a", 5, 20);
  EXPECT_EQ(CheckConservation(small.trace).out_of_range, 1u);
}

TEST(Conservation, SamplesAloneNeedNotTile) {
  SmallTrace small(0, 100);
  small.trace.metadata.has_switches = false;
  small.Add(EventKind::kRunning, "a", 0, 10);
  small.Add(EventKind::kRunning, "a", 50, 60);
  EXPECT_TRUE(CheckConservation(small.trace).ok());
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
