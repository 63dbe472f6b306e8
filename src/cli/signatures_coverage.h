// SPDX-License-Identifier: Apache-2.0
//
// culprit signatures coverage and check: a corpus held against the store.
// Coverage is the time that any signature has, over the time of all instances
// (StackMine §VII); check is for CI.
#pragma once

#include "cli/command.h"

namespace culprit::cli {

Command CoverageCommand();
Command SignaturesCheckCommand();

}  // namespace culprit::cli
