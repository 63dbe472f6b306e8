// SPDX-License-Identifier: Apache-2.0
//
// Globs: "*" stands for any characters, "?" for one, everything else for itself
// (brackets too: "[ext4]!*"). Pure, no recursion, O(glob × text) at worst.
#pragma once

#include <string_view>

namespace culprit {

// The whole text against the glob.
bool MatchesGlob(std::string_view glob, std::string_view text);

}  // namespace culprit
