// SPDX-License-Identifier: Apache-2.0
//
// The makers of the guard commands, one a file, and what several of them share.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.h"

namespace culprit::cli {

Command GuardTrainCommand();
Command GuardShowCommand();
Command GuardRunCommand();
Command GuardAttachCommand();
Command GuardDetachCommand();
Command GuardExportCommand();
Command GuardCallsCommand();

// "1%", "0.01" in millionths.
Result<uint64_t> ParseBudgetPpm(std::string text);
Result<int64_t> ParsePid(const std::string& text);

}  // namespace culprit::cli
