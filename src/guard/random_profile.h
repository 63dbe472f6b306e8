// SPDX-License-Identifier: Apache-2.0
//
// Random small profiles without contradictions, for tests: units as random sets
// of places in a random tree of calls, in one or two loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

struct RandomProfileSize {
  uint32_t functions = 12;
  uint32_t paths = 24;
  uint32_t shapes = 12;
  uint32_t loops = 1;
};

// Types and guards are left to be found.
inline Profile RandomProfile(uint64_t seed, const RandomProfileSize& size = {}) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t bound) { return static_cast<uint32_t>(random() % bound); };
  Profile profile;
  profile.program = "/bin/server";
  profile.modules = {{"ab01", "/bin/server"}};
  for (uint32_t i = 0; i < size.functions; ++i) {
    profile.functions.push_back({0, 0x1000 + i * 0x100ULL, "function_" + std::to_string(i)});
  }
  for (uint32_t i = 0; i < 4 * size.functions; ++i) {
    profile.callers.push_back({0, 0x1000 + i * 0x40ULL + 4});
  }
  std::set<CallPath> known;
  while (profile.paths.size() < size.paths) {
    const auto count = static_cast<uint32_t>(profile.paths.size());
    const uint32_t parent = below(count + 1);
    const CallPath path{parent == count ? kNoIndex : parent, below(size.functions)};
    if (!known.insert(path).second) continue;
    profile.paths.push_back(path);
    const int32_t above = path.parent == kNoIndex ? 0 : profile.places[path.parent].depth;
    // Called from one of four places of the parent.
    const uint32_t caller =
        path.parent == kNoIndex ? kNoIndex : 4 * profile.paths[path.parent].function + below(4);
    profile.places.push_back({count, above + 16 * static_cast<int32_t>(1 + below(3)), caller});
  }
  for (uint32_t i = 0; i < size.loops; ++i) {
    ProfileLoop loop;
    // Different ones: loops with one holder are one loop.
    loop.holder = below(size.functions / size.loops) * size.loops + i;
    loop.sites.push_back({0, 0x5000 + i * 16ULL, wire::WaitCall::kEpoll, 64});
    loop.external = i % 2 == 0;
    loop.parks = i % 4 == 2;
    if (!loop.external) loop.turns = {{profile.paths[0].function, profile.places[0].depth}};
    profile.loops.push_back(loop);
  }
  std::set<std::pair<uint32_t, std::vector<uint32_t>>> sets;
  while (profile.shapes.size() < size.shapes) {
    // Variants of a few bodies, so that there is something to cluster.
    UnitShape shape{.loop = below(size.loops)};
    std::mt19937_64 body(seed * 31 + below(4));
    for (uint32_t place = 0; place < size.paths; ++place) {
      const bool in_body = body() % 2 == 0;
      if (in_body != (below(12) == 0)) shape.places.push_back(place);
    }
    if (!sets.insert({shape.loop, shape.places}).second) continue;
    shape.units[0] = 1 + below(100);
    shape.units[1] = below(100);
    for (size_t i = 0; i < shape.places.size(); ++i) {
      shape.hits.push_back(shape.total_units() * (1 + below(3)));
    }
    profile.training.units += shape.total_units();
    profile.shapes.push_back(shape);
  }
  return profile;
}

}  // namespace culprit::guard
