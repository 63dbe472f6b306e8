// SPDX-License-Identifier: Apache-2.0
#include "record/flight_target.h"

#include <algorithm>

#include "record/symbol_pass.h"

namespace culprit::record {
namespace {

constexpr size_t kMaxInstances = 1 << 20;

// Nothing if it lies before `from_ns`.
bool CutAt(int64_t from_ns, trace::Event& event) {
  if (event.time_ns >= from_ns) return true;
  if (event.end_ns() <= from_ns) return false;
  event.dur_ns = event.end_ns() - from_ns;
  event.time_ns = from_ns;
  return true;
}

}  // namespace

FlightTarget::FlightTarget(int64_t window_ns, uint64_t max_bytes)
    : window_ns_(window_ns), max_events_(std::max<size_t>(1, max_bytes / sizeof(trace::Event))) {}

// Events come when they are complete, so nearly by their ends.
void FlightTarget::Evict() {
  while (!events_.empty() &&
         (events_.front().end_ns() < latest_ns_ - window_ns_ || events_.size() > max_events_)) {
    evicted_ns_ = std::max(evicted_ns_, events_.front().end_ns());
    events_.pop_front();
  }
  while (!instances_.empty() && (instances_.front().t1_ns < latest_ns_ - window_ns_ ||
                                 instances_.size() > kMaxInstances)) {
    instances_.pop_front();
  }
}

Status FlightTarget::Add(const trace::Event& event) {
  latest_ns_ = std::max(latest_ns_, event.end_ns());
  events_.push_back(event);
  Evict();
  return {};
}

void FlightTarget::AddInstance(const trace::Instance& instance) { instances_.push_back(instance); }

Status FlightTarget::WriteTo(const std::string& path, int64_t end_ns, bool symbols) const {
  const int64_t from_ns = std::max({end_ns - window_ns_, evicted_ns_, metadata_.begin_ns});
  trace::Trace trace;
  trace.metadata = metadata_;
  trace.metadata.wall_start_ns += from_ns - metadata_.begin_ns;
  trace.metadata.begin_ns = from_ns;
  trace.metadata.end_ns = end_ns;
  trace::CopyDictionary(dictionary_, trace.dictionary);
  for (trace::Event event : events_) {
    if (!CutAt(from_ns, event)) continue;
    trace.metadata.end_ns = std::max(trace.metadata.end_ns, event.end_ns());
    trace.events.push_back(event);
  }
  for (const trace::Instance& instance : instances_) {
    if (instance.t0_ns >= from_ns) trace.instances.push_back(instance);
  }
  SymbolizeTrace(trace, symbols);
  return trace::WriteTrace(trace, path, Overwrite::kAllow);
}

}  // namespace culprit::record
