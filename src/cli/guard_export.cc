// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/guard_commands.h"
#include "guard/unit_export.h"

namespace culprit::cli {
namespace {

Result<int> RunGuardExport(const Arguments& arguments, Output& output) {
  const std::string path = arguments.Text("--output");
  CULPRIT_ASSIGN(const trace::TraceReader units, trace::TraceReader::Open(arguments.operands()[0]));
  CULPRIT_ASSIGN(const trace::TraceReader recording,
                 trace::TraceReader::Open(arguments.operands()[1]));
  const Overwrite overwrite = arguments.Has("--force") ? Overwrite::kAllow : Overwrite::kRefuse;
  CULPRIT_ASSIGN(const guard::AddedUnits added, guard::AddUnits(units, recording, path, overwrite));
  output.Print("added " + FormatCount(added.added) + " units as instances\n");
  if (added.outside > 0) {
    output.Note(FormatCount(added.outside) + " units were not within the recording's time");
  }
  if (added.no_thread > 0) {
    output.Note(FormatCount(added.no_thread) + " units are of threads that were not recorded");
  }
  output.Note("next: culprit analyze " + path);
  return 0;
}

}  // namespace

Command GuardExportCommand() {
  Command command;
  command.name = "guard export";
  command.summary = "put units that guards saw into a recording of the same time, as instances";
  command.operands = "UNITS TRACE";
  command.min_operands = 2;
  command.max_operands = 2;
  command.examples = {{"culprit guard export units.ctrace recorded.ctrace -o both.ctrace",
                       "units of guard run --units; TRACE of culprit record at the same time"}};
  command.flags = {{.name = "--output",
                    .letter = 'o',
                    .kind = ValueKind::kPath,
                    .value = "FILE",
                    .help = "the trace to write",
                    .required = true},
                   {.name = "--force", .help = "overwrite it"}};
  command.details =
      "The scenario of an instance is the unit's type, so that mine, impact and contrast tell "
      "slow units of a type from fast ones.";
  command.run = &RunGuardExport;
  return command;
}

}  // namespace culprit::cli
