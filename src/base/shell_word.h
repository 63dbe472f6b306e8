// SPDX-License-Identifier: Apache-2.0
//
// A word as a shell must be given it, for commands that are printed to be
// copied: as it is where every character is harmless, else between quotes.
// Pure function.
#pragma once

#include <string>
#include <string_view>

namespace culprit {

std::string ShellWord(std::string_view word);

}  // namespace culprit
