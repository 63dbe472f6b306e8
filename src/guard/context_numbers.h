// SPDX-License-Identifier: Apache-2.0
//
// ContextNumbers: the contexts <function, depth> of a profile's places as dense
// numbers, ascending, so that those of a function are neighbours. Places of
// variable depth have none. Immutable; 12 bytes a context.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

class ContextNumbers {
 public:
  explicit ContextNumbers(const Profile& profile) : of_place_(profile.places.size(), kNoIndex) {
    std::vector<std::pair<Context, uint32_t>> order;
    for (uint32_t i = 0; i < profile.places.size(); ++i) {
      const Place& place = profile.places[i];
      if (place.depth == kVariableDepth) continue;
      order.push_back({{profile.paths[place.path].function, place.depth}, i});
    }
    std::sort(order.begin(), order.end());
    for (const auto& [context, place] : order) {
      if (contexts_.empty() || contexts_.back() != context) contexts_.push_back(context);
      of_place_[place] = static_cast<uint32_t>(contexts_.size() - 1);
    }
  }
  size_t size() const { return contexts_.size(); }
  const Context& at(uint32_t number) const { return contexts_[number]; }
  uint32_t OfPlace(uint32_t place) const { return of_place_[place]; }
  // Of a shape, ascending.
  std::vector<uint32_t> OfShape(const UnitShape& shape) const {
    std::vector<uint32_t> numbers;
    for (const uint32_t place : shape.places) {
      if (of_place_[place] != kNoIndex) numbers.push_back(of_place_[place]);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

 private:
  std::vector<Context> contexts_;
  std::vector<uint32_t> of_place_;
};

}  // namespace culprit::guard
