// SPDX-License-Identifier: Apache-2.0
//
// Manual pages in troff (man macros), made from the command table:
// culprit-info.1 of one command, culprit.1 of the program. Everything from the
// table is escaped: hyphens are the ASCII ones a reader can copy, backslashes
// and leading dots are text, what is beyond ASCII becomes \[uXXXX]. The pages
// carry no date, so the same program makes the same bytes. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace culprit::cli {

// "culprit-corpus-add" for "corpus add"; "culprit" for the program.
std::string ManPageName(std::string_view command_name);
std::string ManPage(const Command& command, std::string_view version);
std::string ManOverviewPage(const std::vector<Command>& commands, std::string_view version);

// Text as troff sets it unchanged, also at the start of a line.
std::string TroffText(std::string_view text);

}  // namespace culprit::cli
