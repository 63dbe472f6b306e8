// SPDX-License-Identifier: Apache-2.0
//
// Preset: the shape of a corpus, modelled on the studies of the papers: how
// many traces, how long, how busy, and how often planted behaviours strike.
// Static data; the command line overrides some of it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "synth/behaviour.h"

namespace culprit::synth {

struct Preset {
  std::string_view name;
  std::string_view what;  // one line for people
  size_t traces = 0;      // at scale 1
  int64_t dur_ns = 0;     // of a trace
  size_t cores = 4;
  size_t mean_depth = 37;

  bool desktop = true;
  bool server = false;
  int64_t think_ns = 0;              // mean pause of a user between two instances
  int64_t launch_interval_ns = 0;    // between two starts of an application
  size_t generated_scenarios = 0;    // besides the named ones
  size_t pipelines = 0;              // chains of threads that pass messages on
  int64_t pipeline_interval_ns = 0;  // between two messages of one chain
  int64_t stage_compute_ns = 0;      // median per message and thread
  int64_t job_interval_ns = 0;       // between two small jobs of services
  size_t housekeepers = 0;
  int64_t request_interval_ns = 0;  // between two requests to the server

  uint64_t strike_percent = 0;  // of traces that a behaviour strikes, each on its own
  uint64_t max_strikes = 1;     // in such a trace
};

const std::vector<Preset>& Presets();
const Preset* FindPreset(std::string_view name);

}  // namespace culprit::synth
