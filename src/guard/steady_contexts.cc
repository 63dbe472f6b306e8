// SPDX-License-Identifier: Apache-2.0
#include "guard/steady_contexts.h"

#include <algorithm>
#include <bit>
#include <map>

#include "guard/context_bits.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kUnsteadyShare = 50;  // one unit in so many may be otherwise

}  // namespace

SteadyContexts::SteadyContexts(const Profile& profile, const ContextNumbers& numbers,
                               uint32_t halves)
    : steady_(numbers.size()),
      types_(numbers.size()),
      weight_(profile.types.size()),
      has_(profile.types.size()) {
  std::vector<uint64_t> units(profile.types.size());
  std::vector<std::map<uint32_t, uint64_t>> with(numbers.size());  // context, then type
  uint64_t all = 0;
  for (const UnitShape& shape : profile.shapes) {
    const uint64_t of_shape = UnitsOf(shape, halves);
    units[shape.type] += of_shape;
    all += of_shape;
    for (const uint32_t context : numbers.OfShape(shape)) with[context][shape.type] += of_shape;
  }
  for (size_t type = 0; type < units.size(); ++type) {
    weight_[type] = static_cast<uint32_t>(std::bit_width(units[type]));
  }
  for (size_t context = 0; context < with.size(); ++context) {
    uint64_t unsteady = 0;
    for (const auto& [type, of_type] : with[context]) {
      const uint64_t without = units[type] - of_type;
      unsteady += std::min(of_type, without);
      if (of_type > 0 && of_type >= without) types_[context].push_back(type);
    }
    // Of the units that ever meet it, and of all.
    uint64_t meeting = 0;
    for (const auto& [type, of_type] : with[context]) meeting += units[type];
    steady_[context] = unsteady * kUnsteadyShare <= meeting && unsteady * kUnsteadyShare <= all;
  }
}

uint64_t SteadyContexts::StillWanted(const std::vector<uint32_t>& contexts) const {
  uint64_t wanted = 0;
  for (const uint32_t context : contexts) {
    for (const uint32_t type : types_[context]) {
      if (has_[type] < kWanted) wanted += weight_[type];
    }
  }
  return wanted;
}

void SteadyContexts::Add(const std::vector<uint32_t>& contexts) {
  for (const uint32_t context : contexts) {
    for (const uint32_t type : types_[context]) ++has_[type];
  }
}

}  // namespace culprit::guard
