// SPDX-License-Identifier: Apache-2.0
#include "trace/conservation.h"

#include <algorithm>
#include <map>
#include <vector>

namespace culprit::trace {
namespace {

struct Span {
  int64_t begin_ns;
  int64_t end_ns;
  ThreadId thread;

  bool operator<(const Span& other) const {
    return begin_ns != other.begin_ns ? begin_ns < other.begin_ns : end_ns < other.end_ns;
  }
};

void Problem(ConservationReport& report, uint64_t& counter, const std::string& text) {
  ++counter;
  if (report.first_problem.empty()) report.first_problem = text;
}

// Times of a damaged file may be anything: then the sum is as large as it can be.
void AddBounded(int64_t dur_ns, int64_t& sum_ns) {
  if (__builtin_add_overflow(sum_ns, dur_ns, &sum_ns)) sum_ns = INT64_MAX;
}

std::string At(int64_t time_ns) { return " at " + std::to_string(time_ns) + " ns"; }

void CheckThread(const Trace& trace, std::vector<Span>& tiles, ConservationReport& report) {
  std::sort(tiles.begin(), tiles.end());
  ++report.threads_checked;
  int64_t end_ns = tiles.front().begin_ns;
  for (const Span& tile : tiles) {
    const std::string who = trace.dictionary.ThreadLabel(tile.thread);
    if (tile.begin_ns > end_ns) {
      Problem(report, report.gaps, "thread " + who + " has a gap" + At(end_ns));
      AddBounded(tile.begin_ns - end_ns, report.gap_ns);
    } else if (tile.begin_ns < end_ns) {
      Problem(report, report.overlaps, "thread " + who + " is in two states" + At(tile.begin_ns));
      AddBounded(std::min(end_ns, tile.end_ns) - tile.begin_ns, report.overlap_ns);
    }
    end_ns = std::max(end_ns, tile.end_ns);
  }
}

void CheckCpu(const Trace& trace, uint16_t cpu, std::vector<Span>& runs,
              ConservationReport& report) {
  std::sort(runs.begin(), runs.end());
  ++report.cpus_checked;
  int64_t end_ns = runs.front().begin_ns;
  for (const Span& run : runs) {
    if (run.begin_ns < end_ns && run.end_ns > run.begin_ns) {
      Problem(report, report.cpu_overlaps,
              "CPU " + std::to_string(cpu) + " runs two threads" + At(run.begin_ns) + ", one is " +
                  trace.dictionary.ThreadLabel(run.thread));
    }
    AddBounded(std::max<int64_t>(0, run.end_ns - std::max(end_ns, run.begin_ns)), report.busy_ns);
    end_ns = std::max(end_ns, run.end_ns);
  }
}

}  // namespace

ConservationReport CheckConservation(const Trace& trace) {
  ConservationReport report;
  const Metadata& metadata = trace.metadata;
  std::map<ThreadId, std::vector<Span>> threads;
  std::map<uint16_t, std::vector<Span>> cpus;
  for (const Event& event : trace.events) {
    if (event.time_ns < metadata.begin_ns || event.end_ns() > metadata.end_ns) {
      Problem(report, report.out_of_range,
              "a " + std::string(Name(event.kind)) + " event lies outside the recording" +
                  At(event.time_ns));
    }
    const Span span = {event.time_ns, event.end_ns(), event.thread};
    if (IsTile(event.kind)) threads[event.thread].push_back(span);
    if (event.kind == EventKind::kRunning && event.cpu != Event::kNoCpu) {
      cpus[event.cpu].push_back(span);
    }
  }
  // Samples alone do not tile anything.
  if (!metadata.has_switches) return report;
  for (auto& [thread, tiles] : threads) CheckThread(trace, tiles, report);
  for (auto& [cpu, runs] : cpus) CheckCpu(trace, cpu, runs, report);
  // A damaged trace may claim centuries on thousands of CPUs; its idle time is
  // then left at zero.
  const auto cpu_count = static_cast<int64_t>(std::max<uint64_t>(metadata.cpus, cpus.size()));
  int64_t span_ns = 0;
  int64_t all_ns = 0;
  if (!__builtin_sub_overflow(metadata.end_ns, metadata.begin_ns, &span_ns) &&
      !__builtin_mul_overflow(span_ns, cpu_count, &all_ns)) {
    report.idle_ns = all_ns - report.busy_ns;
  }
  return report;
}

}  // namespace culprit::trace
