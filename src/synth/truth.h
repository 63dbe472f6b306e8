// SPDX-License-Identifier: Apache-2.0
//
// Truth: what was planted in a corpus, summed over its traces from the
// simulator's own bookkeeping, and truth.json, which tells others. cost_ns is
// what a naive reader finds: the summed durations of all events of the kind
// whose stack contains the pattern. Behaviours that never struck are left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "synth/behaviour.h"
#include "synth/timeline.h"

namespace culprit::synth {

struct PlantedTruth {
  Plant plant = kOrdinary;
  uint64_t events = 0;
  int64_t cost_ns = 0;
  int64_t planted_ns = 0;
  uint64_t traces = 0;
  std::vector<std::string> instances;  // "TRACE:INDEX"
};

struct Truth {
  uint64_t seed = 0;
  std::string like;
  double scale = 1;
  uint64_t traces = 0;
  bool syscall_stacks = true;
  std::vector<PlantedTruth> bugs;

  // Traces must come in order.
  void Add(std::string_view trace_name, const TraceTruth& trace);
};

std::string TruthJson(const Truth& truth);

}  // namespace culprit::synth
