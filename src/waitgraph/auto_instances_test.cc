// SPDX-License-Identifier: Apache-2.0
//
// One fixture for each rule of SPEC §3; and what holds for every trace.
#include "waitgraph/auto_instances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "trace/random_trace.h"
#include "waitgraph/auto_instances_server.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::ThreadKind;

TEST(AutoInstances, SpansBetweenIdleWaitsAreTheInstances) {
  LoopTrace loop;
  Serve(loop, kServer, 10);
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 10U);
  EXPECT_EQ(found.instances[3].t0_ns, 3 * 136 + 100);
  EXPECT_EQ(found.instances[3].dur_ns(), 36);
  EXPECT_EQ(found.scenarios.at(found.instances[3].scenario.value), "server: loop");
  const Role* const role = RoleOf(found, "server: loop");
  ASSERT_NE(role, nullptr);
  EXPECT_EQ(role->loop_frame, "server!loop");
  EXPECT_EQ(role->idle_frame, "server!next");
  EXPECT_EQ(role->basis, RoleBasis::kStacks);
  EXPECT_EQ(role->idle_ns, 1000);
  EXPECT_EQ(role->instance_ns, 360);
}

// t0 is the wake-up, not the moment the thread got a CPU.
TEST(AutoInstances, TheReadyDelayAfterTheWakeUpCounts) {
  LoopTrace loop;
  for (int i = 0; i < 5; ++i) {
    loop.Wait(kServer, 100, kPoll);
    loop.Run(kServer, 30);
    loop.trace().events.back().kind = trace::EventKind::kReady;
    loop.Run(kServer, 7);
    loop.Wait(kServer, 20, kMutex);
  }
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 5U);
  EXPECT_EQ(found.instances[0].t0_ns, 100);
  EXPECT_EQ(found.instances[0].dur_ns(), 57);
}

// Rule 1: what happens now and then outside the loop does not hide it.
TEST(AutoInstances, RareWaitsOutsideTheLoopDoNotHideIt) {
  LoopTrace loop;
  loop.Wait(kServer, 10, "server!main;server!init;server!load;[kernel]!io_schedule");
  loop.Wait(kServer, 10, "server!main;server!init;server!load;[kernel]!io_schedule");
  Serve(loop, kServer, 50);
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.instances.size(), 51U) << Roles(found);
  EXPECT_NE(RoleOf(found, "server: loop"), nullptr) << Roles(found);
}

// Rule 1: a loop that polls on one line and works on another is one function.
TEST(AutoInstances, LinesOfTheLoopAreOneFrame) {
  LoopTrace loop;
  trace::Dictionary& dictionary = loop.trace().dictionary;
  const auto stack = [&](uint32_t line, std::string_view below) {
    const trace::FrameId main = dictionary.InternFrame("server", "main");
    trace::Frame frame = dictionary.frames()[dictionary.InternFrame("server", "loop").value];
    frame.line = line;
    const trace::FrameId own = dictionary.InternFrame(frame);
    return dictionary.InternStack({main, own, dictionary.InternFrame("[kernel]", below)});
  };
  const trace::StackId poll = stack(10, "do_sys_poll");
  const trace::StackId disk = stack(20, "io_schedule");
  for (int i = 0; i < 10; ++i) {
    loop.Wait(kServer, 100, "");
    loop.trace().events.back().stack = poll;
    loop.Run(kServer, 5);
    loop.Wait(kServer, 50, "");
    loop.trace().events.back().stack = disk;
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.instances.size(), 10U) << Roles(found);
  EXPECT_NE(RoleOf(found, "server: loop"), nullptr) << Roles(found);
}

// Rule 2 and 4: a lock wait can be shallower than the poll, and the poll deeper
// than anything; only the kind of wait counts.
TEST(AutoInstances, ALockWaitShallowerThanThePollIsNotIdle) {
  const std::string shallow =
      "server!main;server!loop;libc.so.6!pthread_mutex_lock;"
      "[kernel]!futex_wait";
  const std::string deep =
      "server!main;server!loop;a!a;a!b;a!c;a!d;a!e;libc.so.6!epoll_wait;"
      "[kernel]!ep_poll";
  LoopTrace loop;
  for (int i = 0; i < 10; ++i) {
    loop.Wait(kServer, 100, deep);
    for (int j = 0; j < 5; ++j) {
      loop.Wait(kServer, 20, shallow, "server/other");
      loop.Run(kServer, 3);
    }
  }
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 10U) << Roles(found);
  EXPECT_EQ(found.idle_ns, 1000);
  EXPECT_EQ(found.roles[0].idle_frame, "a!a");
}

