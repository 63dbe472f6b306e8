// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/instance_source.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "waitgraph/auto_instances_trace.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using Wanted = InstanceSourceOptions::Wanted;

const std::string kPoll = "app!main;app!loop;libc.so.6!poll;[kernel]!do_sys_poll";

// Five requests of 10 ns after polls of 100.
LoopTrace Server() {
  LoopTrace loop;
  for (int i = 0; i < 5; ++i) {
    loop.Wait("app/main", 100, kPoll);
    loop.Run("app/main", 10);
  }
  loop.Done();
  return loop;
}

void Mark(LoopTrace& loop, const char* scenario, trace::ThreadId thread, int64_t t0_ns,
          int64_t t1_ns) {
  trace::Trace& trace = loop.trace();
  trace.instances.push_back({trace.dictionary.Intern(scenario), thread, t0_ns, t1_ns});
}

TEST(InstanceSource, TheTracesOwnInstancesComeFirst) {
  LoopTrace loop = Server();
  const trace::ThreadId thread = loop.Thread("app/main");
  Mark(loop, "Late", thread, 220, 550);
  Mark(loop, "Early", thread, 0, 200);
  const Timelines timelines(loop.trace());
  const InstanceSource source = InstancesOf(timelines);
  EXPECT_EQ(source.origin, InstanceOrigin::kOwn);
  ASSERT_EQ(source.instances.size(), 2U);
  EXPECT_EQ(source.scenarios.at(source.instances[0].scenario.value), "Early");
  EXPECT_EQ(source.instance_ns, 530);
  EXPECT_EQ(source.idle_ns, 0);
}

TEST(InstanceSource, WithoutOwnOnesTheyAreFound) {
  LoopTrace loop = Server();
  const Timelines timelines(loop.trace());
  const InstanceSource source = InstancesOf(timelines);
  EXPECT_EQ(source.origin, InstanceOrigin::kAutomatic);
  EXPECT_EQ(source.instances.size(), 5U);
  EXPECT_EQ(source.instance_ns, 50);
  EXPECT_EQ(source.idle_ns, 500);
  EXPECT_EQ(source.roles.size(), 1U);
  EXPECT_TRUE(source.reason.empty());
}

TEST(InstanceSource, AskedForAutomaticOnesItLeavesTheOwnAside) {
  LoopTrace loop = Server();
  Mark(loop, "Whole", loop.Thread("app/main"), 0, 550);
  const Timelines timelines(loop.trace());
  EXPECT_EQ(InstancesOf(timelines, {.wanted = Wanted::kAutomatic}).instances.size(), 5U);
}

TEST(InstanceSource, AskedForOwnOnesItFindsNoOthers) {
  LoopTrace loop = Server();
  const Timelines timelines(loop.trace());
  const InstanceSource source = InstancesOf(timelines, {.wanted = Wanted::kOwn});
  EXPECT_EQ(source.origin, InstanceOrigin::kNone);
  EXPECT_FALSE(source.reason.empty());
}

TEST(InstanceSource, ScenariosCanBeChosen) {
  LoopTrace loop = Server();
  const trace::ThreadId thread = loop.Thread("app/main");
  Mark(loop, "Open", thread, 0, 100);
  Mark(loop, "OpenFolder", thread, 100, 200);
  Mark(loop, "Close", thread, 200, 300);
  const Timelines timelines(loop.trace());
  const InstanceSource some = InstancesOf(timelines, {.scenarios = {"Open*"}});
  EXPECT_EQ(some.instances.size(), 2U);
  EXPECT_EQ(some.not_wanted, 1U);
  const InstanceSource none = InstancesOf(timelines, {.scenarios = {"Print"}});
  EXPECT_TRUE(none.instances.empty());
  EXPECT_NE(none.reason.find("scenario"), std::string::npos);
}

TEST(InstanceSource, ImpossibleInstancesAreCountedAndOthersClipped) {
  LoopTrace loop = Server();
  const trace::ThreadId thread = loop.Thread("app/main");
  Mark(loop, "A", thread, -50, 60);
  Mark(loop, "B", thread, 500, 9000);
  Mark(loop, "C", thread, 300, 300);
  Mark(loop, "D", thread, 900, 1000);
  Mark(loop, "E", {}, 0, 100);
  const Timelines timelines(loop.trace());
  const InstanceSource source = InstancesOf(timelines);
  ASSERT_EQ(source.instances.size(), 2U);
  EXPECT_EQ(source.impossible, 3U);
  EXPECT_EQ(source.instances[0].t0_ns, 0);
  EXPECT_EQ(source.instances[1].t1_ns, 550);
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
