// SPDX-License-Identifier: Apache-2.0
#include "synth/simulation.h"

#include <array>
#include <string>

#include "synth/computer.h"
#include "synth/machine.h"

namespace culprit::synth {
namespace {

constexpr int64_t kSamplePeriodNs = 1'000'000;

// Streams of the seed: what a machine is, and what happens on it.
constexpr uint64_t kFleetStream = 1ULL << 62;
constexpr uint64_t kTraceStream = 1ULL << 63;

}  // namespace

trace::Metadata TraceMetadata(const SimulationOptions& options, uint64_t index) {
  static constexpr std::array<std::string_view, 4> kVersions = {"4.0.1", "4.1.0", "4.1.2", "4.2.0"};
  static constexpr std::array<std::string_view, 3> kBuilds = {"6.1.7600", "6.1.7601", "6.2.9200"};
  static constexpr std::array<std::string_view, 3> kRings = {"canary", "early", "broad"};
  Random random(options.seed, kFleetStream + index);
  trace::Metadata metadata;
  // A machine sends several traces.
  const uint64_t machine = random.Below(options.preset.traces / 3 + 1);
  std::string digits = std::to_string(machine);
  metadata.machine = "pc-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  metadata.os = options.preset.desktop ? "SynthOS" : "SynthOS Server";
  metadata.kernel = kBuilds[Mix(machine) % kBuilds.size()];
  metadata.arch = "arm64";
  metadata.app = options.preset.desktop ? "Desktop" : "httpd";
  metadata.app_version = kVersions[random.Skewed(kVersions.size())];
  metadata.source = "culprit synth " CULPRIT_VERSION;
  metadata.clock = "simulated";
  metadata.begin_ns = 1'000'000'000 + static_cast<int64_t>(random.Below(3'600)) * 1'000'000'007;
  metadata.end_ns = metadata.begin_ns + options.preset.dur_ns;
  metadata.cpus = static_cast<uint32_t>(options.preset.cores);
  metadata.sample_period_ns = kSamplePeriodNs;
  metadata.has_switches = true;
  metadata.has_wakers = true;
  metadata.labels["like"] = options.preset.name;
  metadata.labels["ring"] = kRings[Mix(machine + 7) % kRings.size()];
  return metadata;
}

SimulationResult SimulateTrace(const World& world, const SimulationOptions& options, uint64_t index,
                               EventSink& sink) {
  const trace::Metadata metadata = TraceMetadata(options, index);
  Machine machine(world, sink,
                  {.cores = options.preset.cores,
                   .begin_ns = metadata.begin_ns,
                   .end_ns = metadata.end_ns,
                   .sample_period_ns = kSamplePeriodNs,
                   .syscall_stacks = options.syscall_stacks},
                  Random(options.seed, kTraceStream + index));
  Computer computer(world, options.preset, options.plants, index, machine);
  machine.Run();
  SimulationResult result;
  result.truth = machine.timeline().truth();
  result.events = machine.timeline().events();
  result.instances = machine.timeline().instances().size();
  result.disk_busy_ns = machine.DiskBusyNs(computer.disk);
  return result;
}

}  // namespace culprit::synth
