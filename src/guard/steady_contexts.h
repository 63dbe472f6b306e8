// SPDX-License-Identifier: Apache-2.0
//
// Which contexts are steady: a type's units enter them always, or never, whatever
// else they do. A type that is known by one or two contexts is not recognised when a
// slow unit enters something unusual besides; the more steady ones it has, the less
// that matters. StillWanted says how much a function's contexts would add: entries
// in the sets of types that have fewer than kWanted of them.
//
// O(entries of all shapes); immutable but for Add.
#pragma once

#include <cstdint>
#include <vector>

#include "guard/context_numbers.h"
#include "guard/profile.h"

namespace culprit::guard {

class SteadyContexts {
 public:
  static constexpr uint32_t kWanted = 8;  // of a type

  SteadyContexts(const Profile& profile, const ContextNumbers& numbers, uint32_t halves);

  bool IsSteady(uint32_t context) const { return steady_[context]; }
  // Weighted by the logarithm of the types' units, so that rare ones count too.
  uint64_t StillWanted(const std::vector<uint32_t>& contexts) const;
  // These are guarded from now on.
  void Add(const std::vector<uint32_t>& contexts);

 private:
  std::vector<bool> steady_;                  // by context
  std::vector<std::vector<uint32_t>> types_;  // by context: those that have it
  std::vector<uint32_t> weight_;              // by type
  std::vector<uint32_t> has_;                 // by type: guarded contexts
};

}  // namespace culprit::guard
