// SPDX-License-Identifier: Apache-2.0
//
// The contexts of a unit by their definition (context_numbers.h), for tests: every place is held
// against every other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "guard/context_numbers.h"
#include "guard/profile.h"

namespace culprit::guard {

inline bool IsEntered(const Profile& profile, uint32_t place, uint32_t loop) {
  return std::any_of(profile.shapes.begin(), profile.shapes.end(), [&](const UnitShape& shape) {
    return shape.loop == loop &&
           std::binary_search(shape.places.begin(), shape.places.end(), place);
  });
}

// From the innermost on.
inline std::vector<uint32_t> FunctionsOf(const Profile& profile, uint32_t path) {
  std::vector<uint32_t> functions;
  for (; path != kNoIndex; path = profile.paths[path].parent) {
    functions.push_back(profile.paths[path].function);
  }
  return functions;
}

inline bool AreAlike(const std::vector<uint32_t>& x, const std::vector<uint32_t>& y) {
  return std::equal(x.begin(), x.begin() + std::min(x.size(), y.size()), y.begin());
}

// By the definition: no two paths that share function and depth, and the caller
// besides, in units of one loop (these profiles have one kind of unit), unless they are
// the same but for how far out they are known.
inline bool IsAlone(const Profile& profile, const Place& place, bool same_caller) {
  std::vector<uint32_t> alike;
  for (uint32_t i = 0; i < profile.places.size(); ++i) {
    const Place& other = profile.places[i];
    if (other.depth == place.depth &&
        profile.paths[other.path].function == profile.paths[place.path].function &&
        (!same_caller || other.caller == place.caller)) {
      alike.push_back(i);
    }
  }
  for (uint32_t loop = 0; loop < profile.loops.size(); ++loop) {
    std::vector<std::vector<uint32_t>> paths;
    for (const uint32_t i : alike) {
      if (IsEntered(profile, i, loop)) {
        paths.push_back(FunctionsOf(profile, profile.places[i].path));
      }
    }
    for (const auto& x : paths) {
      for (const auto& y : paths) {
        if (!AreAlike(x, y)) return false;
      }
    }
  }
  return true;
}

inline std::vector<CalledContext> NaiveContexts(const Profile& profile, const UnitShape& shape) {
  std::set<CalledContext> contexts;
  for (const uint32_t number : shape.places) {
    const Place& place = profile.places[number];
    const uint32_t function = profile.paths[place.path].function;
    if (IsAlone(profile, place, false)) {
      contexts.insert({function, {place.depth}});
    } else if (place.caller != kNoIndex && IsAlone(profile, place, true)) {
      contexts.insert({function, {place.depth, place.caller}});
    }
  }
  return {contexts.begin(), contexts.end()};
}

}  // namespace culprit::guard
