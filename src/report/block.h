// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a text report around its tables: a heading, a list of facts
// ("traces   40"), a note. Each is text ended by a newline, with colour only
// when asked (bold headings, dim notes and keys), so a command concatenates
// blocks and prints them. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::report {

// One line, bold with color.
std::string Heading(std::string_view text, bool color);

using Fact = std::pair<std::string, std::string>;
// One line a fact: two spaces, the key, padded to the longest, the value.
std::string Facts(const std::vector<Fact>& facts, bool color);

// One line, dim with color.
std::string Note(std::string_view text, bool color);

}  // namespace culprit::report
