// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands.h"
#include "record/control_socket.h"

namespace culprit::cli {
namespace {

Result<record::RunningRecorder> ChooseRecorder(const Arguments& arguments) {
  const std::vector<record::RunningRecorder> running = record::FindRecorders();
  if (running.empty()) {
    return Error{.message = "no recorder of yours is running",
                 .hint = "start one: sudo culprit record --flight 60s --system"};
  }
  if (!arguments.Has("--pid")) {
    if (running.size() == 1) return running.front();
    std::string pids;
    for (const auto& recorder : running) pids += " " + std::to_string(recorder.pid);
    return Error{.message = "several recorders are running:" + pids,
                 .hint = "culprit dump --pid PID"};
  }
  const auto wanted = static_cast<int64_t>(arguments.Number("--pid"));
  for (const auto& recorder : running) {
    if (recorder.pid == wanted) return recorder;
  }
  return Error{.message = "process " + std::to_string(wanted) + " is no recorder of yours"};
}

Result<int> RunDump(const Arguments& arguments, Output& output) {
  constexpr std::string_view kOk = "ok ";
  constexpr std::string_view kError = "error ";
  CULPRIT_ASSIGN(const record::RunningRecorder recorder, ChooseRecorder(arguments));
  CULPRIT_ASSIGN(const std::string answer, record::Ask(recorder, "dump"));
  if (!answer.starts_with(kOk)) {
    const bool told = answer.starts_with(kError);
    return Error{.message = told ? answer.substr(kError.size()) : "unexpected answer: " + answer};
  }
  const std::string path = answer.substr(kOk.size());
  output.Print(path + "\n");
  output.Note("next: culprit info " + path);
  return 0;
}

}  // namespace

Command DumpCommand() {
  return {
      .name = "dump",
      .summary = "make a running flight recorder write what it remembers",
      .operands = "",
      .examples = {{"sudo culprit dump", "the last minute of culprit record --flight 60s"}},
      .flags = {{.name = "--pid",
                 .letter = 'p',
                 .kind = ValueKind::kNumber,
                 .value = "PID",
                 .help = "the recorder's process, if there are several"}},
      .details =
          "Prints the path of the trace once it is written. SIGUSR1 to the recorder does the "
          "same without waiting.",
      .run = &RunDump,
  };
}

}  // namespace culprit::cli
