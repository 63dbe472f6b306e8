// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/commands.h"
#include "cli/help.h"

namespace culprit::cli {
namespace {

Result<int> RunHelp(const Arguments& arguments, Output& output) {
  const size_t width = std::min<size_t>(output.width(), 100);
  if (arguments.operands().empty()) {
    output.Print(OverviewText(Commands(), width));
    return 0;
  }
  std::string name;
  for (const std::string& word : arguments.operands()) name += (name.empty() ? "" : " ") + word;
  if (const Command* command = FindCommand(name)) {
    output.Print(HelpText(*command, width));
    return 0;
  }
  for (const Command& command : Commands()) {
    if (GroupOf(command) != name) continue;
    output.Print(GroupText(Commands(), name, width));
    return 0;
  }
  return UnknownCommand(name);
}

}  // namespace

Command HelpCommand() {
  return {.name = "help",
          .summary = "explain culprit, or one command",
          .operands = "[COMMAND]",
          .min_operands = 0,
          .max_operands = 2,
          .examples = {{"culprit help", "the list of commands"},
                       {"culprit help corpus add", "the same as culprit corpus add --help"}},
          .flags = {},
          .run = RunHelp};
}

}  // namespace culprit::cli
