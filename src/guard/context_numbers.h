// SPDX-License-Identifier: Apache-2.0
//
// ContextNumbers: what an entry of a function can be told by at run time, as
// dense numbers, ascending, so that those of a function are neighbours. A context
// is <function, depth> where one call path alone leads there (in units of one loop
// and kind: types of others are not mistaken for each other), else <function,
// depth, caller> where one path alone has that caller; paths that are the same but for how far
// out they are known are one. Places of variable depth,
// and those that even the caller leaves ambiguous, have none: what they would say
// is not known. Immutable; 20 bytes a context.
#pragma once

#include <cstdint>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

struct CalledContext {
  uint32_t function = 0;
  GuardContext context;

  auto operator<=>(const CalledContext&) const = default;
};

class ContextNumbers {
 public:
  enum class Clarity : uint8_t { kClear, kByCaller, kAmbiguous, kVariable };

  explicit ContextNumbers(const Profile& profile);

  size_t size() const { return contexts_.size(); }
  const CalledContext& at(uint32_t number) const { return contexts_[number]; }
  // kNoIndex: none.
  uint32_t Find(const CalledContext& context) const;
  uint32_t OfPlace(uint32_t place) const { return of_place_[place]; }
  Clarity ClarityOf(uint32_t place) const { return clarity_[place]; }
  // Calls from the loop to there, the entry's own included.
  uint32_t LevelOf(uint32_t number) const { return levels_[number]; }
  // Of a shape, ascending.
  std::vector<uint32_t> OfShape(const UnitShape& shape) const;

 private:
  void CountLevels(const Profile& profile);

  std::vector<CalledContext> contexts_;
  std::vector<uint32_t> levels_;  // by context
  std::vector<uint32_t> of_place_;
  std::vector<Clarity> clarity_;
};

}  // namespace culprit::guard
