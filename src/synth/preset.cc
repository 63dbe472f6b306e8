// SPDX-License-Identifier: Apache-2.0
#include "synth/preset.h"

namespace culprit::synth {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;

// Numbers of 001: 921 traces with 140 million waiting and 41 million running
// stacks: 152,000 and 44,500 a trace.
Preset WindowsStudy() {
  Preset p;
  p.name = "windows-study";
  p.what = "the Explorer study of StackMine: few long, dense traces";
  p.traces = 921;
  p.dur_ns = 60 * kSecond;
  p.think_ns = 4 * kSecond;
  p.launch_interval_ns = 15 * kSecond;
  p.pipelines = 8;
  p.pipeline_interval_ns = 17'500'000;
  p.stage_compute_ns = 170'000;
  p.job_interval_ns = 8 * kMs;
  p.housekeepers = 6;
  p.strike_percent = 30;
  p.max_strikes = 2;
  return p;
}

// Numbers of 003: 19,500 traces, 339 hours, 505,500 instances, 1,364 scenarios.
Preset Drivers() {
  Preset p;
  p.name = "drivers";
  p.what = "the driver study of 003: many sparse traces, 1,364 scenarios";
  p.traces = 19'500;
  p.dur_ns = 62 * kSecond;
  p.think_ns = 9'500 * kMs;
  p.launch_interval_ns = 40 * kSecond;
  p.generated_scenarios = 1'353;
  p.pipelines = 2;
  p.pipeline_interval_ns = 150 * kMs;
  p.stage_compute_ns = 300'000;
  p.job_interval_ns = 200 * kMs;
  p.housekeepers = 2;
  p.strike_percent = 8;
  p.max_strikes = 2;
  return p;
}

}  // namespace

const std::vector<Preset>& Presets() {
  static const std::vector<Preset> rows = [] {
    Preset demo;
    demo.name = "demo";
    demo.what = "a small desktop fleet with everything planted";
    demo.traces = 40;
    demo.dur_ns = 8 * kSecond;
    demo.mean_depth = 30;
    demo.server = true;
    demo.think_ns = 450 * kMs;
    demo.launch_interval_ns = 1'500 * kMs;
    demo.pipelines = 3;
    demo.pipeline_interval_ns = 20 * kMs;
    demo.stage_compute_ns = 120'000;
    demo.job_interval_ns = 12 * kMs;
    demo.housekeepers = 3;
    demo.request_interval_ns = 40 * kMs;
    demo.strike_percent = 40;
    demo.max_strikes = 2;

    Preset server;
    server.name = "server";
    server.what = "web servers with system calls";
    server.traces = 100;
    server.dur_ns = 10 * kSecond;
    server.desktop = false;
    server.server = true;
    server.request_interval_ns = 3 * kMs;
    server.pipelines = 1;
    server.pipeline_interval_ns = 20 * kMs;
    server.stage_compute_ns = 100'000;
    server.housekeepers = 2;
    server.strike_percent = 40;
    server.max_strikes = 4;
    return std::vector<Preset>{demo, WindowsStudy(), Drivers(), server};
  }();
  return rows;
}

const Preset* FindPreset(std::string_view name) {
  for (const Preset& preset : Presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace culprit::synth
