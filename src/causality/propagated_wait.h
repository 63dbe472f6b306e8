// SPDX-License-Identifier: Apache-2.0
//
// PropagatedWait: one wait event that was counted for more than one instance, and
// which those were: the cost propagation of 003 §3.2, event by event. Passive data;
// lists of them are kept short by what they cost beyond being counted once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace culprit::causality {

// A wait event that delayed more than one instance.
struct PropagatedWait {
  std::string trace;
  std::string thread;            // who waited: "process/thread (tid)"
  std::string waker;             // who ended it
  std::string signature;         // of the wait, and
  std::string unwait_signature;  // of what ended it; may be empty
  int64_t begin_ns = 0;          // since the trace's begin
  int64_t dur_ns = 0;
  uint64_t instances = 0;   // it was counted for
  int64_t charged_ns = 0;   // to all of them
  int64_t distinct_ns = 0;  // each nanosecond once
  // Numbers of those instances in the trace, ascending, at most kMaxNamedInstances.
  std::vector<uint32_t> instance_indexes;
};
inline constexpr size_t kMaxNamedInstances = 100;
inline constexpr size_t kMaxPropagatedWaits = 100;

// Orders by charged_ns - distinct_ns, most first, then by trace, time and thread,
// and drops all but the first kMaxPropagatedWaits.
void KeepMostPropagated(std::vector<PropagatedWait>& waits);

}  // namespace culprit::causality
