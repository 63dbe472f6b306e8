// SPDX-License-Identifier: Apache-2.0
//
// Which contexts are steady: a type's units enter them always, or never, whatever
// else they do. Two types that one context parts are taken for each other by units that
// do not enter it this time: StillClose says how much a function's contexts would add to
// what parts types, for which they need be steady in these two only. A type that is known by one or
// two contexts is not recognised when a slow unit enters something unusual besides; the more steady
// ones it has, the less that matters: StillWanted says how much would be added to those. A type
// whose units do more is to have more of them: what does two things that training saw apart (a
// query, and the commit behind it) is then like the greater one, as it is by all it calls.
//
// O(entries of all shapes + types²) to make, O(types²) a context to ask; immutable but
// for Add. What is asked never grows by Add.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "guard/context_numbers.h"
#include "guard/profile.h"

namespace culprit::guard {

class SteadyContexts {
 public:
  static constexpr uint32_t kWanted = 8;  // of a type with as many paths as the typical unit
  static constexpr uint32_t kFewestWanted = 3;
  static constexpr uint32_t kMostWanted = 16;
  static constexpr uint8_t kParting = 3;  // functions, for two types

  SteadyContexts(const Profile& profile, const ContextNumbers& numbers, uint32_t halves);

  bool IsSteady(uint32_t context) const { return steady_[context]; }
  // Of the contexts of one function: pairs of types of one loop and kind that they part, and
  // fewer than kParting functions so far, most of all those that nothing parts. Weighted, here
  // and below, by the logarithm of the types' units, so that rare ones count too.
  uint64_t StillClose(const std::vector<uint32_t>& contexts) const;
  // Types that have these contexts, and fewer than they are to have so far.
  uint64_t StillWanted(const std::vector<uint32_t>& contexts) const;
  // These, of one function, are guarded from now on.
  void Add(const std::vector<uint32_t>& contexts);

 private:
  // Numbers of pairs, ascending.
  std::vector<size_t> PartedBy(const std::vector<uint32_t>& contexts) const;

  std::vector<bool> steady_;                      // by context
  std::vector<std::vector<uint32_t>> always_;     // by context: types whose units enter it
  std::vector<std::vector<uint32_t>> sometimes_;  // and those of which some do
  std::vector<std::vector<uint32_t>> types_;      // by context: those that have it
  std::vector<uint32_t> weight_;                  // by type
  std::vector<uint32_t> wanted_;                  // by type: guarded contexts that it is to have
  std::vector<uint32_t> has_;                     // and those that it has
  std::vector<std::vector<uint32_t>> fellows_;    // by type: those of its loop and kind
  std::vector<uint8_t> parted_;                   // by pair: guarded functions, up to kParting
};

}  // namespace culprit::guard
