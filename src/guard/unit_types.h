// SPDX-License-Identifier: Apache-2.0
//
// Types of units: shapes clustered by their sets of call paths, within one loop
// and one kind. The distance is by default Jaccard's of the path sets (share of
// the united paths that only one has); average linkage, joined while it is at most
// the cut. Every distinct path set counts once, however many units have it.
// Option: the distance of 002's Algorithm 1 with D(X,X) = 0 (path_distance.h).
//
// Exact: similarities in fixed point, ties by order of the sets (falling number of
// units). All pairs of sets whose sizes allow it are compared, as bit sets and on
// all hardware threads. Types are numbered by falling number of units.
#pragma once

#include <cstdint>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

enum class UnitDistance { kJaccard, kAlgorithm1 };

struct UnitTypeOptions {
  UnitDistance distance = UnitDistance::kJaccard;
  uint32_t cut_ppm = 100'000;
};

// Fills profile.types (without statistics) and the type of every shape.
void FindUnitTypes(const UnitTypeOptions& options, Profile& profile);

// The distinct paths of a shape, ascending.
std::vector<uint32_t> PathSet(const Profile& profile, const UnitShape& shape);

}  // namespace culprit::guard
