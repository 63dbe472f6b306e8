// SPDX-License-Identifier: Apache-2.0
//
// Id<Tag>: a 32-bit index that cannot be mixed up with an index into another
// table. A default Id is none(): it points nowhere. Ids are dense, given in
// order of interning, and valid only within the table that gave them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace culprit {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(size_t index) : value(static_cast<uint32_t>(index)) {}

  static constexpr Id none() { return Id(); }
  constexpr bool valid() const { return value != kNone; }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace culprit

template <class Tag>
struct std::hash<culprit::Id<Tag>> {
  size_t operator()(culprit::Id<Tag> id) const { return std::hash<uint32_t>()(id.value); }
};
