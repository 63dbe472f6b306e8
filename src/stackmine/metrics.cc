// SPDX-License-Identifier: Apache-2.0
#include "stackmine/metrics.h"

#include <algorithm>
#include <map>

namespace culprit::stackmine {
namespace {

struct InstanceTime {
  uint32_t instance = 0;
  int64_t time_ns = 0;
};

// Sums of the rows, and per label the instances it touched.
class RowWalk {
 public:
  RowWalk(const Evidence& evidence, const StackLabels& labels, const Cover& cover, size_t count)
      : evidence_(evidence),
        labels_(labels),
        cover_(cover),
        metrics(count),
        touched(count),
        current_ns_(count) {}

  void Run() {
    RowCursor rows(evidence_.rows);
    for (uint32_t i = 0; i < evidence_.instances.size(); ++i) {
      const uint64_t end = evidence_.instances[i].rows_end;
      for (const PathRow& row : rows.Read(evidence_.rows_begin(i), end)) AddRow(row);
      for (const uint32_t label : seen_) {
        if (current_ns_[label] > 0) touched[label].push_back({i, current_ns_[label]});
        current_ns_[label] = 0;
      }
      seen_.clear();
    }
  }

 private:
  void AddRow(const PathRow& row) {
    const PathNode& node = evidence_.forest.nodes()[row.node];
    if (node.kind == PathKind::kReady && node.stack != kNoStack) {
      for (const uint32_t label : labels_.wait[node.stack]) metrics[label].ready_ns += row.cost_ns;
    }
    for (const uint32_t label : cover_.sets[cover_.own[row.node]]) {
      Metrics& m = metrics[label];
      m.cost_ns += row.cost_ns;
      m.events += row.events;
      if (node.kind == PathKind::kWait) {
        m.class_ns[static_cast<size_t>(node.wait_class)] += row.cost_ns;
      }
      if (cover_.Has(cover_.above[row.node], label)) continue;
      m.time_ns += row.cost_ns;
      if (current_ns_[label] == 0) seen_.push_back(label);
      current_ns_[label] += row.cost_ns;
    }
  }

  const Evidence& evidence_;
  const StackLabels& labels_;
  const Cover& cover_;

 public:
  std::vector<Metrics> metrics;
  std::vector<std::vector<InstanceTime>> touched;

 private:
  std::vector<int64_t> current_ns_;  // by label, of the instance at hand
  std::vector<uint32_t> seen_;
};

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

int64_t NearestRank(const std::vector<InstanceTime>& costliest_first, uint64_t percent) {
  const uint64_t n = costliest_first.size();
  const uint64_t rank = (n * percent + 99) / 100;  // from the cheapest, at least 1
  return costliest_first[n - std::max<uint64_t>(1, rank)].time_ns;
}

// The costliest of each trace first, so that examples are of different ones.
std::vector<uint32_t> Examples(const Evidence& evidence, const std::vector<InstanceTime>& sorted) {
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

uint64_t Saturated(uint64_t sum, int64_t time_ns) {
  const auto time_us = static_cast<uint64_t>(time_ns / 1000);
  uint64_t square = 0;
  if (__builtin_mul_overflow(time_us, time_us, &square) ||
      __builtin_add_overflow(sum, square, &sum)) {
    return UINT64_MAX;
  }
  return sum;
}

void AddInstances(const Evidence& evidence, std::vector<InstanceTime> touched, Metrics& m) {
  std::map<uint32_t, int64_t> traces;
  std::map<uint32_t, int64_t> scenarios;
  for (const InstanceTime& at : touched) {
    m.impact = Saturated(m.impact, at.time_ns);
    traces[evidence.instances[at.instance].trace] += at.time_ns;
    scenarios[evidence.instances[at.instance].scenario] += at.time_ns;
  }
  m.instances = touched.size();
  m.traces = traces.size();
  m.by_trace.assign(traces.begin(), traces.end());
  m.scenarios.assign(scenarios.begin(), scenarios.end());
  std::stable_sort(m.scenarios.begin(), m.scenarios.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (touched.empty()) return;
  std::sort(touched.begin(), touched.end(), Costlier);
  m.p50_ns = NearestRank(touched, 50);
  m.p95_ns = NearestRank(touched, 95);
  m.max_ns = touched.front().time_ns;
  m.examples = Examples(evidence, touched);
}

}  // namespace

std::vector<Metrics> Measure(const Evidence& evidence, const StackLabels& labels,
                             const Cover& cover, size_t count) {
  RowWalk walk(evidence, labels, cover, count);
  walk.Run();
  AddCompositions(evidence, cover, walk.metrics);
  AddDistinct(evidence, labels, walk.metrics);
  for (size_t i = 0; i < count; ++i) {
    AddInstances(evidence, std::move(walk.touched[i]), walk.metrics[i]);
  }
  return std::move(walk.metrics);
}

}  // namespace culprit::stackmine
