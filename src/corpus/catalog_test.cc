// SPDX-License-Identifier: Apache-2.0
#include "corpus/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/test_folder.h"
#include "corpus/catalog_schema.h"

namespace culprit::corpus::TEST_FILE {
namespace {

TraceRow RowNamed(const std::string& name) {
  TraceRow row;
  row.name = name;
  row.file = name + ".ctrace";
  row.sha256 = "hash of " + name;
  return row;
}

std::vector<InstanceRow> InstancesLasting(const std::string& scenario,
                                          const std::vector<int64_t>& durations) {
  std::vector<InstanceRow> rows;
  for (const int64_t dur_ns : durations) {
    rows.push_back({.index = static_cast<uint32_t>(rows.size()),
                    .scenario = scenario,
                    .t0_ns = 0,
                    .t1_ns = dur_ns,
                    .dur_ns = dur_ns});
  }
  return rows;
}

class CatalogTest : public testing::Test {
 protected:
  Catalog Make() { return Catalog::Open(folder_ / "catalog.sqlite", true).value(); }
  Catalog Again() { return Catalog::Open(folder_ / "catalog.sqlite", false).value(); }
  TestFolder folder_;
};

TEST_F(CatalogTest, RowsComeBackAsTheyWereStored) {
  TraceRow row = RowNamed("a");
  row.bytes = 1;
  row.events = 2;
  row.begin_ns = -3;
  row.end_ns = 4;
  row.dur_ns = 7;
  row.cpus = 5;
  row.threads = 6;
  row.kind_counts = {1, 2, 3, 4, 5, 6, 7, 8};
  row.has_switches = true;
  row.complete = false;
  row.damaged_blocks = 9;
  row.skipped = 10;
  row.machine = "m";
  row.os = "o";
  row.kernel = "k";
  row.arch = "r";
  row.app = "p";
  row.app_version = "v";
  row.source = std::string("s\0\xff", 3);
  row.added_ns = 11;
  row.labels = {{"a", "b"}, {"c", ""}};
  Catalog catalog = Make();
  ASSERT_TRUE(catalog.Begin().ok());
  ASSERT_TRUE(catalog.Insert(row, InstancesLasting("S", {5, 6})).ok());
  ASSERT_TRUE(catalog.Commit().ok());

  Catalog other = Again();
  const TraceRow got = other.FindByName("a").value().value();
  EXPECT_EQ(got.kind_counts, row.kind_counts);
  EXPECT_EQ(got.labels, row.labels);
  EXPECT_EQ(got.source, row.source);
  EXPECT_EQ(got.begin_ns, -3);
  EXPECT_EQ(got.dur_ns, 7);
  EXPECT_EQ(got.instances, 2u);
  EXPECT_EQ(
      std::tie(got.bytes, got.events, got.cpus, got.threads, got.damaged_blocks, got.skipped),
      std::tie(row.bytes, row.events, row.cpus, row.threads, row.damaged_blocks, row.skipped));
  EXPECT_EQ(std::tie(got.has_switches, got.has_wakers, got.complete),
            std::tie(row.has_switches, row.has_wakers, row.complete));
  EXPECT_EQ(std::tie(got.machine, got.os, got.kernel, got.arch, got.app, got.app_version),
            std::tie(row.machine, row.os, row.kernel, row.arch, row.app, row.app_version));
  EXPECT_EQ(got.added_ns, 11);
}

TEST_F(CatalogTest, WhatWasNotCommittedIsGone) {
  {
    Catalog catalog = Make();
    ASSERT_TRUE(catalog.Begin().ok());
    ASSERT_TRUE(catalog.Insert(RowNamed("a"), InstancesLasting("S", {1})).ok());
  }
  Catalog catalog = Again();
  EXPECT_TRUE(catalog.List({}).value().empty());
  EXPECT_TRUE(catalog.Scenarios().value().empty());
}

TEST_F(CatalogTest, DeletingATraceTakesItsLabelsAndInstances) {
  Catalog catalog = Make();
  ASSERT_TRUE(catalog.Begin().ok());
  TraceRow row = RowNamed("a");
  row.labels = {{"k", "v"}};
  const int64_t id = catalog.Insert(row, InstancesLasting("S", {1, 2})).value();
  ASSERT_TRUE(catalog.Insert(RowNamed("b"), InstancesLasting("S", {3})).ok());
  ASSERT_TRUE(catalog.Delete(id).ok());
  ASSERT_TRUE(catalog.Commit().ok());
  EXPECT_TRUE(catalog.InstancesOf(id).value().empty());
  EXPECT_EQ(catalog.Instances("S", 0).value().size(), 1u);
  EXPECT_TRUE(catalog.List({.labels = {{"k", "v"}}}).value().empty());
}

TEST_F(CatalogTest, AnIdIsNeverGivenTwice) {
  Catalog catalog = Make();
  const int64_t first = catalog.Insert(RowNamed("a"), {}).value();
  ASSERT_TRUE(catalog.Delete(first).ok());
  EXPECT_GT(catalog.Insert(RowNamed("a"), {}).value(), first);
}

TEST_F(CatalogTest, PercentilesAreNearestRankForEverySize) {
  Catalog catalog = Make();
  std::mt19937 random(7);
  ASSERT_TRUE(catalog.Begin().ok());
  std::map<std::string, std::vector<int64_t>> durations;
  for (size_t n = 1; n <= 60; ++n) {
    std::vector<int64_t>& values = durations["scenario" + std::to_string(n)];
    for (size_t i = 0; i < n; ++i) values.push_back(static_cast<int64_t>(random() % 50));
    const std::string name = "t" + std::to_string(n);
    ASSERT_TRUE(
        catalog.Insert(RowNamed(name), InstancesLasting("scenario" + std::to_string(n), values))
            .ok());
  }
  ASSERT_TRUE(catalog.Commit().ok());
  const auto rows = catalog.Scenarios().value();
  ASSERT_EQ(rows.size(), 60u);
  for (const ScenarioRow& row : rows) {
    std::vector<int64_t>& values = durations[row.name];
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    EXPECT_EQ(row.instances, values.size());
    EXPECT_EQ(row.p50_ns, values[static_cast<size_t>(std::ceil(0.5 * n)) - 1]) << row.name;
    EXPECT_EQ(row.p90_ns, values[static_cast<size_t>(std::ceil(n * 9 / 10)) - 1]) << row.name;
    EXPECT_EQ(row.min_ns, values.front());
    EXPECT_EQ(row.max_ns, values.back());
    EXPECT_EQ(row.traces, 1u);
  }
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST_F(CatalogTest, InstancesComeSlowestFirstWithTiesByTraceAndIndex) {
  Catalog catalog = Make();
  ASSERT_TRUE(catalog.Insert(RowNamed("a"), InstancesLasting("S", {5, 9, 5})).ok());
  ASSERT_TRUE(catalog.Insert(RowNamed("b"), InstancesLasting("S", {9, 1})).ok());
  std::string order;
  const auto rows = catalog.Instances("S", 0).value();
  for (const InstanceRow& row : rows) order += row.trace_name + std::to_string(row.index) + " ";
  EXPECT_EQ(order, "a1 b0 a0 a2 b1 ");
  EXPECT_EQ(catalog.Instances("S", 2).value().size(), 2u);
  EXPECT_TRUE(catalog.Instances("s", 0).value().empty());
}

TEST_F(CatalogTest, EveryFilterNarrowsTheList) {
  Catalog catalog = Make();
  TraceRow a = RowNamed("alpha");
  a.app = "Browser";
  a.dur_ns = 100;
  a.labels = {{"release", "1"}, {"site", "x"}};
  TraceRow b = RowNamed("beta");
  b.app = "Shell";
  b.dur_ns = 200;
  b.labels = {{"release", "1"}};
  ASSERT_TRUE(catalog.Insert(a, InstancesLasting("Open", {1})).ok());
  ASSERT_TRUE(catalog.Insert(b, InstancesLasting("Close", {1})).ok());
  const auto names = [&](const TraceFilter& filter) {
    std::string text;
    const auto rows = catalog.List(filter).value();
    for (const TraceRow& row : rows) text += row.name + " ";
    return text;
  };
  EXPECT_EQ(names({}), "alpha beta ");
  EXPECT_EQ(names({.labels = {{"release", "1"}}}), "alpha beta ");
  EXPECT_EQ(names({.labels = {{"release", "1"}, {"site", "x"}}}), "alpha ");
  EXPECT_EQ(names({.labels = {{"release", "2"}}}), "");
  TraceFilter filter;
  filter.app = "Shell";
  EXPECT_EQ(names(filter), "beta ");
  filter = {};
  filter.scenario = "Open";
  EXPECT_EQ(names(filter), "alpha ");
  filter = {};
  filter.name_glob = "*et?";
  EXPECT_EQ(names(filter), "beta ");
  filter = {};
  filter.min_dur_ns = 101;
  EXPECT_EQ(names(filter), "beta ");
  filter.app = "Browser";
  EXPECT_EQ(names(filter), "");
}

TEST_F(CatalogTest, FreeNameTakesTheNextSuffix) {
  Catalog catalog = Make();
  EXPECT_EQ(catalog.FreeName("t").value(), "t");
  for (int i = 1; i <= 40; ++i) {
    const std::string name = catalog.FreeName("t").value();
    EXPECT_EQ(name, i == 1 ? "t" : "t-" + std::to_string(i));
    ASSERT_TRUE(catalog.Insert(RowNamed(name), {}).ok());
  }
}

TEST_F(CatalogTest, ANewerCatalogIsRefusedAndNotCalledBroken) {
  Make();
  const std::string path = folder_ / "catalog.sqlite";
  const Database file = Database::Open(path, Database::Mode::kReadWrite).value();
  ASSERT_TRUE(file.Execute("PRAGMA user_version = 999").ok());
  const auto opened = Catalog::Open(path, false);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("version 999"), std::string::npos);
  EXPECT_EQ(ProbeCatalog(path, true).value(), CatalogState::kNewer);
}

TEST_F(CatalogTest, ProbeTellsTheStatesApart) {
  const std::string path = folder_ / "catalog.sqlite";
  const auto state = [&] { return ProbeCatalog(path, true).value(); };
  EXPECT_EQ(state(), CatalogState::kMissing);
  folder_.Write("catalog.sqlite", "");
  EXPECT_EQ(state(), CatalogState::kEmpty);
  for (const size_t size : {2, 20, 100, 512, 5000}) {
    folder_.Write("catalog.sqlite", std::string(size, 'x'));
    EXPECT_EQ(state(), CatalogState::kBroken) << size;
    EXPECT_FALSE(Catalog::Open(path, true).ok()) << size;
  }
  std::filesystem::remove(path);
  Make();
  EXPECT_EQ(state(), CatalogState::kGood);
  // Another program's database is none of ours, however healthy.
  std::filesystem::remove(path);
  ASSERT_TRUE(Database::Open(path, Database::Mode::kCreate)
                  .value()
                  .Execute("CREATE TABLE traces(x); PRAGMA user_version = 1")
                  .ok());
  EXPECT_EQ(state(), CatalogState::kBroken);
}

TEST_F(CatalogTest, TheLossOfAPageOrMoreIsNoticed) {
  const std::string path = folder_ / "catalog.sqlite";
  {
    Catalog catalog = Make();
    ASSERT_TRUE(catalog.Begin().ok());
    for (int i = 0; i < 50; ++i)
      ASSERT_TRUE(
          catalog.Insert(RowNamed("t" + std::to_string(i)), InstancesLasting("S", {i})).ok());
    ASSERT_TRUE(catalog.Commit().ok());
  }
  const auto size = std::filesystem::file_size(path);
  for (auto cut = size - 4096; cut > 0; cut -= std::min<uintmax_t>(cut, 3001)) {
    std::filesystem::resize_file(path, cut);
    EXPECT_EQ(ProbeCatalog(path, true).value(), CatalogState::kBroken) << cut << " of " << size;
  }
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
