// SPDX-License-Identifier: Apache-2.0
#include "stackmine/gather.h"

#include <gtest/gtest.h>

#include <string>

#include "base/test_folder.h"
#include "trace/small_trace.h"
#include "trace/trace_writer.h"

namespace culprit::stackmine::TEST_FILE {
namespace {

std::string OneWait() {
  trace::SmallTrace small(0, 1000);
  small.Add(trace::EventKind::kWait, "a", 100, 400, "app!main;kernel!lock").peer =
      small.Thread("b");
  small.AddInstance("Open", "a", 0, 500);
  return trace::EncodeTrace(small.trace);
}

Evidence Gather(const std::string& path, const GatherOptions& options = {}) {
  Progress progress;
  auto evidence = GatherEvidence(path, options, progress);
  EXPECT_TRUE(evidence.ok());
  return evidence.ok() ? std::move(evidence).value() : Evidence();
}

TEST(GatherEvidence, ReadsATrace) {
  const TestFolder folder;
  const Evidence evidence = Gather(folder.Write("whole.ctrace", OneWait()));
  EXPECT_EQ(evidence.traces.size(), 1u);
  EXPECT_EQ(evidence.instances.size(), 1u);
  EXPECT_TRUE(evidence.unreadable.empty());
}

TEST(GatherEvidence, ASumOfWaitsIsAsManyEvents) {
  const TestFolder folder;
  trace::SmallTrace small(0, 1000);
  small.Add(trace::EventKind::kWait, "a", 100, 400, "app!main;kernel!lock").arg0 = 30;
  small.Add(trace::EventKind::kWait, "a", 400, 500, "app!main;kernel!lock");
  small.AddInstance("Open", "a", 0, 500);
  const Evidence evidence = Gather(folder.Write("sums.ctrace", trace::EncodeTrace(small.trace)));
  EXPECT_EQ(evidence.account.summed_wait_ns, 300);
  ASSERT_EQ(evidence.rows.size(), 1u);
  EXPECT_EQ(evidence.rows[0].events, 31u);
  EXPECT_EQ(evidence.rows[0].cost_ns, 400);
}

TEST(GatherEvidence, ATraceCutBeforeItsFirstEventIsNotRead) {
  const TestFolder folder;
  const std::string whole = OneWait();
  const Evidence evidence = Gather(folder.Write("cut.ctrace", whole.substr(0, 24)));
  EXPECT_TRUE(evidence.traces.empty());
  ASSERT_EQ(evidence.unreadable.size(), 1u);
  EXPECT_NE(evidence.unreadable[0].find("not one event could be read"), std::string::npos);
}

TEST(GatherEvidence, AnEmptyTraceIsRead) {
  const TestFolder folder;
  const std::string bytes = trace::EncodeTrace(trace::SmallTrace(0, 1000).trace);
  const Evidence evidence = Gather(folder.Write("empty.ctrace", bytes));
  EXPECT_EQ(evidence.traces.size(), 1u);
  EXPECT_TRUE(evidence.unreadable.empty());
}

TEST(GatherEvidence, ATraceOverTheMemoryAllowedIsNamed) {
  const TestFolder folder;
  const Evidence evidence = Gather(folder.Write("whole.ctrace", OneWait()),
                                   {.reduce = {}, .max_memory_bytes = 100, .jobs = 1});
  EXPECT_TRUE(evidence.traces.empty());
  ASSERT_EQ(evidence.unreadable.size(), 1u);
  EXPECT_NE(evidence.unreadable[0].find("allowed are 100 B"), std::string::npos);
}

TEST(GatherEvidence, WhatIsNoTraceIsAnError) {
  const TestFolder folder;
  Progress progress;
  EXPECT_FALSE(GatherEvidence(folder.Write("junk", "junk"), {}, progress).ok());
  EXPECT_FALSE(GatherEvidence(folder / "missing", {}, progress).ok());
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
