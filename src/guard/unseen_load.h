// SPDX-License-Identifier: Apache-2.0
//
// JudgeUnseenLoad: how well a profile's guards tell the types of units of another
// load, against full call trees. The load ran under full tracing (training logs
// of another session); its units are cut where the profile cuts them. A unit's own
// type is the one whose units' path sets are most like its own on the average; if
// that is less than `least_similarity_ppm` the unit is like no type, and has none
// to be told. What the runtime would infer follows from the guards' contexts alone.
//
// Deterministic; damage of the logs is counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "guard/profile.h"

namespace culprit::guard {

struct UnseenLoadOptions {
  uint64_t least_similarity_ppm = 900'000;  // as types are cut
  uint64_t max_shapes = 20'000;
  uint64_t memory_bytes = uint64_t{1} << 30;
};

struct UnseenLoad {
  struct Confusion {
    uint32_t type = 0;
    uint32_t taken_for = 0;
    uint64_t units = 0;
  };
  uint64_t units = 0;                 // all
  uint64_t unlike = 0;                // of these, like no type
  uint64_t right = 0;                 // of the others, inferred as their own type
  uint64_t changed = 0;               // of the others, with a path set that training never saw
  std::vector<Confusion> confusions;  // most units first
};

Result<UnseenLoad> JudgeUnseenLoad(const Profile& profile, const std::vector<Guard>& guards,
                                   const std::string& session_folder,
                                   const UnseenLoadOptions& options, Diagnostics& diagnostics);

}  // namespace culprit::guard
