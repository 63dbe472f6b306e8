// SPDX-License-Identifier: Apache-2.0
#include "stackmine/metrics.h"

#include <algorithm>
#include <map>
#include <utility>

namespace culprit::stackmine {
namespace {

struct InstanceTime {
  uint32_t instance = 0;
  int64_t time_ns = 0;
};

uint64_t Saturated(uint64_t sum, int64_t time_ns) {
  const auto time_us = static_cast<uint64_t>(time_ns / 1000);
  uint64_t square = 0;
  if (__builtin_mul_overflow(time_us, time_us, &square) ||
      __builtin_add_overflow(sum, square, &sum)) {
    return UINT64_MAX;
  }
  return sum;
}

// Calls `add` for every row and label of it, with whether the row's time is the label's
// (no wait of the label above it); and `touch`, instance by instance, for every label
// that has time in it.
template <class Add, class Touch>
void WalkRows(const Evidence& evidence, const Cover& cover, size_t count, Add add, Touch touch) {
  std::vector<int64_t> current_ns(count);  // by label, of the instance at hand
  std::vector<uint32_t> seen;
  RowCursor rows(evidence.rows);
  for (uint32_t i = 0; i < evidence.instances.size(); ++i) {
    const uint64_t end = evidence.instances[i].rows_end;
    for (const PathRow& row : rows.Read(evidence.rows_begin(i), end)) {
      for (const uint32_t label : cover.sets[cover.own[row.node]]) {
        const bool counts = !cover.Has(cover.above[row.node], label);
        add(row, label, counts);
        if (!counts) continue;
        if (current_ns[label] == 0) seen.push_back(label);
        current_ns[label] += row.cost_ns;
      }
    }
    for (const uint32_t label : seen) {
      if (current_ns[label] > 0) touch(label, i, current_ns[label]);
      current_ns[label] = 0;
    }
    seen.clear();
  }
}

void AddRow(const Evidence& evidence, const PathRow& row, bool counts, Metrics& m) {
  m.cost_ns += row.cost_ns;
  m.events += row.events;
  const PathNode& node = evidence.forest.nodes()[row.node];
  if (node.kind == PathKind::kWait) {
    m.class_ns[static_cast<size_t>(node.wait_class)] += row.cost_ns;
  }
  if (counts) m.time_ns += row.cost_ns;
}

void AddReady(const Evidence& evidence, const StackLabels& labels, std::vector<Metrics>& metrics) {
  RowCursor rows(evidence.rows);
  for (uint32_t i = 0; i < evidence.instances.size(); ++i) {
    const uint64_t end = evidence.instances[i].rows_end;
    for (const PathRow& row : rows.Read(evidence.rows_begin(i), end)) {
      const PathNode& node = evidence.forest.nodes()[row.node];
      if (node.kind != PathKind::kReady || node.stack == kNoStack) continue;
      for (const uint32_t label : labels.wait[node.stack]) metrics[label].ready_ns += row.cost_ns;
    }
  }
}

void AddCompositions(const Evidence& evidence, const Cover& cover, std::vector<Metrics>& metrics) {
  for (NodeIndex n = 0; n < cover.own.size(); ++n) {
    const int64_t own_ns = cover.node_own_ns[n];
    for (const uint32_t label : cover.sets[cover.covering[n]]) {
      Composition& below = metrics[label].below;
      switch (evidence.forest.nodes()[n].kind) {
        case PathKind::kWait:
          below.unexplained_ns += own_ns;
          break;
        case PathKind::kRunning:
        case PathKind::kNotSampled:
          below.running_ns += own_ns;
          break;
        case PathKind::kReady:
        case PathKind::kPreempted:
          below.ready_ns += own_ns;
          break;
        case PathKind::kHardware:
          below.hardware_ns += own_ns;
          break;
      }
    }
  }
}

// Each event once for all instances: a stack's events are the stack's own, so
// the distinct cost of a label is the sum over its stacks.
void AddDistinct(const Evidence& evidence, const StackLabels& labels,
                 std::vector<Metrics>& metrics) {
  for (StackIndex s = 0; s < evidence.stacks.stacks(); ++s) {
    for (const uint32_t label : labels.wait[s]) {
      metrics[label].distinct_ns += evidence.distinct_wait_ns[s];
    }
    for (const uint32_t label : labels.run[s]) {
      metrics[label].distinct_ns += evidence.distinct_run_ns[s];
    }
  }
}

bool Costlier(const InstanceTime& a, const InstanceTime& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.instance < b.instance;
}

int64_t NearestRank(std::span<const InstanceTime> costliest_first, uint64_t percent) {
  const uint64_t n = costliest_first.size();
  const uint64_t rank = (n * percent + 99) / 100;  // from the cheapest, at least 1
  return costliest_first[n - std::max<uint64_t>(1, rank)].time_ns;
}

// The costliest of each trace first, so that examples are of different ones.
std::vector<uint32_t> Examples(const Evidence& evidence, std::span<const InstanceTime> sorted) {
  std::vector<uint32_t> examples;
  std::vector<uint32_t> traces;
  for (const bool new_traces_only : {true, false}) {
    for (const InstanceTime& at : sorted) {
      if (examples.size() == kExamples) return examples;
      const uint32_t trace = evidence.instances[at.instance].trace;
      const bool new_trace = std::find(traces.begin(), traces.end(), trace) == traces.end();
      const bool taken = std::find(examples.begin(), examples.end(), at.instance) != examples.end();
      if (taken || (new_traces_only && !new_trace)) continue;
      examples.push_back(at.instance);
      traces.push_back(trace);
    }
  }
  return examples;
}

// Lengths of consecutive pieces, one for each label, as the places where they begin.
std::vector<uint64_t> PiecesOf(const std::vector<uint64_t>& lengths) {
  std::vector<uint64_t> begins = {0};
  for (const uint64_t length : lengths) begins.push_back(begins.back() + length);
  return begins;
}

// Joins neighbours of one trace. Returns how many are left.
size_t Join(std::span<TraceTime> times) {
  size_t used = 0;
  for (const TraceTime at : times) {
    if (used == 0 || times[used - 1].trace != at.trace) times[used++] = {.trace = at.trace};
    times[used - 1].time_ns += at.time_ns;
  }
  return used;
}

// The time that a label has in each trace, ascending, written to `times`. The instances
// of a trace follow each other in all evidence that was gathered; what was read from a
// file may be otherwise.
size_t AddTraces(const Evidence& evidence, std::span<const InstanceTime> touched,
                 std::span<TraceTime> times) {
  size_t used = 0;
  for (const InstanceTime& at : touched) {
    const uint32_t trace = evidence.instances[at.instance].trace;
    if (used == 0 || times[used - 1].trace != trace) times[used++] = {.trace = trace};
    times[used - 1].time_ns += at.time_ns;
  }
  const auto by_trace = [](const TraceTime& a, const TraceTime& b) { return a.trace < b.trace; };
  if (std::is_sorted(times.begin(), times.end(), by_trace)) return used;
  std::sort(times.begin(), times.end(), by_trace);
  return Join(times);
}

void AddScenarios(const Evidence& evidence, std::span<const InstanceTime> touched, Metrics& m) {
  std::map<uint32_t, int64_t> scenarios;
  for (const InstanceTime& at : touched) {
    scenarios[evidence.instances[at.instance].scenario] += at.time_ns;
  }
  m.scenarios.assign(scenarios.begin(), scenarios.end());
  std::stable_sort(m.scenarios.begin(), m.scenarios.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

// Puts the instances into another order.
void AddPercentiles(const Evidence& evidence, std::span<InstanceTime> touched, Metrics& m) {
  m.instances = touched.size();
  if (touched.empty()) return;
  std::sort(touched.begin(), touched.end(), Costlier);
  m.p50_ns = NearestRank(touched, 50);
  m.p95_ns = NearestRank(touched, 95);
  m.max_ns = touched.front().time_ns;
  m.examples = Examples(evidence, touched);
}

}  // namespace

std::vector<LabelTime> MeasureTimes(const Evidence& evidence, const Cover& cover, size_t count) {
  std::vector<LabelTime> times(count);
  WalkRows(
      evidence, cover, count, [](const PathRow&, uint32_t, bool) {},
      [&](uint32_t label, uint32_t, int64_t time_ns) {
        times[label].time_ns += time_ns;
        times[label].impact = Saturated(times[label].impact, time_ns);
      });
  return times;
}

std::vector<Metrics> Measure(const Evidence& evidence, const StackLabels& labels,
                             const Cover& cover, size_t count) {
  std::vector<Metrics> metrics(count);
  std::vector<uint64_t> instances(count);
  std::vector<uint64_t> traces(count);
  std::vector<uint32_t> last_trace(count, UINT32_MAX);
  WalkRows(
      evidence, cover, count,
      [&](const PathRow& row, uint32_t label, bool counts) {
        AddRow(evidence, row, counts, metrics[label]);
      },
      [&](uint32_t label, uint32_t instance, int64_t time_ns) {
        metrics[label].impact = Saturated(metrics[label].impact, time_ns);
        ++instances[label];
        const uint32_t trace = evidence.instances[instance].trace;
        traces[label] += std::exchange(last_trace[label], trace) == trace ? 0 : 1;
      });
  AddReady(evidence, labels, metrics);
  AddCompositions(evidence, cover, metrics);
  AddDistinct(evidence, labels, metrics);

  std::vector<uint64_t> next = PiecesOf(instances);
  LargeVector<InstanceTime> touched(next.back());
  WalkRows(
      evidence, cover, count, [](const PathRow&, uint32_t, bool) {},
      [&](uint32_t label, uint32_t instance, int64_t time_ns) {
        touched[next[label]++] = {instance, time_ns};
      });
  const std::vector<uint64_t> trace_begins = PiecesOf(traces);
  const auto times = std::make_shared<LargeVector<TraceTime>>(trace_begins.back());
  for (size_t i = 0; i < count; ++i) {
    const std::span of_label(touched.data() + (next[i] - instances[i]), instances[i]);
    const std::span place(times->data() + trace_begins[i], traces[i]);
    Metrics& m = metrics[i];
    m.traces = AddTraces(evidence, of_label, place);
    m.by_trace = place.first(m.traces);
    m.times = times;
    AddScenarios(evidence, of_label, m);
    AddPercentiles(evidence, of_label, m);
    LargeMemory::KeepWithinBound();
  }
  return metrics;
}

}  // namespace culprit::stackmine
