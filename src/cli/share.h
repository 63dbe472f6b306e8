// SPDX-License-Identifier: Apache-2.0
//
// Shares as people write them: "3%", "3 %", "0.03", "0".
#pragma once

#include <string_view>

#include "cli/command.h"

namespace culprit::cli {

// The flag's value, from 0 to `most`.
Result<double> ReadShare(const Arguments& arguments, std::string_view flag, double most);

}  // namespace culprit::cli
