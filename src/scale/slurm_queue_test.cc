// SPDX-License-Identifier: Apache-2.0
//
// The words that Slurm prints; tests/slurm runs the queue on a real cluster.
#include "scale/slurm_queue.h"

#include <gtest/gtest.h>

#include "scale/index_ranges.h"

namespace culprit::scale::TEST_FILE {
namespace {

TEST(IndexRanges, JoinsNeighbours) {
  EXPECT_EQ(IndexRanges({}), "");
  EXPECT_EQ(IndexRanges({5}), "5");
  EXPECT_EQ(IndexRanges({0, 1, 2, 3, 7, 9, 10}), "0-3,7,9-10");
}

TEST(SlurmTask, IsReadFromALine) {
  const auto task = ParseSlurmTask("41|7|RUNNING|n3|culprit-0011aabb-map-2|None");
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->job, 41U);
  EXPECT_EQ(task->index, 2007U);
  EXPECT_EQ(task->state, "RUNNING");
  EXPECT_EQ(task->host, "n3");
  EXPECT_EQ(task->reason, "None");
}

TEST(SlurmTask, OtherLinesAreNone) {
  for (const char* line :
       {"", "slurm_load_jobs error", "41|N/A|RUNNING|n3|culprit-x-map-0|None",
        "41|1000|RUNNING|n3|culprit-x-map-0|None", "41|7|RUNNING|n3|culprit-x-map-|None",
        "-1|7|RUNNING|n3|culprit-x-map-0|None", "41|7|RUNNING|n3|x-99999999999999999|None"}) {
    EXPECT_FALSE(ParseSlurmTask(line).has_value()) << line;
  }
}

TEST(SlurmTask, KnowsWhatIsOverAndWhatIsHeld) {
  for (const char* state : {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED"}) {
    EXPECT_TRUE(SlurmTask{.state = state}.active()) << state;
    EXPECT_FALSE(SlurmTask{.state = state}.held()) << state;
  }
  for (const char* state :
       {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}) {
    EXPECT_FALSE(SlurmTask{.state = state}.active()) << state;
  }
  for (const char* reason : {"launch failed requeued held", "job_requeued_in_held_state"}) {
    EXPECT_TRUE((SlurmTask{.state = "PENDING", .reason = reason}.held())) << reason;
  }
  for (const char* reason : {"Resources", "JobHeldUser", "JobHeldAdmin"}) {
    EXPECT_FALSE((SlurmTask{.state = "PENDING", .reason = reason}.held())) << reason;
  }
}

TEST(SlurmQueue, KnowsWhichFailuresPass) {
  EXPECT_TRUE(SlurmQueue::MayPass({.message = "squeue failed: slurm_load_jobs error: Unable to "
                                              "contact slurm controller (connect failure)"}));
  EXPECT_TRUE(SlurmQueue::MayPass(
      {.message = "sbatch failed: Batch job submission failed: Socket timed out"}));
  EXPECT_FALSE(SlurmQueue::MayPass({.message = "sbatch failed: invalid partition specified: x"}));
}

TEST(SlurmQueue, NamesItsJobsAfterTheRunFolderAndTheStage) {
  const Stage map{.verb = Verb::kMap, .count = 2001};
  const SlurmQueue queue("/shared/run", map, {});
  const std::string line = queue.CancelLine();
  EXPECT_EQ(line, SlurmQueue("/shared/run", map, {}).CancelLine());
  EXPECT_NE(line, SlurmQueue("/shared/run2", map, {}).CancelLine());
  EXPECT_NE(line,
            SlurmQueue("/shared/run", {.verb = Verb::kReduce, .count = 2001}, {}).CancelLine());
  // Three arrays: numbers stay below 1000.
  EXPECT_NE(line.find("-map-2"), std::string::npos);
  EXPECT_EQ(line.find("-map-3"), std::string::npos);
}

}  // namespace
}  // namespace culprit::scale::TEST_FILE
