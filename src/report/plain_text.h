// SPDX-License-Identifier: Apache-2.0
//
// Text that is safe to put into a line of a report, and its measure. PlainText
// replaces control characters by "?" and bytes that are not UTF-8 by U+FFFD;
// CodePoints and CodePointOffset expect text that went through it. Styled adds
// the terminal's bold or dim around a text, or nothing. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace culprit::report {

std::string PlainText(std::string_view bytes);
size_t CodePoints(std::string_view text);
// The byte where code point number `index` begins; the size past the last.
size_t CodePointOffset(std::string_view text, size_t index);

enum class Style { kBold, kDim };
std::string Styled(Style style, std::string_view text, bool color);

}  // namespace culprit::report
