// SPDX-License-Identifier: Apache-2.0
//
// Profiles by hand, for tests: functions that are all called by the loop itself, each with
// one place of its number, and shapes as sets of these.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

// Where every place is.
inline constexpr int32_t kFlatDepth = 64;

// Without shapes and types.
inline Profile FlatProfile(uint32_t functions) {
  Profile profile;
  profile.modules = {{"ab01", "/bin/program"}};
  for (uint32_t i = 0; i < functions; ++i) {
    profile.functions.push_back({0, 0x1000 + i * 0x100ULL, {}});
    profile.paths.push_back({kNoIndex, i});
    profile.places.push_back({i, kFlatDepth});
  }
  profile.loops.resize(1);
  return profile;
}

// Units that enter each of the functions once. The type is the caller's to add.
inline void AddShape(Profile& profile, uint32_t type, std::vector<uint32_t> functions,
                     uint64_t units) {
  UnitShape shape{.type = type, .places = std::move(functions)};
  shape.hits.assign(shape.places.size(), units);
  shape.units[0] = units;
  profile.shapes.push_back(std::move(shape));
}

}  // namespace culprit::guard
