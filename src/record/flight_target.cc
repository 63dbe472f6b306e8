// SPDX-License-Identifier: Apache-2.0
#include "record/flight_target.h"

#include <algorithm>

#include "record/symbol_pass.h"
#include "trace/used_names.h"

namespace culprit::record {
namespace {

constexpr size_t kMaxInstances = 1 << 20;

// With their share of tables that find them; of a process also its command line and mappings.
constexpr uint64_t kStackBytes = 32;
constexpr uint64_t kFrameBytes = 96;
constexpr uint64_t kThreadBytes = 128;
constexpr uint64_t kProcessBytes = 8192;

// Nothing if it lies outside.
bool CutTo(int64_t from_ns, int64_t end_ns, trace::Event& event) {
  const bool is_moment = event.dur_ns == 0 && event.time_ns >= from_ns;
  if (event.time_ns >= end_ns && !(is_moment && event.time_ns == end_ns)) return false;
  if (event.end_ns() <= from_ns && !is_moment) return false;
  const int64_t cut_end_ns = std::min(event.end_ns(), end_ns);
  event.time_ns = std::max(event.time_ns, from_ns);
  event.dur_ns = cut_end_ns - event.time_ns;
  return true;
}

}  // namespace

FlightTarget::FlightTarget(int64_t window_ns, uint64_t max_bytes)
    : window_ns_(window_ns), max_events_(std::max<size_t>(1, max_bytes / sizeof(trace::Event))) {}

// Events come when they are complete, so nearly by their ends.
void FlightTarget::Evict() {
  if (holds_) return;
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

void FlightTarget::Release() {
  holds_ = false;
  Evict();
}

Status FlightTarget::Add(const trace::Event& event) {
  latest_ns_ = std::max(latest_ns_, event.end_ns());
  events_.push_back(event);
  Evict();
  return {};
}

void FlightTarget::AddInstance(const trace::Instance& instance) { instances_.push_back(instance); }

uint64_t FlightTarget::names_bytes() const {
  return dictionary_.stacks().size() * kStackBytes + dictionary_.frames().size() * kFrameBytes +
         dictionary_.threads().size() * kThreadBytes +
         dictionary_.processes().size() * kProcessBytes;
}

trace::Trace FlightTarget::Cut(int64_t end_ns) const {
  trace::Trace trace;
  const int64_t from_ns = std::max({end_ns - window_ns_, evicted_ns_, metadata_.begin_ns});
  trace.metadata = metadata_;
  trace.metadata.wall_start_ns += from_ns - metadata_.begin_ns;
  trace.metadata.begin_ns = from_ns;
  trace.metadata.end_ns = std::max(from_ns, end_ns);
  for (trace::Event event : events_) {
    if (CutTo(from_ns, trace.metadata.end_ns, event)) trace.events.push_back(event);
  }
  for (const trace::Instance& instance : instances_) {
    if (instance.t0_ns >= from_ns && instance.t1_ns <= trace.metadata.end_ns) {
      trace.instances.push_back(instance);
    }
  }
  return trace;
}

Status FlightTarget::WriteTo(const std::string& path, int64_t end_ns, bool symbols) const {
  trace::Trace trace = Cut(end_ns);
  trace::CopyUsedNames(dictionary_, trace);
  SymbolizeTrace(trace, symbols);
  return trace::WriteTrace(trace, path, Overwrite::kAllow);
}

}  // namespace culprit::record
