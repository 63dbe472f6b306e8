// SPDX-License-Identifier: Apache-2.0
//
// Traces that tell less than they should: kernel frames alone, no stacks, stacks
// cut short or lost, no switches.
#include <gtest/gtest.h>

#include <string>

#include "waitgraph/auto_instances.h"
#include "waitgraph/auto_instances_server.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::ThreadKind;

TEST(AutoInstances, KernelThreadsIdleInTheirOwnFunction) {
  const std::string start = "[kernel]!ret_from_fork;[kernel]!kthread;[kernel]!worker_thread;";
  LoopTrace loop;
  for (const char* name : {"kworker/0:1", "kworker/1:2H"}) {
    loop.Thread(name, ThreadKind::kKernel);
    for (int i = 0; i < 10; ++i) {
      loop.Wait(name, 100, start + "[kernel]!schedule;[kernel]!__schedule", "[disk]");
      loop.Run(name, 5);
      loop.Wait(name, 20, start + "[kernel]!process_one_work;[kernel]!flush;[kernel]!io_schedule",
                "[disk]");
    }
  }
  AutoInstances found = Find(loop);
  ASSERT_EQ(found.roles.size(), 1U) << Roles(found);
  EXPECT_EQ(found.roles[0].scenario, "kworker: worker_thread");
  EXPECT_EQ(found.roles[0].threads, 2U);
  EXPECT_EQ(found.roles[0].instances, 20U);

  found = Find(loop, {.kernel_threads = false});
  EXPECT_TRUE(found.instances.empty());
  EXPECT_FALSE(found.reason.empty());
}

// Kernel frames alone: which of the program's loops it is cannot be told, so all
// waits that may be idle are.
TEST(AutoInstances, WithKernelFramesAloneAllIdleWaysAreIdle) {
  LoopTrace loop;
  for (int i = 0; i < 10; ++i) {
    loop.Wait("d/d", 100, "[kernel]!do_syscall_64;[kernel]!__x64_sys_poll;[kernel]!do_sys_poll");
    loop.Run("d/d", 5);
    loop.Wait("d/d", 30, "[kernel]!do_syscall_64;[kernel]!__x64_sys_fsync;[kernel]!io_schedule",
              "[disk]");
    loop.Run("d/d", 5);
    if (i % 2 == 0) {
      loop.Wait("d/d", 100,
                "[kernel]!do_syscall_64;[kernel]!__x64_sys_accept4;"
                "[kernel]!inet_csk_accept");
      loop.Run("d/d", 5);
    }
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.instances.size(), 15U) << Roles(found);
  EXPECT_EQ(found.idle_ns, 1500);
}

// A futex whose caller has no name may be a lock; it is idle if nothing better is.
TEST(AutoInstances, AFutexOfUnknownPurposeIsIdleOnlyIfNothingElseIs) {
  LoopTrace loop;
  const std::string futex = "app!+0x10;app!+0x20;[kernel]!do_futex;[kernel]!futex_wait";
  for (int i = 0; i < 10; ++i) {
    loop.Wait("app/worker", 100, futex, "app/main");
    loop.Run("app/worker", 5);
    loop.Wait("app/main", 100, "app!+0x10;app!+0x30;[kernel]!do_sys_poll");
    loop.Run("app/main", 5);
    loop.Wait("app/main", 20, futex, "app/worker");
    loop.Wait("app/main", 20, futex, "app/worker");
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.idle_ns, 2000) << Roles(found);
  EXPECT_EQ(found.instances.size(), 20U);
  EXPECT_TRUE(std::any_of(found.roles.begin(), found.roles.end(),
                          [](const Role& role) { return role.by_sync; }));
}

TEST(AutoInstances, WithoutStacksTheSystemCallsTell) {
  LoopTrace loop;
  loop.trace().metadata.arch = "x86_64";
  for (int i = 0; i < 10; ++i) {
    loop.Syscall(kServer, 120, 232);  // epoll_wait
    loop.Wait(kServer, 100, "", "client/main");
    loop.Run(kServer, 30);
    loop.Syscall(kServer, 25, 75);  // fdatasync
    loop.Wait(kServer, 20, "", "client/main");
    loop.Run(kServer, 10);
  }
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 10U) << Roles(found);
  EXPECT_EQ(found.roles[0].basis, RoleBasis::kSyscalls);
  EXPECT_EQ(found.roles[0].idle_frame, "[epoll_wait]");
  EXPECT_EQ(found.idle_ns, 1000);
}

TEST(AutoInstances, WithoutStacksTheWakersTell) {
  LoopTrace loop;
  for (int i = 0; i < 10; ++i) {
    loop.Wait(kServer, 100, "", "client/main");
    loop.Run(kServer, 5);
    loop.Wait(kServer, 20, "", "[disk]");
    loop.Run(kServer, 5);
  }
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 10U) << Roles(found);
  EXPECT_EQ(found.roles[0].basis, RoleBasis::kWakers);
  EXPECT_EQ(found.idle_ns, 1000);
}

TEST(AutoInstances, WithoutSwitchesThereAreNoneAndTheReasonIsSaid) {
  LoopTrace loop;
  loop.Run(kServer, 100, kWorkStack);
  loop.trace().metadata.has_switches = false;
  const AutoInstances found = Find(loop);
  EXPECT_TRUE(found.instances.empty());
  EXPECT_NE(found.reason.find("context switches"), std::string::npos);
  EXPECT_FALSE(Find(*std::make_unique<LoopTrace>()).reason.empty());
}

TEST(AutoInstances, TruncatedStacksAreJudgedByTheirEnd) {
  LoopTrace loop;
  Serve(loop, kServer, 10);
  for (int i = 0; i < 10; ++i) {
    loop.Wait(kServer, 100, "![truncated];server!next;libc.so.6!poll;[kernel]!do_sys_poll");
    loop.Run(kServer, 3);
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.instances.size(), 20U) << Roles(found);
  EXPECT_NE(RoleOf(found, "server: loop"), nullptr) << Roles(found);
}

// Half of the waits lost their stacks; the thread does nothing but idle.
TEST(AutoInstances, WaitsThatLostTheirStacksAreWhatTheOthersAre) {
  LoopTrace loop;
  for (int i = 0; i < 20; ++i) {
    loop.Wait(kServer, 100, i % 2 == 0 ? kPoll : "", "client/main");
    loop.Run(kServer, 5);
  }
  EXPECT_EQ(Find(loop).instances.size(), 20U);
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