// Rule 3: the client waits for a reply; it does other things outside.
TEST(AutoInstances, AClientThatSendsAndThenWaitsIsNotIdle) {
  LoopTrace loop;
  for (int i = 0; i < 20; ++i) {
    loop.Run("client/main", 10, "client!main;client!run;client!prepare");
    loop.Wake("client/main", kServer, "client!main;client!run;client!query;libc.so.6!send");
    loop.Run("client/main", 1, "client!main;client!run;client!query;libc.so.6!send");
    loop.Wait("client/main", 50,
              "client!main;client!run;client!query;libc.so.6!recv;[kernel]!tcp_recvmsg", kServer);
    loop.Run("client/main", 10, "client!main;client!run;client!check");
  }
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 1U) << Roles(found);
  EXPECT_EQ(found.instances[0].dur_ns(), 20 * 71);
  EXPECT_EQ(found.idle_ns, 0);
}

// Rule 3: the same code with another loop beside it, so that waits alone show it.
TEST(AutoInstances, ABranchThatSendsIsPassedOverForOneThatDoesNot) {
  LoopTrace loop;
  for (int i = 0; i < 20; ++i) {
    loop.Wait("app/main", 30, "app!main;app!run;app!next;libc.so.6!poll;[kernel]!do_sys_poll");
    for (int j = 0; j < 3; ++j) {
      loop.Wake("app/main", kServer, "app!main;app!run;app!query;libc.so.6!send");
      loop.Wait("app/main", 50, "app!main;app!run;app!query;libc.so.6!recv;[kernel]!tcp_recvmsg",
                kServer);
      loop.Run("app/main", 1);
    }
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.instances.size(), 20U) << Roles(found);
  EXPECT_EQ(found.idle_ns, 600);
}

// Rule 3: receiving frees the sender's buffer, a condition wait releases its
// mutex: neither is a request.
TEST(AutoInstances, WakeUpsFromInsideTheWaitingCallAreNoRequests) {
  const std::string wait = "app!main;app!work;app!take;libc.so.6!pthread_cond_wait";
  LoopTrace loop;
  for (int i = 0; i < 20; ++i) {
    loop.Wake("app/worker", "app/main",
              wait + ";libc.so.6!__pthread_mutex_unlock;[kernel]!do_futex");
    loop.Wait("app/worker", 50, wait + ";[kernel]!do_futex;[kernel]!futex_wait", "app/main");
    loop.Run("app/worker", 5, "app!main;app!work;app!job");
  }
  EXPECT_EQ(Find(loop).instances.size(), 20U);
}

// Rule 3: many workers take their jobs from one queue. Whoever has taken one lets the next
// one in, and now and then waits to be let in.
TEST(AutoInstances, ToReleaseALockIsNoRequest) {
  const std::string take = "app!main;app!work;app!take;";
  LoopTrace loop;
  for (int i = 0; i < 40; ++i) {
    loop.Wait("app/worker", 50, take + "libc.so.6!pthread_cond_wait;[kernel]!futex_wait",
              "app/main");
    if (i % 20 == 0) {
      loop.Wait("app/worker", 2, take + "libc.so.6!pthread_mutex_lock;[kernel]!futex_wait",
                "app/main");
    }
    loop.Wake("app/worker", "app/main",
              take + "libc.so.6!__pthread_mutex_unlock_usercnt;[kernel]!futex_wake");
    loop.Run("app/worker", 5, "app!main;app!work;app!job");
    loop.Wait("app/worker", 3, "app!main;app!work;app!job;[kernel]!io_schedule", "[disk]");
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.instances.size(), 40U) << Roles(found);
  EXPECT_EQ(found.idle_ns, 40 * 50);
}

// Rule 3: the mutex of the condition does not count against it, and is no
// idleness either: the work was there already.
TEST(AutoInstances, ReacquiringTheMutexOfAConditionIsPartOfTheInstance) {
  const std::string wait = "app!main;app!work;app!take;libc.so.6!pthread_cond_wait";
  LoopTrace loop;
  for (int i = 0; i < 20; ++i) {
    loop.Wait("app/worker", 50, wait + ";[kernel]!futex_wait", "app/main");
    loop.Wait("app/worker", 7, wait + ";libc.so.6!__pthread_mutex_cond_lock;[kernel]!futex_wait",
              "app/main");
    loop.Run("app/worker", 5, "app!main;app!work;app!job");
    loop.Wait("app/worker", 3, "app!main;app!work;app!job;[kernel]!io_schedule", "[disk]");
  }
  const AutoInstances found = Find(loop);
  ASSERT_EQ(found.instances.size(), 20U) << Roles(found);
  EXPECT_EQ(found.instances[0].dur_ns(), 15);
  EXPECT_EQ(found.idle_ns, 1000);
}

