// SPDX-License-Identifier: Apache-2.0
//
// The help texts, made from the command table: of one command, of a group of
// two-word commands ("corpus"), of the whole program. Examples come first,
// then usage, flags with their defaults, and the details. Text is filled to a
// width; paragraphs of `details` are parted by empty lines, lines that begin
// with a space are kept as they are. Pure functions over the given commands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace culprit::cli {

std::string HelpText(const Command& command, size_t width = 80);
std::string GroupText(const std::vector<Command>& commands, std::string_view group,
                      size_t width = 80);
std::string OverviewText(const std::vector<Command>& commands, size_t width = 80);

// "corpus" for "corpus add", empty for a command of one word.
std::string_view GroupOf(const Command& command);
// "culprit export TRACE --to json|folded [flags]"
std::string UsageLine(const Command& command);
// "--to json|folded", "--seed N", "--force"
std::string FlagForm(const Flag& flag);
// --help as a row of the flag table, for all commands.
const Flag& HelpFlag();

// A run of text that help and man pages set alike: to be filled, or verbatim.
struct Paragraph {
  std::string text;
  bool verbatim = false;
};
std::vector<Paragraph> Paragraphs(std::string_view details);

}  // namespace culprit::cli
