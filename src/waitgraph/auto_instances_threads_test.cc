// SPDX-License-Identifier: Apache-2.0
//
// Threads that are no plain loops: those that never idle or do nothing else, and
// those that the recording catches in the middle.
#include <gtest/gtest.h>

#include <string>

#include "waitgraph/auto_instances.h"
#include "waitgraph/auto_instances_server.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::ThreadKind;

TEST(AutoInstances, AThreadThatNeverIdlesIsOneInstance) {
  LoopTrace loop;
  for (int i = 0; i < 10; ++i) {
    loop.Run("batch/main", 50);
    loop.Wait("batch/main", 20, "batch!main;batch!read;[kernel]!io_schedule", "[disk]");
  }
  loop.Run("spin/main", 1000);
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 2U);
  EXPECT_EQ(found.idle_ns, 0);
  EXPECT_EQ(found.instances[0].dur_ns() + found.instances[1].dur_ns(), 1700);
}

TEST(AutoInstances, HousekeepingIsLeftOutAndAccountedFor) {
  LoopTrace loop;
  Serve(loop, kServer, 10);
  for (int i = 0; i < 10; ++i) {
    loop.Wait("server/cleaner", 1000, "server!clean;libc.so.6!nanosleep;[kernel]!do_nanosleep",
              "[timer]");
    loop.Run("server/cleaner", 3);
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.left_out_threads, 1U);
  EXPECT_EQ(found.left_out_ns, 10030);
  EXPECT_EQ(found.instances.size(), 10U);
}

// What a timer starts is housekeeping only while it is little.
TEST(AutoInstances, ATimerLoopThatWorksIsNotLeftOut) {
  LoopTrace loop;
  for (int i = 0; i < 10; ++i) {
    loop.Wait("game/render", 10, "game!frame;libc.so.6!nanosleep;[kernel]!do_nanosleep", "[timer]");
    loop.Run("game/render", 6);
  }
  EXPECT_EQ(Find(loop).instances.size(), 10U);
}

// A wake-up recorded before the switch-out: length zero, and still a cut.
TEST(AutoInstances, AnIdleWaitOfLengthZeroCuts) {
  LoopTrace loop;
  Serve(loop, kServer, 10);
  loop.Wait(kServer, 0, kPoll);
  loop.Run(kServer, 8);
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 11U);
  EXPECT_EQ(found.instances[10].dur_ns(), 8);
}

// A deadlock at the end of the recording is an instance that does not end.
TEST(AutoInstances, AWaitStillOpenAtTheEndIsInAnInstance) {
  LoopTrace loop;
  Serve(loop, kServer, 10);
  loop.Wait(kServer, 100, kPoll);
  loop.Run(kServer, 5);
  loop.Wait(kServer, 9000, kMutex, "");
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 11U);
  EXPECT_EQ(found.instances[10].dur_ns(), 9005);
}

TEST(AutoInstances, AThreadThatNeverRanIsLeftOutUnlessItIsStuck) {
  LoopTrace loop;
  Serve(loop, kServer, 10);
  loop.Thread("rescuer", ThreadKind::kKernel);
  loop.Wait("rescuer", 9000, "[kernel]!kthread;[kernel]!rescuer_thread;[kernel]!schedule", "");
  loop.Wait("sh/sh", 9000, "sh!main;libc!wait4;[kernel]!do_wait;[kernel]!schedule", "");
  loop.Wait("db/stuck", 9000, kMutex, "");
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 11U);
  EXPECT_EQ(std::ranges::count_if(found.instances,
                                  [](const trace::Instance& at) { return at.dur_ns() == 9000; }),
            1);
  EXPECT_EQ(found.left_out_threads, 2U);
  EXPECT_EQ(found.left_out_ns, 18000);
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
