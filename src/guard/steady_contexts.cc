// SPDX-License-Identifier: Apache-2.0
#include "guard/steady_contexts.h"

#include <algorithm>
#include <bit>
#include <map>

#include "guard/context_bits.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kUnsteadyShare = 50;  // one unit in so many may be otherwise

// How many paths a unit of a type has, and how many such units there are.
struct TypeSize {
  uint64_t paths = 0;
  uint64_t units = 0;
};

std::vector<TypeSize> SizesOf(const Profile& profile, uint32_t halves) {
  std::vector<TypeSize> sizes(profile.types.size());
  for (const UnitShape& shape : profile.shapes) {
    sizes[shape.type].paths += UnitsOf(shape, halves) * shape.places.size();
    sizes[shape.type].units += UnitsOf(shape, halves);
  }
  for (TypeSize& size : sizes) {
    if (size.units > 0) size.paths /= size.units;
  }
  return sizes;
}

// Those of the unit in the middle.
uint64_t TypicalPaths(std::vector<TypeSize> sizes) {
  std::sort(sizes.begin(), sizes.end(),
            [](const TypeSize& x, const TypeSize& y) { return x.paths < y.paths; });
  uint64_t left = 0;
  for (const TypeSize& size : sizes) left += size.units;
  const uint64_t half = left / 2;
  for (const TypeSize& size : sizes) {
    left -= size.units;
    if (left <= half) return size.paths;
  }
  return 0;
}

}  // namespace

SteadyContexts::SteadyContexts(const Profile& profile, const ContextNumbers& numbers,
                               uint32_t halves)
    : steady_(numbers.size()),
      always_(numbers.size()),
      sometimes_(numbers.size()),
      types_(numbers.size()),
      weight_(profile.types.size()),
      wanted_(profile.types.size(), kWanted),
      has_(profile.types.size()),
      fellows_(profile.types.size()),
      parted_(profile.types.size() * profile.types.size()) {
  for (size_t type = 0; type < profile.types.size(); ++type) {
    for (uint32_t other = 0; other < profile.types.size(); ++other) {
      const UnitType& x = profile.types[type];
      const UnitType& y = profile.types[other];
      if (x.loop == y.loop && x.kind == y.kind) fellows_[type].push_back(other);
    }
  }
  const std::vector<TypeSize> sizes = SizesOf(profile, halves);
  for (size_t type = 0; type < sizes.size(); ++type) {
    std::vector<TypeSize> of_fellows;
    for (const uint32_t fellow : fellows_[type]) of_fellows.push_back(sizes[fellow]);
    const uint64_t typical = TypicalPaths(std::move(of_fellows));
    if (typical == 0) continue;
    wanted_[type] = static_cast<uint32_t>(
        std::clamp<uint64_t>(kWanted * sizes[type].paths / typical, kFewestWanted, kMostWanted));
  }
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
      if (without * kUnsteadyShare <= units[type]) {
        always_[context].push_back(type);
      } else if (of_type * kUnsteadyShare > units[type]) {
        sometimes_[context].push_back(type);
      }
      if (of_type > 0 && of_type >= without) types_[context].push_back(type);
    }
    // Of the units that ever meet it, and of all.
    uint64_t meeting = 0;
    for (const auto& [type, of_type] : with[context]) meeting += units[type];
    steady_[context] = unsteady * kUnsteadyShare <= meeting && unsteady * kUnsteadyShare <= all;
  }
}

// Of two types one always enters a context and the other never does.
std::vector<size_t> SteadyContexts::PartedBy(const std::vector<uint32_t>& contexts) const {
  const auto has = [](const std::vector<uint32_t>& types, uint32_t type) {
    return std::binary_search(types.begin(), types.end(), type);
  };
  std::vector<size_t> pairs;
  for (const uint32_t context : contexts) {
    for (const uint32_t type : always_[context]) {
      for (const uint32_t other : fellows_[type]) {
        if (has(always_[context], other) || has(sometimes_[context], other)) continue;
        pairs.push_back(size_t{std::min(type, other)} * weight_.size() + std::max(type, other));
      }
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

uint64_t SteadyContexts::StillClose(const std::vector<uint32_t>& contexts) const {
  uint64_t close = 0;
  for (const size_t pair : PartedBy(contexts)) {
    const uint64_t missing = kParting - parted_[pair];
    const uint64_t weight = weight_[pair / weight_.size()] + weight_[pair % weight_.size()];
    close += weight * missing * missing * missing;
  }
  return close;
}

uint64_t SteadyContexts::StillWanted(const std::vector<uint32_t>& contexts) const {
  uint64_t wanted = 0;
  for (const uint32_t context : contexts) {
    if (!steady_[context]) continue;
    for (const uint32_t type : types_[context]) {
      if (has_[type] < wanted_[type]) wanted += weight_[type];
    }
  }
  return wanted;
}

void SteadyContexts::Add(const std::vector<uint32_t>& contexts) {
  for (const size_t pair : PartedBy(contexts)) {
    if (parted_[pair] < kParting) ++parted_[pair];
  }
  for (const uint32_t context : contexts) {
    for (const uint32_t type : types_[context]) ++has_[type];
  }
}

}  // namespace culprit::guard
