// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/guard_commands.h"

namespace culprit::cli {

std::vector<Command> GuardCommands() {
  std::vector<Command> commands;
  commands.push_back(GuardTrainCommand());
  commands.push_back(GuardShowCommand());
  commands.push_back(GuardRunCommand());
  commands.push_back(GuardAttachCommand());
  commands.push_back(GuardDetachCommand());
  commands.push_back(GuardExportCommand());
  commands.push_back(GuardCallsCommand());
  return commands;
}

}  // namespace culprit::cli
