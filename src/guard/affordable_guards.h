// SPDX-License-Identifier: Apache-2.0
//
// ChooseAffordable: which of a profile's guards a plan takes if it may have so many hits a
// unit. They stand in the order of choice, and the first ones that fit are taken; but a
// dear one that does not fit any more may tell more than all the cheap ones behind it. So
// each that was left out is tried in place of later ones, and stays if more units of
// training are then told right; and where more than one unit in a thousand is not told right, each
// that was taken is tried without, for what told types apart beside others may mislead without
// them. Functions that cut sub-units are taken in any case; one that only says again what others
// say, for loads that training did not see, not if it is entered more than once a unit.
//
// O(kMaxTrials x judging all shapes); deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

struct AffordableOptions {
  uint64_t max_hits_per_mega_unit = UINT64_MAX;
  uint32_t max_guards = 512;
};

struct AffordableGuards {
  std::vector<uint32_t> numbers;  // in the profile, ascending
  uint64_t hits_per_mega_unit = 0;
  uint64_t units = 0;  // of training
  uint64_t right = 0;  // of these, told right
};

AffordableGuards ChooseAffordable(const Profile& profile, const AffordableOptions& options);
std::vector<Guard> GuardsOf(const Profile& profile, const AffordableGuards& affordable);

}  // namespace culprit::guard
