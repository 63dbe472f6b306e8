// SPDX-License-Identifier: Apache-2.0
#include "cli/guard_commands.h"
#include "cli/guard_text.h"
#include "cli/live_flags.h"
#include "guard/profile_file.h"

namespace culprit::cli {
namespace {

Result<int> RunGuardShow(const Arguments& arguments, Output& output) {
  const std::string& path = arguments.operands()[0];
  CULPRIT_ASSIGN(const guard::Profile profile, guard::ReadProfile(path));
  ProfileView view;
  view.top = arguments.Number("--top");
  CULPRIT_ASSIGN(view.budget_ppm, ReadBudgetPpm(arguments));
  if (arguments.Has("--json")) {
    output.Print(GuardProfileJson(profile, view));
    return 0;
  }
  output.Print(GuardProfileText(profile, path, view, output));
  output.Note("next: culprit guard run " + path + " -- " + profile.program + " ...");
  return 0;
}

}  // namespace

Command GuardShowCommand() {
  Command command;
  command.name = "guard show";
  command.summary = "show what training learned: loops, unit types, thresholds, guards";
  command.operands = "PROFILE";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {{"culprit guard show redis.cguard", "types by how often they were seen"},
                      {"culprit guard show redis.cguard --budget 0.5% --json",
                       "all of it, with the guards that half a percent pays for"}};
  command.flags = {{.name = "--top",
                    .kind = ValueKind::kNumber,
                    .value = "N",
                    .help = "rows a table",
                    .default_text = "20"},
                   {.name = "--budget",
                    .kind = ValueKind::kText,
                    .value = "SHARE",
                    .help = "show the guards that this share of a unit's time pays for",
                    .default_text = "1%"},
                   {.name = "--json", .help = "print JSON"}};
  command.details =
      "A unit is what the program does for one event: an iteration of an event loop, a handler "
      "called in it, or a command of several in one message. Units that call the same functions "
      "are of one type. docs/guards.md explains how types, guards and thresholds come about.";
  command.run = &RunGuardShow;
  return command;
}

}  // namespace culprit::cli
