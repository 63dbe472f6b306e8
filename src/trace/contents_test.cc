// SPDX-License-Identifier: Apache-2.0
#include "trace/contents.h"

#include <gtest/gtest.h>

#include "trace/small_trace.h"

namespace culprit::trace::TEST_FILE {
namespace {

Contents ContentsOf(const SmallTrace& small) {
  Contents contents;
  for (const Event& event : small.trace.events) contents.Count(event);
  contents.instances = small.trace.instances.size();
  return contents;
}

std::string Possible(const Contents& contents) {
  std::string answer;
  for (const Capability& c : Capabilities(contents)) answer += c.possible ? 'y' : 'n';
  return answer;
}

TEST(Contents, CountsEventsTimeAndStacksByKind) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kWait, "a", 0, 30, "m!f");
  small.Add(EventKind::kWait, "a", 30, 40);
  const Contents c = ContentsOf(small);
  EXPECT_EQ(c.of(EventKind::kWait).events, 2u);
  EXPECT_EQ(c.of(EventKind::kWait).with_stack, 1u);
  EXPECT_EQ(c.of(EventKind::kWait).dur_ns, 40);
  EXPECT_EQ(c.of(EventKind::kRunning).events, 0u);
}

TEST(Contents, AnEmptyTraceAllowsNothingAndSaysWhy) {
  EXPECT_EQ(Possible({}), "nnnn");
  for (const Capability& c : Capabilities({})) EXPECT_FALSE(c.reason.empty());
}

TEST(Contents, WaitsNeedWakersAndStacks) {
  SmallTrace small(0, 100);
  Event& wait = small.Add(EventKind::kWait, "a", 0, 30, "m!f");
  EXPECT_EQ(Possible(ContentsOf(small)), "nnnn");
  wait.peer = ThreadId(0);
  EXPECT_EQ(Possible(ContentsOf(small)), "ynnn");
  small.trace.events.back().stack = {};
  EXPECT_EQ(Possible(ContentsOf(small)), "nnnn");
}

TEST(Contents, ContrastNeedsInstancesInferenceNeedsSyscalls) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kWait, "a", 0, 30, "m!f").peer = ThreadId(0);
  small.Add(EventKind::kSyscall, "a", 0, 30);
  small.Add(EventKind::kRunning, "a", 30, 40, "m!f");
  small.AddInstance("S", "a", 0, 10);
  EXPECT_EQ(Possible(ContentsOf(small)), "yyny");
  small.AddInstance("S", "a", 10, 20);
  EXPECT_EQ(Possible(ContentsOf(small)), "yyyy");
}

TEST(Contents, AddUp) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kWait, "a", 0, 30, "m!f").peer = ThreadId(0);
  small.AddInstance("S", "a", 0, 10);
  Contents sum = ContentsOf(small);
  sum.Add(ContentsOf(small));
  EXPECT_EQ(sum.of(EventKind::kWait).dur_ns, 60);
  EXPECT_EQ(sum.waits_with_waker, 2u);
  EXPECT_EQ(sum.instances, 2u);
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
