// SPDX-License-Identifier: Apache-2.0
//
// Names for people. NameFunctions looks the profile's functions up in the symbol
// tables of their modules (those found now with the same build-id); the others
// stay unnamed and print as module+offset. NameTypes calls each type by a function
// that most of its units enter and fewest other types do, the one nearest to the
// loop if there are several, and where that is not enough by a second one:
// "getCommand", "setCommand > libjemalloc.so.2+0x67640".
#pragma once

#include <string>

#include "guard/profile.h"

namespace culprit::guard {

// `debug_folder`: where to look for separate symbols besides the usual place.
void NameFunctions(Profile& profile, const std::string& debug_folder);
void NameTypes(Profile& profile);

}  // namespace culprit::guard
