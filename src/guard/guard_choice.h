// SPDX-License-Identifier: Apache-2.0
//
// ChooseGuards: the functions whose entries tell the type of a unit at least
// cost. Greedily, the function whose contexts (context_numbers.h) add most
// information about the type (of what the chosen ones leave open) per expected
// entry. Goes on until nothing is left to tell, the context bits are used up, or
// the cost exceeds the widest budget; then drops contexts that mislead
// (misleading_contexts.h) and adds functions that set right what the nearest type
// gets wrong, and, as far as limits allow, functions that tell once more what is
// told already (steady_contexts.h). Which of them a plan takes is its budget's to say
// (affordable_guards.h). Contexts that all units of a loop and kind have, or none, are not kept.
//
// Exact integers in microbits by a table of logarithms: the same on every
// machine. O(chosen x entries of all shapes).
#pragma once

#include <cstdint>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

struct GuardOptions {
  uint32_t max_guards = 256;  // functions
  uint32_t max_context_bits = 32 * 16;
  uint64_t max_hits_per_mega_unit = 20'000'000;
};

// Fills profile.guards and profile.quality.
void ChooseGuards(const GuardOptions& options, Profile& profile);

}  // namespace culprit::guard
