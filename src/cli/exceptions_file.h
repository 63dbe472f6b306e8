// SPDX-License-Identifier: Apache-2.0
//
// The file of known exceptions (003 §5.2.5): behaviours that are as they should
// be, such as a driver that stops the disk while the machine moves. One glob over
// signatures a line; what follows a # at the beginning of a line or after a blank
// is for people, and so are empty lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::cli {

std::vector<std::string> ParseExceptions(std::string_view text);
Result<std::vector<std::string>> ReadExceptions(const std::string& path);

}  // namespace culprit::cli
