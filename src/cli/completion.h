// SPDX-License-Identifier: Apache-2.0
//
// Completion scripts for bash, zsh and fish, made from the command table:
// commands, the second words of groups, flags, the values of choices, file
// names where a path is taken. What operands are completed to follows from how
// the table writes them: "COMMAND" is a command's name, words in small letters
// ("bash|zsh|fish") are choices, anything else is a file name.
//
// The scripts need nothing but the shell itself. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace culprit::cli {

std::string BashCompletion(const std::vector<Command>& commands);
std::string ZshCompletion(const std::vector<Command>& commands);
std::string FishCompletion(const std::vector<Command>& commands);

}  // namespace culprit::cli
