// SPDX-License-Identifier: Apache-2.0
//
// RunCulprit: the whole program on given words (without the program's name)
// and a given Output, so that tests run it in-process. Finds the command by
// the longest name that matches, answers --help and --version, prints errors
// with their hints, and gives the exit code: 0 done, 1 failed, 2 the command
// line was wrong. Never exits and never throws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace culprit::cli {

int RunCulprit(const std::vector<std::string>& words, Output& output);

// "culprit: FILE: MESSAGE (at byte N)", then "  hint: ..." if there is one.
void PrintError(const Error& error, Output& output);

std::string_view Version();

}  // namespace culprit::cli
