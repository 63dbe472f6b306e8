// SPDX-License-Identifier: Apache-2.0
#include "causality/diff.h"

#include <gtest/gtest.h>

#include <map>

#include "causality/extract.h"
#include "trace/small_trace.h"

namespace culprit::causality::TEST_FILE {
namespace {

using trace::EventKind;
using trace::SmallTrace;
using Names = std::vector<std::string>;

struct Step {
  std::string lock;  // where the thread waits
  int64_t dur_ns = 0;
};

// One instance that waits at each lock in turn for a thread that works meanwhile.
trace::Trace Waiting(const std::vector<Step>& steps) {
  int64_t end_ns = 10;
  for (const Step& step : steps) end_ns += step.dur_ns;
  SmallTrace t(0, end_ns);
  t.Add(EventKind::kRunning, "main", 0, 10, "app!Main");
  int64_t now_ns = 10;
  for (const Step& step : steps) {
    const int64_t until_ns = now_ns + step.dur_ns;
    t.Add(EventKind::kWait, "main", now_ns, until_ns, "app!Main;m.sys!" + step.lock).peer =
        t.Thread(step.lock);
    t.Add(EventKind::kUnwait, step.lock, until_ns, until_ns, "m.sys!Release").peer =
        t.Thread("main");
    t.Add(EventKind::kRunning, step.lock, now_ns, until_ns, "m.sys!Work" + step.lock);
    now_ns = until_ns;
  }
  t.AddInstance("Open", "main", 0, end_ns);
  trace::SortByTime(t.trace.events);
  return std::move(t.trace);
}

Evidence Side(const std::vector<std::vector<Step>>& traces, const std::string& prefix = "t") {
  ExtractOptions options;
  options.component.globs = {"*.sys"};
  Evidence sum;
  for (size_t i = 0; i < traces.size(); ++i) {
    AddEvidence(ExtractTrace(Waiting(traces[i]), prefix + std::to_string(i), options), sum);
  }
  return sum;
}

std::vector<std::vector<Step>> Times(size_t count, const std::vector<Step>& steps) {
  std::vector<std::vector<Step>> traces;
  for (size_t i = 0; i < count; ++i) {
    traces.push_back(steps);
    for (Step& step : traces.back()) step.dur_ns += static_cast<int64_t>(i % 4);
  }
  return traces;
}

std::map<std::string, const ChainChange*> ByLock(const ScenarioDiff& diff) {
  std::map<std::string, const ChainChange*> changes;
  for (const ChainChange& change : diff.changes) {
    changes[change.tuple.wait.at(0).substr(6)] = &change;
  }
  return changes;
}

TEST(Diff, TellsWhatAppearedGrewShrankVanishedAndStayed) {
  const Evidence before =
      Side(Times(20, {{"Same", 500}, {"Grows", 300}, {"Shrinks", 800}, {"Goes", 200}}));
  const Evidence after =
      Side(Times(24, {{"Same", 500}, {"Grows", 900}, {"Shrinks", 100}, {"Comes", 400}}));
  const auto result = FindDifferences(before, after);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result.value().scenarios.size(), 1U);
  const ScenarioDiff& diff = result.value().scenarios[0];
  EXPECT_EQ(diff.before.count, 20U);
  EXPECT_EQ(diff.after.count, 24U);
  const auto changes = ByLock(diff);
  ASSERT_EQ(changes.size(), 4U);
  EXPECT_EQ(diff.same, 1U);
  EXPECT_EQ(changes.at("Grows")->change, Change::kGrew);
  EXPECT_EQ(changes.at("Shrinks")->change, Change::kShrank);
  EXPECT_EQ(changes.at("Goes")->change, Change::kVanished);
  EXPECT_EQ(changes.at("Comes")->change, Change::kAppeared);
  EXPECT_EQ(changes.at("Comes")->before.count, 0U);
  EXPECT_EQ(changes.at("Comes")->after.per_instance_ns, 401);
  EXPECT_EQ(changes.at("Comes")->tuple.running, Names{"m.sys!WorkComes"});
  EXPECT_EQ(changes.at("Goes")->delta_ns, -201);
  // Largest first, all beyond chance, examples of the side that has more.
  EXPECT_EQ(diff.changes[0].tuple.wait, Names{"m.sys!Shrinks"});
  for (const ChainChange& change : diff.changes) {
    EXPECT_TRUE(change.significant) << change.tuple.wait[0];
    EXPECT_FALSE(change.examples.empty());
  }
}

TEST(Diff, OfACorpusWithItselfIsNothing) {
  const Evidence side = Side(Times(10, {{"A", 500}, {"B", 300}}));
  const auto result = FindDifferences(side, side);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.value().scenarios[0].changes.empty());
  EXPECT_EQ(result.value().scenarios[0].same, 2U);
  EXPECT_EQ(result.value().scenarios[0].p_value, 1);
}

TEST(Diff, BackwardsIsItsMirror) {
  const Evidence one = Side(Times(9, {{"A", 500}, {"B", 300}}), "x");
  const Evidence other = Side(Times(12, {{"A", 700}, {"C", 100}}), "y");
  const ScenarioDiff there = FindDifferences(one, other).value().scenarios.at(0);
  const ScenarioDiff back = FindDifferences(other, one).value().scenarios.at(0);
  ASSERT_EQ(there.changes.size(), back.changes.size());
  for (size_t i = 0; i < there.changes.size(); ++i) {
    EXPECT_EQ(there.changes[i].tuple, back.changes[i].tuple);
    EXPECT_EQ(there.changes[i].delta_ns, -back.changes[i].delta_ns);
    EXPECT_EQ(there.changes[i].before.cost_ns, back.changes[i].after.cost_ns);
  }
}

TEST(Diff, OneOddInstanceIsNotSignificant) {
  std::vector<std::vector<Step>> traces = Times(20, {{"A", 500}});
  const Evidence before = Side(traces);
  traces[3].push_back({"Odd", 5000});
  const ScenarioDiff diff = FindDifferences(before, Side(traces)).value().scenarios.at(0);
  ASSERT_EQ(diff.changes.size(), 1U);
  EXPECT_EQ(diff.changes[0].change, Change::kAppeared);
  EXPECT_FALSE(diff.changes[0].significant);
}

TEST(Diff, ExceptionsAreLeftOutAndCounted) {
  DiffOptions options;
  options.exceptions = {"m.sys!B*"};
  const ScenarioDiff diff = FindDifferences(Side(Times(5, {{"A", 500}})),
                                            Side(Times(5, {{"A", 900}, {"B", 300}})), options)
                                .value()
                                .scenarios.at(0);
  EXPECT_EQ(diff.exceptions, 1U);
  ASSERT_EQ(diff.changes.size(), 1U);
  EXPECT_EQ(diff.changes[0].tuple.wait, Names{"m.sys!A"});
}

TEST(Diff, NeedsAScenarioInCommon) {
  const Evidence before = Side(Times(3, {{"A", 500}}));
  Evidence after;
  const auto result = FindDifferences(before, after);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().hint.find("Open"), std::string::npos);
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
