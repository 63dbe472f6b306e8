// SPDX-License-Identifier: Apache-2.0
//
// Arguments of USDT probes: from where an assembler says they are, in the note of
// the probe, to what the kernel's uprobe events want to fetch them from.
//
//   arguments := argument (" " argument)*
//   argument  := size "@" operand
//   operand   := "x20" | "[sp, 152]" | "[x1]"       arm64
//              | "%rbx" | "-20(%rbp)" | "(%rax)"    x86-64
//
// A pure function of any text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::record {

// "%x20", "+152(%sp)". Nothing if there is no such argument, or it is a constant or
// in a place of another form.
std::optional<std::string> FetchOfArgument(std::string_view arguments, size_t index);

}  // namespace culprit::record
