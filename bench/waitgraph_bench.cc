// SPDX-License-Identifier: Apache-2.0
// Time lines, wait graphs, critical paths and areas of interest of traces.
//
//   waitgraph_bench TRACE...
//
// For each trace: laying it out, then graph and path of every instance, and of
// every thread over the whole trace. One core, best of five rounds. Rates are
// events of the trace a second (how long a trace takes) and nodes or segments a
// second (how long a result takes).
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "trace/trace_reader.h"
#include "waitgraph/area.h"
#include "waitgraph/critical_path.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_graph.h"

namespace {

using culprit::trace::Instance;
using culprit::trace::Trace;
using culprit::waitgraph::CriticalPath;
using culprit::waitgraph::PathFinder;
using culprit::waitgraph::Timelines;
using culprit::waitgraph::WaitGraph;
using culprit::waitgraph::WaitGraphBuilder;

// CPU time of this process.
double Seconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double Best(const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const double start = Seconds();
    work();
    best = std::min(best, Seconds() - start);
  }
  return best;
}

void Print(const char* what, const Trace& trace, double seconds, uint64_t results) {
  std::printf("  %-34s %8.2f ms %8.2f M events/s", what, seconds * 1e3,
              static_cast<double>(trace.events.size()) / seconds * 1e-6);
  if (results > 0) {
    std::printf(" %10.3f M results, %6.1f M/s", static_cast<double>(results) * 1e-6,
                static_cast<double>(results) / seconds * 1e-6);
  }
  std::printf("\n");
}

std::vector<Instance> WholeThreads(const Trace& trace) {
  std::vector<Instance> instances;
  for (size_t i = 0; i < trace.dictionary.threads().size(); ++i) {
    instances.push_back({.scenario = {},
                         .thread = culprit::trace::ThreadId(i),
                         .t0_ns = trace.metadata.begin_ns,
                         .t1_ns = trace.metadata.end_ns});
  }
  return instances;
}

void MeasureInstances(const Timelines& timelines, const std::vector<Instance>& instances) {
  const Trace& trace = timelines.trace();
  uint64_t nodes = 0;
  uint64_t segments = 0;
  const double graph_s = Best([&] {
    WaitGraphBuilder builder(timelines);
    WaitGraph graph;
    nodes = 0;
    for (const Instance& instance : instances) {
      builder.Build(instance, graph);
      nodes += graph.nodes.size();
    }
  });
  Print("wait graphs", trace, graph_s, nodes);
  const double path_s = Best([&] {
    PathFinder finder(timelines);
    CriticalPath path;
    segments = 0;
    for (const Instance& instance : instances) {
      finder.Find(instance, path);
      segments += path.segments.size();
    }
  });
  Print("critical paths", trace, path_s, segments);
  uint64_t events = 0;
  const double area_s = Best(
      [&] { events = culprit::waitgraph::AreaOfInterest(timelines, instances, {}).events.size(); });
  Print("areas of interest", trace, area_s, events);
  const double all_s = Best([&] { const Timelines again(trace); }) + graph_s + path_s;
  Print("time lines, graphs and paths", trace, all_s, 0);
}

void Measure(const std::string& file) {
  auto read = culprit::trace::ReadTrace(file);
  if (!read.ok()) {
    std::printf("%s\n", read.error().ToString().c_str());
    return;
  }
  const Trace trace = std::move(read).value();
  std::printf("%s: %zu events, %zu instances, %zu threads\n", file.c_str(), trace.events.size(),
              trace.instances.size(), trace.dictionary.threads().size());
  Print("time lines", trace, Best([&] { const Timelines timelines(trace); }), 0);
  const Timelines timelines(trace);
  std::printf(" of the instances\n");
  MeasureInstances(timelines, trace.instances);
  std::printf(" of all threads, whole\n");
  MeasureInstances(timelines, WholeThreads(trace));
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("  peak memory %ld MB, of it %zu MB the events\n", usage.ru_maxrss / 1024,
              trace.events.size() * sizeof(culprit::trace::Event) >> 20);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::printf("usage: waitgraph_bench TRACE...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) Measure(argv[i]);
  return 0;
}