// Rule 4.
TEST(AutoInstances, OfSeveralIdleBranchesTheOneWithMostWaitsWins) {
  LoopTrace loop;
  for (int i = 0; i < 30; ++i) {
    loop.Wait(kServer, 100, kPoll);
    loop.Run(kServer, 5);
    if (i % 3 == 0) {
      loop.Wait(kServer, 1000, "server!main;server!loop;server!back_off;[kernel]!do_nanosleep",
                "[timer]");
    }
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.instances.size(), 30U) << Roles(found);
  EXPECT_EQ(found.idle_ns, 3000);
}

// Rule 5: between connections a thread waits in a cache, above its loop.
TEST(AutoInstances, IdleWaitsThatLeaveAboveTheLoopAreIdleToo) {
  const std::string cache =
      "server!main;server!cache;libc.so.6!pthread_cond_wait;"
      "[kernel]!futex_wait";
  LoopTrace loop;
  for (int connection = 0; connection < 3; ++connection) {
    loop.Wait(kServer, 5000, cache, "server/listener");
    loop.Run(kServer, 2);
    Serve(loop, kServer, 40);
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.roles[0].loop_frame, "server!loop") << Roles(found);
  EXPECT_EQ(found.idle_ns, 3 * 5000 + 120 * 100);
  EXPECT_EQ(found.instances.size(), 123U);
}

// Rule 5 needs the rest of rule 3: a connect with its handshake is no idleness.
TEST(AutoInstances, WorkThatLeavesAboveTheLoopIsNotIdle) {
  const std::string connect = "server!main;server!connect;libc.so.6!";
  LoopTrace loop;
  for (int i = 0; i < 2; ++i) {
    loop.Wake(kServer, "dns/main", connect + "send");
    loop.Wait(kServer, 500, connect + "poll;[kernel]!do_sys_poll", "dns/main");
  }
  Serve(loop, kServer, 50);
  EXPECT_EQ(Find(loop).idle_ns, 50 * 100);
}

// Rule 6: a thread seen idle once, and one never seen idle, are cut like the
// others of their role.
TEST(AutoInstances, ThreadsOfOneRoleShareTheirIdleStacks) {
  LoopTrace loop;
  Serve(loop, "server/w1", 50);
  loop.Wait("server/w2", 100, kPoll);
  loop.Run("server/w2", 5);
  loop.Wait("server/w2", 6000, kMutex, "server/w1");
  loop.Run("server/w2", 2);
  for (int i = 0; i < 9; ++i) {
    loop.Wait("server/w3", 600, kMutex, "server/w1");
    loop.Run("server/w3", 2);
  }
  const AutoInstances found = Find(loop);
  const Role* const role = RoleOf(found, "server: loop");
  ASSERT_NE(role, nullptr) << Roles(found);
  EXPECT_EQ(role->threads, 3U);
  EXPECT_EQ(role->instances, 52U);
  EXPECT_EQ(role->idle_ns, 51 * 100);
}

// Rule 6, the trap of the convoy: a thread that shows only waits in a lock made
// of condition waits is of the role of those that also show their idle wait.
TEST(AutoInstances, AThreadSeenOnlyInALockMadeOfPollsIsNotCalledIdle) {
  const std::string latch = "pg!main;pg!Main;pg!Commit;pg!Lock;pg!Latch;[kernel]!do_epoll_wait";
  const std::string read = "pg!main;pg!Main;pg!getbyte;pg!Latch;[kernel]!do_epoll_wait";
  LoopTrace loop;
  for (int i = 0; i < 20; ++i) {
    loop.Wait("pg/a", 10, read, "client/main");
    loop.Wait("pg/a", 300, latch, "pg/b");
    loop.Run("pg/a", 4);
    loop.Wake("pg/a", "pg/b", "pg!main;pg!Main;pg!Commit;pg!Release;[kernel]!do_send_sig_info");
    loop.Wait("pg/b", 320, latch, "pg/a");
    loop.Run("pg/b", 4);
  }
  const AutoInstances found = Find(loop);
  const Role* const role = RoleOf(found, "pg: Main");
  ASSERT_NE(role, nullptr) << Roles(found);
  EXPECT_EQ(role->threads, 2U);
  EXPECT_EQ(role->idle_ns, 200);
  EXPECT_EQ(role->instance_ns, 20 * 304 + 20 * 324);
}

