// SPDX-License-Identifier: Apache-2.0
// The small pieces: results, diagnostics, strings, loops, progress.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/diagnostics.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/string_table.h"

namespace culprit::TEST_FILE {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return Error{.message = "odd", .file = "f", .offset = 7};
  return value / 2;
}

Result<int> Quarter(int value) {
  CULPRIT_ASSIGN(const int half, Half(value));
  CULPRIT_TRY(Half(half));
  return half / 2;
}

TEST(Result, CarriesAValueOrAnError) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_FALSE(Quarter(6).ok());
  EXPECT_EQ(Quarter(7).error().ToString(), "f: odd (at byte 7)");
}

TEST(ResultDeathTest, TheValueOfAnErrorIsABug) {
  EXPECT_DEATH((void)Half(1).value(), "internal error");
}

TEST(Diagnostics, CountsAndKeepsTheFirstOffset) {
  Diagnostics d;
  EXPECT_TRUE(d.empty());
  d.Count("bad record", 2, 500);
  d.Count("bad record", 1, 100);
  d.Count("other");
  d.Count("nothing", 0);
  EXPECT_EQ(d.total(), 4u);
  EXPECT_EQ(d.rows().size(), 2u);
  EXPECT_EQ(d.rows().at("bad record").count, 3u);
  EXPECT_EQ(*d.rows().at("bad record").first_offset, 100u);
}

TEST(Diagnostics, MergingIsTheSameInAnyOrder) {
  Diagnostics a;
  a.Count("x", 1, 9);
  Diagnostics b;
  b.Count("x", 2, 4);
  b.Count("y");
  Diagnostics ab = a;
  ab.Merge(b);
  Diagnostics ba = b;
  ba.Merge(a);
  EXPECT_EQ(ab.rows().at("x").count, ba.rows().at("x").count);
  EXPECT_EQ(ab.rows().at("x").first_offset, ba.rows().at("x").first_offset);
  EXPECT_EQ(ab.total(), 4u);
}

TEST(StringTable, GivesOneIdPerStringInOrder) {
  StringTable table;
  EXPECT_EQ(table.Intern("a").value, 0u);
  EXPECT_EQ(table.Intern("").value, 1u);
  EXPECT_EQ(table.Intern("a").value, 0u);
  EXPECT_EQ(table.Intern(std::string_view("a\0b", 3)).value, 2u);
  EXPECT_EQ(table.Get(StringId(2)).size(), 3u);
  EXPECT_EQ(table.Get(StringId()), "");
  EXPECT_FALSE(table.Find("zzz").valid());
  EXPECT_EQ(table.Find("a").value, 0u);
}

TEST(StringTable, ViewsStayValidAsItGrows) {
  StringTable table;
  const std::string_view first = table.Get(table.Intern("the first"));
  for (int i = 0; i < 50'000; ++i) table.Intern("string " + std::to_string(i));
  table.Intern(std::string(1 << 20, 'x'));
  EXPECT_EQ(first, "the first");
  EXPECT_EQ(table.size(), 50'002u);
  EXPECT_EQ(table.Get(table.Find("string 777")), "string 777");
}

TEST(ParallelFor, RunsEveryIndexOnceWhateverTheJobs) {
  for (size_t jobs : {0, 1, 2, 8}) {
    std::vector<std::atomic<int>> hits(1000);
    ParallelFor(hits.size(), jobs, [&](size_t i) { ++hits[i]; });
    for (const auto& hit : hits) ASSERT_EQ(hit, 1) << jobs;
  }
  ParallelFor(0, 4, [](size_t) { FAIL(); });
}

TEST(ParallelFor, OneJobRunsInOrderOnTheCaller) {
  std::vector<size_t> order;
  ParallelFor(5, 1, [&](size_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4}));
}

TEST(Progress, ReportsRateAndEndButNotEveryStep) {
  std::vector<Progress::Report> reports;
  Progress progress([&](const Progress::Report& report) { reports.push_back(report); });
  progress.Start("reading", "events", 1000);
  for (int i = 0; i < 900; ++i) progress.Advance();
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  progress.Advance(50);
  progress.Finish();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].done, 950u);
  EXPECT_GT(reports[0].per_second, 0);
  EXPECT_TRUE(reports[0].seconds_left.has_value());
  EXPECT_TRUE(reports[1].finished);
}

TEST(Progress, WithoutAListenerItOnlyCounts) {
  Progress progress;
  progress.Start("reading", "events", 0);
  progress.Advance(3);
  progress.Finish();
  EXPECT_EQ(progress.done(), 3u);
}

}  // namespace
}  // namespace culprit::TEST_FILE
