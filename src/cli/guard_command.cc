// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/text.h"
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

Result<uint64_t> ParseBudgetPpm(std::string text) {
  const std::string given = text;
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  const std::optional<double> value = ParseDouble(text);
  const double share = value ? (percent ? *value / 100 : *value) : -1;
  if (share < 0 || share > 1) {
    return Error{.message = "--budget wants a share like 1%, not '" + given + "'"};
  }
  return static_cast<uint64_t>(std::llround(share * 1e6));
}

Result<int64_t> ParsePid(const std::string& text) {
  const std::optional<uint64_t> pid = ParseUnsigned(text);
  if (!pid || *pid == 0 || *pid > INT32_MAX) {
    return Error{.message = "'" + text + "' is no process id"};
  }
  return static_cast<int64_t>(*pid);
}

}  // namespace culprit::cli
