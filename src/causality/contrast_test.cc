// SPDX-License-Identifier: Apache-2.0
#include "causality/contrast.h"

#include <gtest/gtest.h>

#include "causality/extract.h"
#include "causality/figure_one.h"

namespace culprit::causality::TEST_FILE {
namespace {

using trace::EventKind;
using trace::SmallTrace;
using trace::ThreadKind;
using Names = std::vector<std::string>;

Evidence Of(const std::vector<trace::Trace>& traces, const ExtractOptions& options) {
  Evidence sum;
  for (size_t i = 0; i < traces.size(); ++i) {
    AddEvidence(ExtractTrace(traces[i], "t" + std::to_string(i), options), sum);
  }
  return sum;
}

ContrastOptions Between(const std::string& scenario, int64_t fast_ns, int64_t slow_ns) {
  ContrastOptions options;
  options.scenario = scenario;
  options.classes.fast = {.kind = Threshold::Kind::kDuration, .dur_ns = fast_ns};
  options.classes.slow = {.kind = Threshold::Kind::kDuration, .dur_ns = slow_ns};
  return options;
}

TEST(Contrast, FigureOneOfThePaperGivesItsTuple) {
  std::vector<trace::Trace> traces;
  traces.push_back(FigureOne::Slow());
  for (int i = 0; i < 3; ++i) traces.push_back(FigureOne::Fast());
  ExtractOptions extract;
  extract.component.globs = {"*.sys"};
  const auto result = FindContrasts(Of(traces, extract), Between("BrowserTabCreate", 300, 500));
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  const ContrastResult& contrast = result.value();
  ASSERT_FALSE(contrast.patterns.empty());
  const ContrastPattern& first = contrast.patterns[0];
  EXPECT_EQ(first.tuple.wait, (Names{"fs.sys!AcquireMDU", "fv.sys!QueryFileTable"}));
  EXPECT_EQ(first.tuple.unwait, (Names{"fs.sys!AcquireMDU", "fv.sys!QueryFileTable"}));
  EXPECT_EQ(first.tuple.running, (Names{"DiskService", "se.sys!ReadDecrypt"}));
  EXPECT_EQ(first.cost_ns, 588);
  EXPECT_EQ(first.count, 1U);
  EXPECT_EQ(first.instances, 1U);
  EXPECT_TRUE(first.slow_only);
  EXPECT_TRUE(first.high_impact);
  ASSERT_EQ(first.examples.size(), 1U);
  EXPECT_EQ(first.examples[0].instance, "t0:0");
  // The decryption travelled the same way.
  bool decrypts = false;
  for (const ContrastPattern& pattern : contrast.patterns) {
    decrypts =
        decrypts || (pattern.tuple.wait == first.tuple.wait && pattern.cost_ns == 100 &&
                     pattern.count == 10 && pattern.tuple.running == Names{"se.sys!ReadDecrypt"});
  }
  EXPECT_TRUE(decrypts);
  EXPECT_EQ(contrast.component_ns, 690);
  EXPECT_EQ(contrast.pruned_ns, 0);
}

// One wait of the initiating thread, ended by a disk or by another thread.
trace::Trace OneWait(int64_t dur_ns, bool by_disk, const std::string& stack) {
  SmallTrace t(0, dur_ns);
  t.Thread("[disk 8:0]", ThreadKind::kDevice);
  const std::string waker = by_disk ? "[disk 8:0]" : "holder";
  t.Add(EventKind::kRunning, "main", 0, 10, "app!Main");
  t.Add(EventKind::kWait, "main", 10, dur_ns - 5, stack).peer = t.Thread(waker);
  t.Add(EventKind::kUnwait, waker, dur_ns - 5, dur_ns - 5, "app!Work;m.sys!Release").peer =
      t.Thread("main");
  if (!by_disk) t.Add(EventKind::kRunning, "holder", 0, dur_ns - 5, "app!Work;m.sys!Hold");
  t.Add(EventKind::kRunning, "main", dur_ns - 5, dur_ns, "app!Main");
  t.AddInstance("Open", "main", 0, dur_ns);
  trace::SortByTime(t.trace.events);
  return std::move(t.trace);
}

ExtractOptions Sys() {
  ExtractOptions options;
  options.component.globs = {"*.sys"};
  return options;
}

TEST(Contrast, WaitsForADeviceAloneArePrunedAndCounted) {
  std::vector<trace::Trace> traces;
  traces.push_back(OneWait(1000, true, "app!Main;m.sys!Read"));
  traces.push_back(OneWait(800, false, "app!Main;m.sys!Lock"));
  traces.push_back(OneWait(50, false, "app!Main;m.sys!Lock"));
  const Evidence evidence = Of(traces, Sys());
  const auto result = FindContrasts(evidence, Between("Open", 100, 200));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().pruned_ns, 985);
  EXPECT_EQ(result.value().component_ns, 985 + 785);
  for (const ContrastPattern& pattern : result.value().patterns) {
    EXPECT_EQ(std::count(pattern.tuple.running.begin(), pattern.tuple.running.end(), "DiskService"),
              0);
  }
  ContrastOptions all = Between("Open", 100, 200);
  all.aggregate.prune_hardware = false;
  const auto unpruned = FindContrasts(evidence, all);
  ASSERT_TRUE(unpruned.ok());
  EXPECT_EQ(unpruned.value().pruned_ns, 0);
  EXPECT_EQ(unpruned.value().patterns[0].tuple.running, (Names{"DiskService", "m.sys!Read"}));
}

TEST(Contrast, SlowerByMoreThanTheThresholdsIsAContrastAndLessIsNot) {
  const auto contrasts = [](int64_t slow_ns) {
    std::vector<trace::Trace> traces;
    traces.push_back(OneWait(slow_ns, false, "app!Main;m.sys!Lock"));
    traces.push_back(OneWait(115, false, "app!Main;m.sys!Lock"));
    return FindContrasts(Of(traces, Sys()), Between("Open", 200, 300)).value();
  };
  // 300 / 200 = 1.5; the wait is of 100 where fast, the run below it of 110.
  const ContrastResult above = contrasts(320);
  ASSERT_EQ(above.patterns.size(), 1U);
  EXPECT_FALSE(above.patterns[0].slow_only);
  EXPECT_NEAR(above.patterns[0].ratio.value(), 315.0 / 110, 1e-9);
  const auto barely = [](int64_t slow_ns, int64_t fast_ns) {
    return ClassCosts{slow_ns, 2, fast_ns, 2}.IsContrast(200, 300);
  };
  EXPECT_TRUE(barely(151, 100));
  EXPECT_FALSE(barely(150, 100));
  EXPECT_FALSE(barely(0, 0));
  EXPECT_TRUE(barely(1, 0));
}

TEST(Contrast, KnownExceptionsAreLeftOutAndCounted) {
  std::vector<trace::Trace> traces;
  traces.push_back(OneWait(900, false, "app!Main;dp.sys!HoldUntilSettled"));
  traces.push_back(OneWait(800, false, "app!Main;m.sys!Lock"));
  traces.push_back(OneWait(50, false, "app!Main;m.sys!Lock"));
  const Evidence evidence = Of(traces, Sys());
  ContrastOptions options = Between("Open", 100, 200);
  const size_t all = FindContrasts(evidence, options).value().patterns.size();
  options.exceptions = {"dp.sys!*", "never!*"};
  const ContrastResult some = FindContrasts(evidence, options).value();
  EXPECT_EQ(some.patterns.size() + some.exception_patterns, all);
  EXPECT_EQ(some.exception_patterns, 1U);
  EXPECT_EQ(some.exception_ns, 895);
  EXPECT_EQ(some.unused_exceptions, Names{"never!*"});
  options.exceptions = {"dp.sys"};
  EXPECT_EQ(FindContrasts(evidence, options).value().exception_patterns, 1U);
}

TEST(Contrast, RanksByAverageCostOrInstances) {
  std::vector<trace::Trace> traces;
  traces.push_back(OneWait(5000, false, "app!Main;a.sys!Lock"));
  for (int i = 0; i < 4; ++i) traces.push_back(OneWait(2000, false, "app!Main;b.sys!Lock"));
  traces.push_back(OneWait(50, false, "app!Main;m.sys!Lock"));
  const Evidence evidence = Of(traces, Sys());
  const auto first = [&](RankBy rank) {
    ContrastOptions options = Between("Open", 100, 1000);
    options.rank = rank;
    return FindContrasts(evidence, options).value().patterns.at(0).tuple.wait.at(0);
  };
  EXPECT_EQ(first(RankBy::kAverage), "a.sys!Lock");
  EXPECT_EQ(first(RankBy::kCost), "b.sys!Lock");
  EXPECT_EQ(first(RankBy::kInstances), "b.sys!Lock");
}

TEST(Contrast, SaysWhatThereIsWhenClassesCannotBeMade) {
  std::vector<trace::Trace> traces;
  traces.push_back(OneWait(500, false, "m.sys!Lock"));
  traces.push_back(OneWait(50, false, "m.sys!Lock"));
  const Evidence evidence = Of(traces, Sys());
  const auto unknown = FindContrasts(evidence, Between("Close", 100, 200));
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().hint.find("Open"), std::string::npos);
  const auto no_slow = FindContrasts(evidence, Between("Open", 100, 2000));
  ASSERT_FALSE(no_slow.ok());
  EXPECT_NE(no_slow.error().message.find("no slow"), std::string::npos);
  EXPECT_NE(no_slow.error().hint.find("500 ns"), std::string::npos);
  const auto no_fast = FindContrasts(evidence, Between("Open", 10, 200));
  ASSERT_FALSE(no_fast.ok());
  EXPECT_NE(no_fast.error().message.find("no fast"), std::string::npos);
  EXPECT_FALSE(FindContrasts(evidence, Between("Open", 300, 200)).ok());
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
