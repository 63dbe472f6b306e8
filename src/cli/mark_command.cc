// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "cli/commands.h"
#include "record/control_socket.h"
#include "record/machine.h"

namespace culprit::cli {
namespace {

Result<int> RunMark(const Arguments& arguments, Output& output) {
  // First of all, so that what follows does not count.
  const int64_t time_ns = record::MonotonicNs();
  const std::string& verb = arguments.operands()[0];
  const std::string& name = arguments.operands()[1];
  if (verb != "begin" && verb != "end") {
    return Error{.message = "'" + verb + "' is neither begin nor end",
                 .hint = "culprit mark begin NAME"};
  }
  if (name.find_first_of("\n|") != std::string::npos) {
    return Error{.message = "a name cannot hold line ends or bars"};
  }
  const int64_t pid =
      arguments.Has("--pid") ? static_cast<int64_t>(arguments.Number("--pid")) : getppid();
  const std::string pid_text = std::to_string(pid);
  // An operation with the process as its cookie: begin and end are two runs of
  // this command, and other marks may come between them.
  const std::string text = (verb == "begin" ? "S|" : "F|") + pid_text + "|" + name + "|" + pid_text;
  const std::vector<record::RunningRecorder> running = record::FindRecorders();
  if (running.empty() && arguments.Has("--strict")) {
    return Error{.message = "no recorder of yours is running"};
  }
  for (const record::RunningRecorder& recorder : running) {
    const Result<std::string> answer =
        record::Ask(recorder, record::FormatMark({.time_ns = time_ns, .pid = pid, .text = text}));
    if (!answer.ok()) output.Warn(answer.error().ToString());
  }
  return 0;
}

}  // namespace

Command MarkCommand() {
  return {
      .name = "mark",
      .summary = "tell running recorders where an operation begins and ends",
      .operands = "begin|end NAME",
      .min_operands = 2,
      .max_operands = 2,
      .examples = {{"culprit mark begin nightly", "in a script, before the work"},
                   {"culprit mark end nightly", "after it: an instance of the scenario 'nightly'"}},
      .flags = {{.name = "--pid",
                 .letter = 'p',
                 .kind = ValueKind::kNumber,
                 .value = "PID",
                 .help = "whose operation it is; by default the calling process's"},
                {.name = "--strict", .help = "fail if no recorder is running"}},
      .details =
          "The time from begin to end becomes an instance in the trace, of the first thread "
          "of the process that called. Programs mark themselves more cheaply by writing "
          "B|PID|NAME and E|PID to /sys/kernel/tracing/trace_marker (record --marks).",
      .run = &RunMark,
  };
}

}  // namespace culprit::cli
