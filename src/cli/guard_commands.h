// SPDX-License-Identifier: Apache-2.0
//
// The makers of the guard commands, one a file.
#pragma once

#include "cli/command.h"

namespace culprit::cli {

Command GuardTrainCommand();
Command GuardShowCommand();
Command GuardRunCommand();
Command GuardAttachCommand();
Command GuardDetachCommand();
Command GuardExportCommand();
Command GuardCallsCommand();

}  // namespace culprit::cli