// One request waits for many locks, or for many replies; all from one place.
TEST(AutoInstances, TheIdleWaitIsFoundAboveAConvoy) {
  const std::string latch = "pg!main;pg!Main;pg!Commit;pg!Lock;pg!Latch;[kernel]!do_epoll_wait";
  const std::string read = "pg!main;pg!Main;pg!getbyte;pg!Latch;[kernel]!do_epoll_wait";
  LoopTrace loop;
  for (int i = 0; i < 10; ++i) {
    loop.Wait("pg/a", 10, read, "client/main");
    for (int j = 0; j < 40; ++j) {
      loop.Wait("pg/a", 300, latch, "pg/b");
      loop.Run("pg/a", 4);
      loop.Wake("pg/a", "pg/b", "pg!main;pg!Main;pg!Commit;pg!Release;[kernel]!do_send_sig_info");
    }
  }
  const AutoInstances found = Find(loop);
  EXPECT_EQ(found.instances.size(), 10U) << Roles(found);
  EXPECT_EQ(found.idle_ns, 100);
}

TEST(AutoInstances, FlagsOverrideTheRules) {
  LoopTrace loop;
  Serve(loop, kServer, 10);
  EXPECT_EQ(Find(loop, {.idle = {"pthread_mutex_lock"}}).instances.size(), 20U);
  const AutoInstances found = Find(loop, {.not_idle = {"server!next"}});
  EXPECT_EQ(found.instances.size(), 1U) << Roles(found);
  EXPECT_EQ(found.idle_ns, 0);
}

TEST(AutoInstances, HandlersThatExcludeOneAnotherNameTheScenarios) {
  LoopTrace loop;
  for (int i = 0; i < 60; ++i) {
    loop.Wait(kServer, 100, kPoll);
    const std::string handler =
        "server!main;server!loop;server!dispatch;server!" + std::string(i % 3 == 0 ? "put" : "get");
    loop.Run(kServer, 5, handler + ";server!parse");
    loop.Run(kServer, 5, handler + ";server!answer");
    loop.Wait(kServer, 5, handler + ";[kernel]!io_schedule", "[disk]");
  }
  const AutoInstances found = Find(loop);
  const std::vector<std::string> expected = {"server: loop > put", "server: loop > get"};
  EXPECT_EQ(found.scenarios, expected);
}

TEST(AutoInstances, StepsOfEveryRequestDoNotNameScenarios) {
  LoopTrace loop;
  for (int i = 0; i < 60; ++i) {
    loop.Wait(kServer, 100, kPoll);
    loop.Run(kServer, 5, "server!main;server!loop;server!parse");
    loop.Run(kServer, 5, "server!main;server!loop;server!answer");
    loop.Wait(kServer, 5, "server!main;server!loop;server!answer;[kernel]!io_schedule", "[disk]");
  }
  EXPECT_EQ(Find(loop).scenarios, std::vector<std::string>{"server: loop"});
}

// From each thread's first tile to its last, within the recording.
int64_t ThreadTime(const Timelines& timelines) {
  const trace::Trace& trace = timelines.trace();
  int64_t total = 0;
  for (size_t i = 0; i < trace.dictionary.threads().size(); ++i) {
    const ThreadKind kind = trace.dictionary.threads()[i].kind;
    if (kind != ThreadKind::kUser && kind != ThreadKind::kKernel) continue;
    int64_t begin = INT64_MAX;
    int64_t end = INT64_MIN;
    const std::span<const EventIndex> tiles = timelines.tiles(trace::ThreadId(i));
    for (size_t position = 0; position < tiles.size(); ++position) {
      begin = std::min(begin, timelines.event(tiles[position]).time_ns);
      end = std::max(end, timelines.TileEnd(trace::ThreadId(i), position));
    }
    begin = std::clamp(begin, trace.metadata.begin_ns, trace.metadata.end_ns);
    end = std::clamp(end, trace.metadata.begin_ns, trace.metadata.end_ns);
    if (begin < end) total += end - begin;
  }
  return total;
}

// Any trace, however odd: time is conserved and instances of a thread do not
// overlap.
TEST(AutoInstances, TimeIsConservedInAnyTrace) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    trace::Trace trace =
        trace::RandomTrace({.seed = seed, .events = 400, .threads = 6, .wild = seed % 4 == 0});
    trace.metadata.has_switches = true;
    const Timelines timelines(trace);
    const AutoInstances found = FindInstances(timelines);
    int64_t total = found.idle_ns + found.left_out_ns;
    std::vector<int64_t> ends(trace.dictionary.threads().size(), INT64_MIN);
    for (const trace::Instance& instance : found.instances) {
      total += instance.dur_ns();
      EXPECT_GT(instance.dur_ns(), 0);
      EXPECT_GE(instance.t0_ns, ends[instance.thread.value]);
      ends[instance.thread.value] = instance.t1_ns;
      EXPECT_LT(instance.scenario.value, found.scenarios.size());
    }
    EXPECT_EQ(total, ThreadTime(timelines)) << seed;
  }
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
