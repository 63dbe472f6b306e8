// SPDX-License-Identifier: Apache-2.0
#include "causality/impact.h"

#include <gtest/gtest.h>

#include <optional>

#include "causality/convoy.h"
#include "causality/extract.h"

namespace culprit::causality::TEST_FILE {
namespace {

using trace::EventKind;
using trace::SmallTrace;

ExtractOptions Component(std::vector<std::string> globs, By by = By::kModule) {
  ExtractOptions options;
  options.component = {.by = by, .globs = std::move(globs)};
  return options;
}

// Two users wait for one server, who waits in db for another thread.
trace::Trace TwoUsers(int64_t server_ns = 80) {
  SmallTrace t(0, 200);
  t.Add(EventKind::kWait, "server", 10, 10 + server_ns, "srv!Loop;db!Read").peer =
      t.Thread("store");
  t.Add(EventKind::kUnwait, "store", 10 + server_ns, 10 + server_ns, "store!Reply").peer =
      t.Thread("server");
  t.Add(EventKind::kRunning, "store", 0, 10 + server_ns, "store!Seek;db!Scan");
  t.Add(EventKind::kRunning, "server", 10 + server_ns, 95, "srv!Loop");
  for (const char* user : {"user0", "user1"}) {
    t.Add(EventKind::kRunning, user, 0, 5, "app!Main");
    t.Add(EventKind::kWait, user, 5, 95, "app!Call;rpc!Wait").peer = t.Thread("server");
    t.Add(EventKind::kUnwait, "server", 95, 95, "srv!Reply").peer = t.Thread(user);
    t.Add(EventKind::kRunning, user, 95, 100, "app!Main");
    t.AddInstance("Ask", user, 0, 100);
  }
  trace::SortByTime(t.trace.events);
  return std::move(t.trace);
}

TEST(Impact, AWaitThatDelaysTwoInstancesCountsTwiceAndIsOneDistinctWait) {
  const Evidence evidence = ExtractTrace(TwoUsers(), "t", Component({"db!*"}));
  const ImpactResult result = MeasureImpact(evidence);
  EXPECT_EQ(result.whole.d_scn_ns, 200);
  EXPECT_EQ(result.whole.d_wait_ns, 160);
  EXPECT_EQ(result.whole.d_waitdist_ns, 80);
  EXPECT_EQ(result.whole.d_run_ns, 180);
  EXPECT_DOUBLE_EQ(result.whole.ia_wait, 0.8);
  EXPECT_DOUBLE_EQ(result.whole.ia_run, 0.9);
  EXPECT_DOUBLE_EQ(result.whole.ia_opt, 0.4);
  EXPECT_DOUBLE_EQ(result.whole.propagation, 2);
  EXPECT_EQ(result.whole.waits, 2U);
  EXPECT_EQ(result.whole.distinct_waits, 1U);
  EXPECT_EQ(result.whole.affected_instances, 2U);
  ASSERT_EQ(result.propagated.size(), 1U);
  EXPECT_EQ(result.propagated[0].instances, 2U);
  EXPECT_EQ(result.propagated[0].charged_ns, 160);
  EXPECT_EQ(result.propagated[0].distinct_ns, 80);
  EXPECT_EQ(result.propagated[0].signature, "db!Read");
  EXPECT_EQ(result.propagated[0].instance_indexes, (std::vector<uint32_t>{0, 1}));
}

TEST(Impact, WhatLiesUnderACountedWaitIsNotCountedAgain) {
  const Evidence evidence = ExtractTrace(TwoUsers(), "t", Component({"db", "rpc"}));
  const ImpactResult result = MeasureImpact(evidence);
  // The users' own waits are of the set, so the server's below them is not counted
  // for it; for db alone it is.
  EXPECT_EQ(result.whole.d_wait_ns, 180);
  EXPECT_EQ(result.whole.d_waitdist_ns, 180);
  ASSERT_EQ(result.components.size(), 2U);
  EXPECT_EQ(result.components[0].component, "db");
  EXPECT_EQ(result.components[0].d_wait_ns, 160);
  EXPECT_EQ(result.components[1].component, "rpc");
  EXPECT_EQ(result.components[1].d_wait_ns, 180);
  ASSERT_EQ(result.scenarios.size(), 1U);
  EXPECT_EQ(result.scenarios[0].scenario, "Ask");
  EXPECT_EQ(result.cells.size(), 2U);
}

TEST(Impact, ProcessesAndCgroupsAreComponentsToo) {
  trace::Trace trace = TwoUsers();
  trace::Dictionary& d = trace.dictionary;
  const trace::ProcessId process =
      d.AddProcess({.pid = 7, .name = d.Intern("dbserver"), .cgroup = d.Intern("/system/db")});
  for (size_t i = 0; i < d.threads().size(); ++i) {
    const std::string_view name = d.Text(d.threads()[i].name);
    if (name == "server" || name == "store") d.thread(trace::ThreadId(i)).process = process;
  }
  const ImpactResult by_process =
      MeasureImpact(ExtractTrace(trace, "t", Component({"db*"}, By::kProcess)));
  EXPECT_EQ(by_process.whole.d_wait_ns, 160);
  ASSERT_EQ(by_process.components.size(), 1U);
  EXPECT_EQ(by_process.components[0].component, "dbserver");
  const ImpactResult by_cgroup =
      MeasureImpact(ExtractTrace(trace, "t", Component({"/system/*"}, By::kCgroup)));
  EXPECT_EQ(by_cgroup.whole.d_wait_ns, 160);
  const Evidence none = ExtractTrace(trace, "t", Component({"nobody"}, By::kProcess));
  EXPECT_EQ(MeasureImpact(none).whole.d_wait_ns, 0);
  EXPECT_NE(std::find(none.not_chosen.begin(), none.not_chosen.end(), "dbserver"),
            none.not_chosen.end());
}

TEST(Impact, ExceptedFramesDoNotBelong) {
  ExtractOptions options = Component({"db", "rpc"});
  options.component.except = {"rpc!W*"};
  const ImpactResult result = MeasureImpact(ExtractTrace(TwoUsers(), "t", options));
  EXPECT_EQ(result.whole.d_wait_ns, 160);
  ASSERT_EQ(result.components.size(), 1U);
}

TEST(Impact, PartsOfOneWaitClippedByTwoInstancesAreUnited) {
  SmallTrace t(0, 100);
  t.Add(EventKind::kWait, "main", 0, 100, "m!Wait");
  t.AddInstance("A", "main", 0, 60);
  t.AddInstance("B", "main", 40, 100);
  const ImpactResult result = MeasureImpact(ExtractTrace(t.trace, "t", Component({"m"})));
  EXPECT_EQ(result.whole.d_wait_ns, 120);
  EXPECT_EQ(result.whole.d_waitdist_ns, 100);
  for (const ImpactRow& row : result.scenarios) EXPECT_EQ(row.d_waitdist_ns, 60);
}

TEST(Impact, IntervalsHoldTheEstimateAndCloseWhenTracesAreAlike) {
  Evidence alike;
  Evidence unlike;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "t" + std::to_string(i);
    AddEvidence(ExtractTrace(TwoUsers(), name, Component({"db"})), alike);
    AddEvidence(ExtractTrace(TwoUsers(10 + 2 * i), name, Component({"db"})), unlike);
  }
  const ImpactResult same = MeasureImpact(alike);
  ASSERT_TRUE(same.whole.ia_wait_interval.has_value());
  EXPECT_DOUBLE_EQ(same.whole.ia_wait_interval->low, 0.8);
  EXPECT_DOUBLE_EQ(same.whole.ia_wait_interval->high, 0.8);
  const ImpactResult wide = MeasureImpact(unlike);
  const Interval interval = wide.components.at(0).ia_wait_interval.value();
  EXPECT_LT(interval.low, wide.components[0].ia_wait);
  EXPECT_GT(interval.high, wide.components[0].ia_wait);
  // Of 30 means around 39 with a deviation of 17.3 / √30 = 3.2: 95 % within 6.3.
  EXPECT_NEAR(interval.high - interval.low, 2 * 0.063, 0.02);
  EXPECT_EQ(wide.resamples, 1000U);
}

TEST(Impact, InstancesThatCannotBeAreCountedAndLeftOut) {
  trace::Trace trace = TwoUsers();
  trace.instances.push_back(trace.instances[0]);
  trace.instances.back().thread = trace::ThreadId(999);
  trace.instances.push_back(trace.instances[0]);
  trace.instances.back().t1_ns = -5;
  const Evidence evidence = ExtractTrace(trace, "t", Component({"db"}));
  EXPECT_EQ(evidence.instances.size(), 2U);
  EXPECT_EQ(evidence.diagnostics.total(), 2U);
}

TEST(Impact, AConvoyOfAThousandThreadsIsTheFirstOnesReadAThousandTimes) {
  constexpr int64_t kThreads = 1000;
  const trace::Trace trace = LockConvoy(kThreads);
  const Evidence evidence = ExtractTrace(trace, "t", Component({"db!Flush"}));
  const ImpactResult result = MeasureImpact(evidence);
  const int64_t read_ns = kThreads + kConvoyRead - 1;
  EXPECT_EQ(result.whole.d_wait_ns, kThreads * read_ns);
  EXPECT_EQ(result.whole.d_waitdist_ns, read_ns);
  EXPECT_EQ(result.propagated.at(0).instances, static_cast<uint64_t>(kThreads));
  EXPECT_EQ(result.propagated[0].instance_indexes.size(), kMaxNamedInstances);
}

TEST(Chains, OfAConvoyGrowWithItsNodesAndReachItsCause) {
  constexpr int64_t kThreads = 1000;
  const trace::Trace trace = LockConvoy(kThreads);
  const Evidence evidence = ExtractTrace(trace, "t", Component({"db"}));
  EXPECT_EQ(evidence.account.truncated_instances, 0U);
  EXPECT_LT(evidence.account.chain_events, evidence.account.nodes * 2);
  // Depth 1 to 1,000, each with its leaves.
  EXPECT_LT(evidence.forest.nodes().size(), 5000U);
  std::optional<ChainRow> deepest;
  for (uint64_t r = evidence.rows_begin(kThreads - 1); r < evidence.rows.size(); ++r) {
    const ChainNode& node = evidence.forest.nodes()[evidence.rows[r].node];
    if (node.kind == ChainKind::kHardware) deepest = evidence.rows[r];
  }
  ASSERT_TRUE(deepest.has_value());
  EXPECT_EQ(deepest->cost_ns, kThreads + kConvoyRead - 1);
}

TEST(Chains, OfAnInstanceWithTwoHundredMillionEdgesArePlacedOnce) {
  constexpr int64_t kHelpers = 20'000;
  const trace::Trace trace = SharedHolder(kHelpers);
  const Evidence evidence = ExtractTrace(trace, "t", Component({"db"}));
  EXPECT_LT(evidence.account.chain_events, evidence.account.nodes * 2);
  const ImpactResult result = MeasureImpact(evidence);
  EXPECT_EQ(result.whole.waits, static_cast<uint64_t>(kHelpers));
  int64_t waited_ns = 0;
  for (int64_t i = 0; i < kHelpers; ++i) waited_ns += i * 4 + 2;
  EXPECT_EQ(result.whole.d_wait_ns, waited_ns);
  EXPECT_EQ(result.whole.d_run_ns, kHelpers * 2);
}

TEST(Chains, AreCutWhereTheyAreMoreThanAllowedAndCounted) {
  ExtractOptions options = Component({"db"});
  options.max_chain_events = 100;
  const Evidence evidence = ExtractTrace(LockConvoy(300), "t", options);
  EXPECT_GT(evidence.account.truncated_instances, 200U);
  EXPECT_LT(evidence.account.truncated_instances, 300U);
  uint64_t truncated = 0;
  for (const InstanceFacts& facts : evidence.instances) truncated += facts.truncated ? 1 : 0;
  EXPECT_EQ(truncated, evidence.account.truncated_instances);
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
