// SPDX-License-Identifier: Apache-2.0
// The catalog of a corpus the size of 003's study: 20,000 traces, 500,000
// instances, 1,364 scenarios.
//
//   catalog_bench FOLDER
//
// Rows are made up; the traces themselves are not needed to ask the catalog.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>

#include "base/check.h"
#include "corpus/catalog.h"

namespace {

using culprit::corpus::Catalog;
using culprit::corpus::InstanceRow;
using culprit::corpus::TraceFilter;
using culprit::corpus::TraceRow;

constexpr int kTraces = 20'000;
constexpr uint32_t kInstancesPerTrace = 25;
constexpr uint64_t kScenarios = 1364;

template <class Work>
void Timed(const char* what, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("%-32s %8.1f ms\n", what, took.count());
}

TraceRow MakeRow(int t) {
  TraceRow row;
  row.name = "trace-" + std::to_string(t);
  row.file = row.name + ".ctrace";
  row.sha256 = row.name;
  row.bytes = 100'000;
  row.events = 30'000;
  row.app = "app" + std::to_string(t % 20);
  row.labels = {{"release", std::to_string(t % 7)}};
  return row;
}

std::vector<InstanceRow> MakeInstances(std::mt19937_64& random) {
  std::vector<InstanceRow> instances;
  for (uint32_t i = 0; i < kInstancesPerTrace; ++i) {
    const auto dur_ns = static_cast<int64_t>(random() % 10'000'000'000);
    instances.push_back({.index = i,
                         .scenario = "Scenario" + std::to_string(random() % kScenarios),
                         .tid = 1234,
                         .thread_name = "MainThread",
                         .process_name = "explorer.exe",
                         .t0_ns = 1000,
                         .t1_ns = 1000 + dur_ns,
                         .dur_ns = dur_ns});
  }
  return instances;
}

void Fill(Catalog& catalog) {
  std::mt19937_64 random(1);
  CULPRIT_CHECK(catalog.Begin().ok());
  for (int t = 0; t < kTraces; ++t) {
    CULPRIT_CHECK(catalog.Insert(MakeRow(t), MakeInstances(random)).ok());
  }
  CULPRIT_CHECK(catalog.Commit().ok());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: catalog_bench FOLDER\n");
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  const std::string path = std::string(argv[1]) + "/catalog.sqlite";
  Catalog made = Catalog::Open(path, true).value();
  Timed("insert, one transaction", [&] { Fill(made); });
  std::printf("catalog: %.1f MB\n", static_cast<double>(std::filesystem::file_size(path)) / 1e6);
  Catalog catalog = Catalog::Open(path, false).value();
  Timed("all scenarios: count, p50, p90",
        [&] { CULPRIT_CHECK(catalog.Scenarios().value().size() == kScenarios); });
  Timed("the 20 slowest of a scenario",
        [&] { CULPRIT_CHECK(catalog.Instances("Scenario7", 20).value().size() == 20); });
  Timed("list all traces", [&] { CULPRIT_CHECK(catalog.List({}).value().size() == kTraces); });
  TraceFilter by_label;
  by_label.labels = {{"release", "3"}};
  Timed("list by label", [&] { CULPRIT_CHECK(!catalog.List(by_label).value().empty()); });
  TraceFilter by_scenario;
  by_scenario.scenario = "Scenario7";
  Timed("list by scenario", [&] { CULPRIT_CHECK(!catalog.List(by_scenario).value().empty()); });
  Timed("one by name", [&] { CULPRIT_CHECK(catalog.FindByName("trace-777").value().has_value()); });
  return 0;
}
