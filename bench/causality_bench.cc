// SPDX-License-Identifier: Apache-2.0
// Impact and contrast.
//
//   causality_bench CORPUS...
//
// For each corpus: one pass over the traces for the impact of all modules and the
// chains of its eight most frequent scenarios, on all cores; then the impact with
// its intervals and the eight contrasts. Beside it, for the first traces of the
// first corpus, the chains by unfolding wait graphs into paths
// (causality/naive_causality.h), which must give the same places and costs. Last
// the worst cases of causality/convoy.h, each in three sizes, on one core.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "causality/contrast.h"
#include "causality/convoy.h"
#include "causality/extract.h"
#include "causality/gather.h"
#include "causality/impact.h"
#include "causality/naive_causality.h"
#include "corpus/corpus.h"
#include "trace/trace_reader.h"

namespace {

using culprit::Progress;
using culprit::causality::Evidence;
using culprit::causality::ExtractOptions;
using culprit::causality::NaiveInstance;
using culprit::trace::Trace;

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Clock {
 public:
  double Cpu() const { return CpuSeconds() - cpu_; }
  double Wall() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count();
  }

 private:
  double cpu_ = CpuSeconds();
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
};

long PeakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

ExtractOptions Drivers() {
  ExtractOptions options;
  options.component.globs = {"*.sys"};
  return options;
}

// The scenarios with most instances.
std::vector<std::string> Frequent(const std::string& folder, size_t count) {
  std::vector<std::string> names;
  auto corpus = culprit::corpus::Corpus::Open(folder);
  if (!corpus.ok()) return names;
  auto rows = corpus.value().Scenarios();
  if (!rows.ok()) return names;
  std::vector<culprit::corpus::ScenarioRow> scenarios = std::move(rows).value();
  std::stable_sort(scenarios.begin(), scenarios.end(),
                   [](const auto& a, const auto& b) { return a.instances > b.instances; });
  for (size_t i = 0; i < scenarios.size() && i < count; ++i) names.push_back(scenarios[i].name);
  return names;
}

void MeasureCorpus(const std::string& folder) {
  culprit::causality::GatherOptions options;
  options.extract = Drivers();
  options.extract.chain_scenarios = Frequent(folder, 8);
  options.use_summaries = false;
  Progress progress;
  const Clock gathering;
  auto gathered = culprit::causality::GatherEvidence(folder, options, progress);
  if (!gathered.ok()) {
    std::printf("%s\n", gathered.error().ToString().c_str());
    return;
  }
  const Evidence evidence = std::move(gathered).value();
  const auto events = static_cast<double>(evidence.account.events);
  std::printf("%s: %zu traces, %.2f M events, %zu instances, %zu components\n", folder.c_str(),
              evidence.traces.size(), events * 1e-6, evidence.instances.size(),
              evidence.components.size() - 1);
  std::printf("  one pass          %7.2f s wall %7.2f s CPU, %.1f M events/s, %.1f a CPU second\n",
              gathering.Wall(), gathering.Cpu(), events / gathering.Wall() * 1e-6,
              events / gathering.Cpu() * 1e-6);
  const Clock measuring;
  const auto impact = culprit::causality::MeasureImpact(evidence);
  std::printf("  impact            %7.2f s CPU: %zu rows, IA_wait %.1f %%, IA_run %.1f %%\n",
              measuring.Cpu(), impact.components.size() + impact.cells.size(),
              impact.whole.ia_wait * 100, impact.whole.ia_run * 100);
  const Clock contrasting;
  size_t patterns = 0;
  for (const std::string& scenario : options.extract.chain_scenarios) {
    const auto result = culprit::causality::FindContrasts(evidence, {.scenario = scenario});
    if (result.ok()) patterns += result.value().patterns.size();
  }
  std::printf("  %zu contrasts       %7.2f s CPU: %zu patterns\n",
              options.extract.chain_scenarios.size(), contrasting.Cpu(), patterns);
  std::printf("  peak memory       %7ld MB\n", PeakMegabytes());
}

std::vector<Trace> FirstTraces(const std::string& folder, size_t count) {
  std::vector<Trace> traces;
  auto corpus = culprit::corpus::Corpus::Open(folder);
  if (!corpus.ok()) return traces;
  auto rows = corpus.value().List();
  if (!rows.ok()) return traces;
  for (const auto& row : rows.value()) {
    if (traces.size() == count) break;
    auto trace = culprit::trace::ReadTrace(corpus.value().TracePath(row));
    if (trace.ok()) traces.push_back(std::move(trace).value());
  }
  return traces;
}

void MeasurePeer(const std::string& folder) {
  const std::vector<Trace> traces = FirstTraces(folder, 10);
  ExtractOptions options = Drivers();
  options.impact = false;
  const Clock own;
  uint64_t own_rows = 0;
  int64_t own_ns = 0;
  for (const Trace& trace : traces) {
    const Evidence evidence = ExtractTrace(trace, "t", options);
    own_rows += evidence.rows.size();
    for (const auto& row : evidence.rows) own_ns += row.cost_ns;
  }
  const double own_s = own.Cpu();
  const Clock peer;
  uint64_t peer_rows = 0;
  int64_t peer_ns = 0;
  for (const Trace& trace : traces) {
    const culprit::causality::NaiveTrace naive(trace, "t", options.component.globs);
    for (const auto& instance : trace.instances) {
      NaiveInstance chains;
      naive.Chains(instance, SIZE_MAX, chains);
      peer_rows += chains.places.size();
      for (const auto& [place, cost] : chains.places) peer_ns += cost.cost_ns;
    }
  }
  const double peer_s = peer.Cpu();
  std::printf("chains of %zu traces: %.3f s CPU, unfolded %.3f s CPU, %.0f times; %s\n",
              traces.size(), own_s, peer_s, peer_s / own_s,
              own_rows == peer_rows && own_ns == peer_ns ? "same places and costs" : "DIFFERENT");
}

template <class Make>
void MeasureWorst(const char* what, Make make, std::initializer_list<int64_t> sizes) {
  std::printf("%s\n", what);
  for (const int64_t size : sizes) {
    const Trace trace = make(size);
    ExtractOptions options;
    options.component.globs = {"db"};
    const Clock clock;
    const Evidence evidence = ExtractTrace(trace, "t", options);
    const double cpu_s = clock.Cpu();
    std::printf(
        "  %9lld: %9zu events, %10llu nodes, %10llu places used, %7.2f s CPU, %5.1f M "
        "nodes/s, peak %ld MB%s\n",
        static_cast<long long>(size), trace.events.size(),
        static_cast<unsigned long long>(evidence.account.nodes),
        static_cast<unsigned long long>(evidence.account.chain_events), cpu_s,
        static_cast<double>(evidence.account.nodes) / cpu_s * 1e-6, PeakMegabytes(),
        evidence.account.truncated_instances > 0 ? ", truncated" : "");
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) MeasureCorpus(argv[i]);
  if (argc > 1) MeasurePeer(argv[1]);
  MeasureWorst("lock convoy, every thread an instance", culprit::causality::LockConvoy,
               {250, 500, 1000});
  MeasureWorst("one instance, helpers behind one holder (edges: size² / 2)",
               culprit::causality::SharedHolder, {10'000, 20'000, 40'000});
  MeasureWorst("one instance, a client and a server", culprit::causality::PingPong,
               {375'000, 750'000, 1'500'000});
  return 0;
}
