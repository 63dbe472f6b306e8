// SPDX-License-Identifier: Apache-2.0
#include "guard/context_bits.h"

#include <algorithm>

#include "base/ones.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kFewUnits = 5;  // a type of fewer is rare

struct SharedAndUnited {
  uint64_t shared = 0;
  uint64_t united = 0;
};

SharedAndUnited Compare(const ContextSet& x, const ContextSet& y) {
  SharedAndUnited result;
  for (size_t i = 0; i < x.size(); ++i) {
    result.shared += CountOnes(x[i] & y[i]);
    result.united += CountOnes(x[i] | y[i]);
  }
  // Two empty sets are alike.
  if (result.united == 0) result = {1, 1};
  return result;
}

}  // namespace

uint64_t UnitsOf(const UnitShape& shape, uint32_t halves) {
  return ((halves & 1) != 0 ? shape.units[0] : 0) + ((halves & 2) != 0 ? shape.units[1] : 0);
}

ContextBits::ContextBits(const Profile& profile, std::span<const Guard> guards)
    : profile_(&profile) {
  for (const Guard& guard : guards) {
    for (const GuardContext& context : guard.contexts) {
      if (bits_.size() == wire::kContextWords * 64) break;
      bits_.try_emplace({guard.function, context}, static_cast<uint32_t>(bits_.size()));
    }
  }
  for (const Place& place : profile.places) {
    const uint32_t function = profile.paths[place.path].function;
    bit_of_place_.push_back(BitAt(function, place.depth, place.caller));
  }
}

ContextSet ContextBits::OfShape(const UnitShape& shape) const {
  ContextSet set = {};
  for (const uint32_t number : shape.places) {
    const uint32_t bit = bit_of_place_[number];
    if (bit != kNoIndex) set[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  return set;
}

std::vector<ContextSet> ContextBits::OfTypes(uint32_t halves) const {
  std::vector<uint64_t> units(profile_->types.size());
  std::vector<std::vector<uint64_t>> counts(profile_->types.size(),
                                            std::vector<uint64_t>(bits_.size()));
  for (const UnitShape& shape : profile_->shapes) {
    const uint64_t weight = UnitsOf(shape, halves);
    units[shape.type] += weight;
    const ContextSet set = OfShape(shape);
    for (size_t bit = 0; bit < bits_.size(); ++bit) {
      if ((set[bit / 64] >> (bit % 64) & 1) != 0) counts[shape.type][bit] += weight;
    }
  }
  std::vector<ContextSet> sets(profile_->types.size(), ContextSet{});
  for (size_t type = 0; type < sets.size(); ++type) {
    for (size_t bit = 0; bit < bits_.size(); ++bit) {
      if (units[type] == 0 || counts[type][bit] * 2 < units[type]) continue;
      sets[type][bit / 64] |= uint64_t{1} << (bit % 64);
    }
  }
  return sets;
}

std::vector<wire::PlanType> PlanTypesOf(const Profile& profile,
                                        const std::vector<ContextSet>& of_types) {
  std::vector<wire::PlanType> rows;
  for (size_t i = 0; i < profile.types.size(); ++i) {
    const UnitType& type = profile.types[i];
    wire::PlanType& row = rows.emplace_back();
    row.kind = static_cast<uint32_t>(type.kind);
    row.loop = type.loop;
    if (type.units < kFewUnits) row.flags |= wire::PlanType::kRare;
    row.threshold_ns = type.threshold_ns == 0 ? profile.unknown_threshold_ns : type.threshold_ns;
    std::copy(of_types[i].begin(), of_types[i].end(), row.contexts);
  }
  return rows;
}

uint32_t FindMostAlike(const Profile& profile, const std::vector<ContextSet>& of_types,
                       const UnitShape& shape, const ContextSet& seen) {
  uint32_t nearest = kNoIndex;
  SharedAndUnited best{0, 1};
  for (uint32_t i = 0; i < profile.types.size(); ++i) {
    const UnitType& type = profile.types[i];
    if (type.kind != shape.kind || type.loop != shape.loop) continue;
    const SharedAndUnited now = Compare(seen, of_types[i]);
    const uint64_t ours = now.shared * best.united;
    const uint64_t theirs = best.shared * now.united;
    const bool lower =
        nearest != kNoIndex && type.threshold_ns < profile.types[nearest].threshold_ns;
    if (nearest != kNoIndex && (ours < theirs || (ours == theirs && !lower))) continue;
    nearest = i;
    best = now;
  }
  return nearest;
}

}  // namespace culprit::guard
