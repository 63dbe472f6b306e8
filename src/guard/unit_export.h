// SPDX-License-Identifier: Apache-2.0
//
// Units as instances of a trace: the type is the scenario, so mining and contrast
// work on what guards found. UnitTraceMaker gathers sampled and slow units while a
// session runs and writes them as a trace of their own: processes, threads,
// instances, no events. AddUnits copies a recording of the same machine and time
// with these instances put in, by thread id and time (CLOCK_MONOTONIC in both).
//
// Memory: 40 bytes a unit, kMaxUnits at most, further ones counted. One thread at
// a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "guard/profile.h"
#include "guard/runtime/wire.h"
#include "guard/unit_report.h"
#include "trace/trace_reader.h"

namespace culprit::guard {

// The scenario of a type: "redis-server: setCommand".
std::string ScenarioName(const Profile& profile, uint32_t type);

class UnitTraceMaker {
 public:
  static constexpr size_t kMaxUnits = 5'000'000;

  // The profile must outlive it.
  explicit UnitTraceMaker(const Profile& profile) : profile_(profile) {}
  void Add(int64_t pid, std::span<const wire::Sample> samples);
  void Add(const UnitReport& report);
  Status Write(const std::string& path, Overwrite overwrite) const;
  uint64_t units() const { return units_.size(); }
  uint64_t left_out() const { return left_out_; }

 private:
  struct Unit {
    int64_t pid = 0;
    int64_t tid = 0;
    uint64_t begin_ns = 0;
    uint64_t wall_ns = 0;
    uint32_t type = wire::kUnknown;
  };
  void Keep(const Unit& unit);

  const Profile& profile_;
  std::vector<Unit> units_;
  std::map<int64_t, std::string> process_names_;
  uint64_t left_out_ = 0;
};

struct AddedUnits {
  uint64_t added = 0;
  uint64_t outside = 0;    // of another time than the recording's
  uint64_t no_thread = 0;  // whose thread it does not have
};

// Writes `recording` with the instances of `units` to the new trace `path`.
Result<AddedUnits> AddUnits(const trace::TraceReader& units, const trace::TraceReader& recording,
                            const std::string& path, Overwrite overwrite);

}  // namespace culprit::guard
