// SPDX-License-Identifier: Apache-2.0
//
// Synthesize: a whole corpus with known truth. Traces are simulated in
// parallel, staged in the corpus folder and added in one step, so a run that
// fails leaves no half corpus behind; truth.json comes last. Same options, same
// bytes, whatever the number of jobs.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "synth/simulation.h"
#include "synth/truth.h"

namespace culprit::synth {

struct SynthesisOptions {
  SimulationOptions simulation;  // preset.traces is the number to make
  double scale = 1;              // only told in truth.json
  std::string folder;
  bool force = false;  // replace the traces of a corpus that is there
  size_t jobs = 0;     // 0: all hardware threads
};

struct SynthesisResult {
  uint64_t traces = 0;
  uint64_t instances = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
  int64_t simulated_ns = 0;
  Truth truth;
};

// The number of traces `scale` asks for: at least one.
uint64_t ScaledTraces(uint64_t traces, double scale);

Result<SynthesisResult> Synthesize(const SynthesisOptions& options, Progress& progress);

}  // namespace culprit::synth
