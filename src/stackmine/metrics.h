// SPDX-License-Identifier: Apache-2.0
//
// Metrics of a label (a cluster, a signature), each event counted once however
// many of its patterns match (StackMine §II, SPEC §5). All are exact and come
// from the rows of the evidence alone.
//
//   cost      clipped lengths of its events, as charged to instances; a wait
//             below another wait of the label counts with its own length
//   distinct  the same with each event counted once for all the instances it
//             was charged to: smaller where one convoy delays many
//   time      of the instances' time, each nanosecond once: never above total
//
// Percentiles are by nearest rank over the time of the instances affected. A label
// touches most instances of a corpus and a corpus has a thousand labels, so what is kept
// by label and instance, and by label and trace, is in large tables (large_memory.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/large_memory.h"
#include "stackmine/cover.h"
#include "stackmine/evidence.h"
#include "waitgraph/wait_class.h"

namespace culprit::stackmine {

// What the time of a label is made of, from the leaves below its waits.
struct Composition {
  int64_t running_ns = 0;
  int64_t ready_ns = 0;
  int64_t hardware_ns = 0;
  int64_t unexplained_ns = 0;  // nothing below: waker unknown, outside the area, a cycle
};

struct TraceTime {
  uint32_t trace = 0;
  int64_t time_ns = 0;

  bool operator==(const TraceTime&) const = default;
};

struct Metrics {
  int64_t cost_ns = 0;
  int64_t distinct_ns = 0;
  int64_t time_ns = 0;
  int64_t ready_ns = 0;  // scheduling delays right after its waits
  uint64_t events = 0;
  uint64_t instances = 0;  // with time above zero
  uint64_t traces = 0;
  int64_t p50_ns = 0;
  int64_t p95_ns = 0;
  int64_t max_ns = 0;
  // Sum over instances of the squared time in microseconds: how much it hurts,
  // if twice the delay hurts four times as much. Saturates.
  uint64_t impact = 0;
  std::array<int64_t, waitgraph::kWaitClasses> class_ns = {};  // cost by wait class
  Composition below;
  std::vector<uint32_t> examples;  // instances, costliest first, of different traces if possible
  std::vector<std::pair<uint32_t, int64_t>> scenarios;  // scenario, time; costliest first
  std::span<const TraceTime> by_trace;                  // ascending
  std::shared_ptr<const LargeVector<TraceTime>> times;  // where by_trace is, with others'

  int64_t average_ns() const { return events == 0 ? 0 : cost_ns / static_cast<int64_t>(events); }
};

inline constexpr size_t kExamples = 3;

struct LabelTime {
  int64_t time_ns = 0;
  uint64_t impact = 0;
};
// By label, `count` of them: what Measure says of these two, and nothing is kept by instance.
std::vector<LabelTime> MeasureTimes(const Evidence& evidence, const Cover& cover, size_t count);

// By label, `count` of them. The rows are read twice.
std::vector<Metrics> Measure(const Evidence& evidence, const StackLabels& labels,
                             const Cover& cover, size_t count);

}  // namespace culprit::stackmine
