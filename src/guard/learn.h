// SPDX-License-Identifier: Apache-2.0
//
// Learn: from the training logs of a session (runtime/wire.h) to a Profile
// without times: loops, sub-unit levels, unit types, guards. The logs are
// streamed three times, never held: for loops, for the levels at which an
// iteration is cut, and for the units themselves, of which each distinct one is
// kept once. Damage is counted in `diagnostics` and stepped over.
//
// Deterministic: the same logs give the same profile. Time: about 100 ns a
// logged entry in all. Memory: the distinct units, bounded by
// LearnOptions::max_shapes and memory_bytes. Reading takes one thread, comparing
// units all that there are.
#pragma once

#include <cstdint>
#include <string>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
#include "guard/guard_choice.h"
#include "guard/profile.h"
#include "guard/unit_types.h"

namespace culprit::guard {

struct LearnOptions {
  UnitTypeOptions types;
  GuardOptions guards;
  bool sub_units = true;
  uint64_t min_iterations = 8;  // of a loop
  uint64_t max_shapes = 20'000;
  uint64_t memory_bytes = uint64_t{1} << 30;
  bool names = true;              // look symbols up
  std::string debug_folder = {};  // beside /usr/lib/debug
};

// All logs of the session folder: every process that shares its binaries.
Result<Profile> Learn(const std::string& session_folder, const LearnOptions& options,
                      Progress& progress, Diagnostics& diagnostics);

// Types, names of types, guards and quality again from the profile's shapes.
void ChooseTypesAndGuards(Profile& profile, const LearnOptions& options);

}  // namespace culprit::guard
