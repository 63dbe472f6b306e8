// SPDX-License-Identifier: Apache-2.0
//
// ContextBits: the contexts of a choice of guards as bit numbers, what a unit
// shape and a type have of them, and the types as a plan has them. A type has the
// contexts that at least half of its units enter.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "guard/context_numbers.h"
#include "guard/profile.h"
#include "guard/runtime/nearest_type.h"

namespace culprit::guard {

using ContextSet = std::array<uint64_t, wire::kContextWords>;

// Which units of training count: bit 0 the first half, bit 1 the second.
inline constexpr uint32_t kBothHalves = 3;
uint64_t UnitsOf(const UnitShape& shape, uint32_t halves);

class ContextBits {
 public:
  // At most as many guards as fit the bits.
  ContextBits(const Profile& profile, std::span<const Guard> guards);

  uint32_t size() const { return static_cast<uint32_t>(bits_.size()); }
  uint32_t BitOf(const CalledContext& context) const {
    const auto found = bits_.find(context);
    return found == bits_.end() ? kNoIndex : found->second;
  }
  // Of an entry, as the runtime has it: a context with its caller, else of any.
  uint32_t BitAt(uint32_t function, int32_t depth, uint32_t caller) const {
    const uint32_t called = BitOf({function, {depth, caller}});
    return called != kNoIndex ? called : BitOf({function, {depth}});
  }
  ContextSet OfShape(const UnitShape& shape) const;
  std::vector<ContextSet> OfTypes(uint32_t halves = kBothHalves) const;

 private:
  const Profile* profile_;
  std::map<CalledContext, uint32_t> bits_;
  std::vector<uint32_t> bit_of_place_;  // kNoIndex: none
};

// The profile's types as a plan has them; for runtime::FindNearestType.
std::vector<wire::PlanType> PlanTypesOf(const Profile& profile,
                                        const std::vector<ContextSet>& of_types);

inline runtime::UnitIdentity IdentityOf(const UnitShape& shape, const ContextSet& seen) {
  return {.loop = shape.loop, .kind = static_cast<uint32_t>(shape.kind), .contexts = seen.data()};
}

// The type of greatest Jaccard similarity among those of the unit's loop and kind; of
// equal ones that of the smallest threshold, then the first. Types that were hardly seen
// are like any other. kNoIndex: there is none.
uint32_t FindMostAlike(const Profile& profile, const std::vector<ContextSet>& of_types,
                       const UnitShape& shape, const ContextSet& seen);

}  // namespace culprit::guard
