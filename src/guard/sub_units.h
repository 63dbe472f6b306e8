// SPDX-License-Identifier: Apache-2.0
//
// Levels at which the iterations of a loop are cut into sub-units.
//
// Handlers: one wait may return many ready events. The handler level is the
// shallowest depth at which some functions are together entered as often as
// events were ready, in nearly all iterations; they are gathered greedily. There
// is none unless enough iterations had several ready events.
// Commands: inside handlers (pipelined_commands.h).
// Tails: what begins, at handler depth or above, only after the last handler.
//
// Pure functions over sampled iterations; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

// An entry, or (function == kInput) bytes received, in order.
struct IterationEvent {
  static constexpr uint32_t kInput = UINT32_MAX;
  uint32_t function = 0;
  int32_t depth = 0;  // bytes, as Context::depth; of input: their number
};

struct SampledIteration {
  uint64_t ready = 0;
  std::vector<IterationEvent> events;
};

struct SubUnitLevels {
  std::vector<Context> handlers;  // all ascending
  std::vector<Context> commands;
  std::vector<Context> tails;
};

inline bool IsOneOf(const std::vector<Context>& contexts, const IterationEvent& event) {
  return std::binary_search(contexts.begin(), contexts.end(), Context{event.function, event.depth});
}
// A context as one number, and back.
inline uint64_t KeyOf(const IterationEvent& event) {
  return uint64_t{event.function} << 32 | static_cast<uint32_t>(event.depth);
}
inline Context ContextOf(uint64_t key) {
  return {static_cast<uint32_t>(key >> 32), static_cast<int32_t>(static_cast<uint32_t>(key))};
}

SubUnitLevels FindSubUnitLevels(const std::vector<SampledIteration>& iterations);

// Every n-th iteration of a loop, n doubled whenever there are too many events.
class IterationSample {
 public:
  explicit IterationSample(size_t max_events = size_t{4} << 20) : max_events_(max_events) {}

  void Begin(uint64_t ready);
  void Add(const IterationEvent& event) {
    if (!taking_) return;
    if (current_.events.size() == kMaxEventsOfOne) {
      taking_ = false;  // too long to say anything about a level
      return;
    }
    current_.events.push_back(event);
  }
  void End(bool complete);
  const std::vector<SampledIteration>& iterations() const { return kept_; }

 private:
  static constexpr size_t kMaxEventsOfOne = 100'000;
  void Thin();

  size_t max_events_;
  size_t events_ = 0;
  uint64_t every_ = 1;
  uint64_t seen_ = 0;
  bool taking_ = false;
  SampledIteration current_;
  std::vector<SampledIteration> kept_;
};

}  // namespace culprit::guard
