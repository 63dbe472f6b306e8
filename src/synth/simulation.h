// SPDX-License-Identifier: Apache-2.0
//
// SimulateTrace: one trace of a corpus, from its number. The outcome depends
// on the world's seed, the options and the number alone, so traces can be made
// in any order and in parallel. Everything goes to the sink as it happens;
// memory is the pending work of the machine plus the sink's own.
#pragma once

#include <cstdint>

#include "synth/behaviour.h"
#include "synth/preset.h"
#include "synth/timeline.h"
#include "synth/world.h"
#include "trace/trace.h"

namespace culprit::synth {

struct SimulationOptions {
  Preset preset;  // with the command line's changes
  uint64_t seed = 1;
  PlantSet plants = AllPlants();
  bool syscall_stacks = true;
};

struct SimulationResult {
  TraceTruth truth;
  uint64_t events = 0;
  uint64_t instances = 0;
  int64_t disk_busy_ns = 0;
};

// What the metadata of trace `index` will be; a function of its arguments.
trace::Metadata TraceMetadata(const SimulationOptions& options, uint64_t index);

SimulationResult SimulateTrace(const World& world, const SimulationOptions& options, uint64_t index,
                               EventSink& sink);

}  // namespace culprit::synth
