// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "cli/commands.h"
#include "export/target.h"

namespace culprit::cli {
namespace {

using export_::Options;
using export_::Summary;
using export_::Target;

std::vector<std::string_view> TargetNames() {
  std::vector<std::string_view> names;
  for (const Target& target : export_::Targets()) names.push_back(target.name);
  return names;
}

// Kinds that are time on stacks; markers have neither.
std::vector<std::string_view> KindNames() {
  return {trace::kEventKindNames.begin(), trace::kEventKindNames.end() - 1};
}

Options OptionsOf(const Arguments& arguments, Output& output) {
  Options options{.threads = arguments.Has("--threads"), .progress = &output.progress()};
  for (size_t i = 0; arguments.Has("--kind") && i < trace::kEventKinds; ++i) {
    if (trace::kEventKindNames[i] == arguments.Text("--kind")) {
      options.kind = static_cast<trace::EventKind>(i);
    }
  }
  return options;
}

// "folded, pprof or speedscope": the targets that `takes` is true of.
std::string NamesWhere(bool Target::*takes) {
  std::vector<std::string_view> names;
  for (const Target& target : export_::Targets()) {
    if (target.*takes) names.push_back(target.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

// What the flags allow together, and that the trace itself is not the output.
Status CheckFlags(const Arguments& arguments, const Target& target, const Output& output) {
  const std::pair<std::string_view, bool Target::*> flags[] = {
      {"--kind", &Target::takes_kind}, {"--threads", &Target::takes_threads}};
  for (const auto& [flag, takes] : flags) {
    if (arguments.Has(flag) && !(target.*takes)) {
      return Error{.message = std::string(flag) + " only goes with --to " + NamesWhere(takes)};
    }
  }
  if (!arguments.Has("--output")) {
    if (target.to_file != nullptr) {
      return Error{.message = "--to " + std::string(target.name) + " makes a file: say which",
                   .hint = "add -o FILE"};
    }
    // Colour is on only where standard output is a terminal.
    if (!target.binary || !output.color()) return {};
    return Error{.message = "--to " + std::string(target.name) + " is not for a terminal",
                 .hint = "add -o FILE, or pipe it into a program"};
  }
  const std::string path = arguments.Text("--output");
  std::error_code code;
  if (std::filesystem::equivalent(path, arguments.operands().front(), code)) {
    return Error{.message = "is the trace itself; nothing was written", .file = path};
  }
  return {};
}

Result<Summary> ToStandardOutput(const Target& target, const trace::TraceReader& reader,
                                 const Options& options, Output& output) {
  return target.to_sink(reader, options, [&](std::string_view text) {
    output.Print(text);
    // Why is told at the end, by whoever owns the stream.
    return output.ok() ? Status() : Status(Error{.message = "cannot write the result"});
  });
}

Result<Summary> ToFile(const Target& target, const trace::TraceReader& reader,
                       const Options& options, const std::string& path, Overwrite overwrite) {
  if (target.to_file != nullptr) return target.to_file(reader, options, path, overwrite);
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(path, overwrite));
  CULPRIT_ASSIGN(Summary summary, target.to_sink(reader, options, [&](std::string_view text) {
    return file.Write(text);
  }));
  CULPRIT_TRY(file.Commit());
  return summary;
}

void WarnOfDamage(const std::string& path, const Diagnostics& diagnostics, Output& output) {
  for (const auto& [what, row] : diagnostics.rows()) {
    std::string line = path + ": skipped " + FormatCount(row.count) + " x " + what;
    if (row.first_offset) line += " (first at byte " + std::to_string(*row.first_offset) + ")";
    output.Warn(line);
  }
}

void NoteNext(const Target& target, const std::string& path, uint64_t events, Output& output) {
  std::error_code code;
  const uint64_t bytes = std::filesystem::file_size(path, code);
  output.Note("wrote " + path + ": " + FormatCount(events) + " events" +
              (code ? "" : ", " + FormatBytes(bytes)));
  if (target.next.empty()) return;
  std::string next(target.next);
  for (size_t at = 0; (at = next.find("FILE", at)) != std::string::npos; at += path.size()) {
    next.replace(at, 4, path);
  }
  output.Note("next: " + next);
}

Result<int> RunExport(const Arguments& arguments, Output& output) {
  const Target* target = export_::FindTarget(arguments.Text("--to"));
  CULPRIT_CHECK(target != nullptr);
  CULPRIT_TRY(CheckFlags(arguments, *target, output));
  const std::string& trace_path = arguments.operands().front();
  CULPRIT_ASSIGN(trace::TraceReader reader, trace::TraceReader::Open(trace_path));
  const Options options = OptionsOf(arguments, output);
  const std::string path = arguments.Text("--output");
  const Overwrite overwrite = arguments.Has("--force") ? Overwrite::kAllow : Overwrite::kRefuse;
  Result<Summary> summary = path.empty() ? ToStandardOutput(*target, reader, options, output)
                                         : ToFile(*target, reader, options, path, overwrite);
  output.progress().Finish();
  if (!summary.ok()) {
    if (!output.ok()) return 1;
    Error error = summary.error();
    if (error.file.empty()) error.file = trace_path;
    return error;
  }
  WarnOfDamage(trace_path, summary.value().diagnostics, output);
  if (!path.empty()) NoteNext(*target, path, summary.value().events, output);
  return 0;
}

}  // namespace

Command ExportCommand() {
  return {
      .name = "export",
      .summary = "write a trace in a format other tools read",
      .operands = "TRACE",
      .min_operands = 1,
      .max_operands = 1,
      .examples =
          {{"culprit export t.ctrace --to perfetto -o t.pftrace", "look at it at ui.perfetto.dev"},
           {"culprit export t.ctrace --to folded | flamegraph.pl > waits.svg",
            "a flame graph of the waits"},
           {"culprit export t.ctrace --to pprof -o t.pb.gz && go tool pprof -http=: t.pb.gz",
            "the same in pprof"},
           {"culprit export t.ctrace --to sqlite -o t.db", "ask questions in SQL"},
           {"culprit export t.ctrace --to json | jq .metadata", "read it with a script"}},
      .flags = {{.name = "--to",
                 .kind = ValueKind::kChoice,
                 .help = "the format to write",
                 .choices = TargetNames(),
                 .required = true},
                {.name = "--output",
                 .letter = 'o',
                 .kind = ValueKind::kPath,
                 .value = "FILE",
                 .help = "write there; without it all but sqlite go to standard output"},
                {.name = "--force", .help = "overwrite FILE if it exists"},
                {.name = "--kind",
                 .kind = ValueKind::kChoice,
                 .value = "KIND",
                 .help = "folded, pprof, firefox, speedscope: whose time to show: running, wait, "
                         "unwait, ready, hardware, syscall or call; without it wait, or running in "
                         "a trace without waits; in firefox all the time of a thread",
                 .choices = KindNames()},
                {.name = "--threads",
                 .help = "folded: begin every stack with its process and thread; pprof: label "
                         "samples with them"}},
      .details =
          "json is one document with metadata, processes, threads, frames, stacks, instances and "
          "events, one event a line; processes, threads, frames and stacks are named by their "
          "place in their list.\n\n"
          "folded has one line a distinct stack, caller first, and the sum of its time in "
          "nanoseconds; for unwait, which takes no time, the number of events. Events without a "
          "stack are the lines [not sampled] and [no stack], so the sum of all lines is the total "
          "of the kind.\n\n"
          "sqlite has the tables trace, process, thread, module, frame, stack, instance and event. "
          "Where the waits went:\n\n"
          "  SELECT text, sum(dur_ns) AS ns FROM event JOIN stack ON stack.id = event.stack\n"
          "  WHERE kind = 'wait' GROUP BY stack.id ORDER BY ns DESC LIMIT 10;\n\n"
          "perfetto has what each CPU ran, the states and wake-ups of threads, system calls, "
          "instances, device requests, stacks, and the critical paths of instances on tracks of "
          "their "
          "own.\n\n"
          "pprof and speedscope sum one kind by stack, as folded does; firefox has the running, "
          "waiting and ready time of every thread in order, with its stacks, and markers for "
          "instances and system calls. Their sums too are the totals of the trace.\n\n"
          "Of a damaged trace everything readable is written; what was skipped is told on standard "
          "error.",
      .run = RunExport};
}

}  // namespace culprit::cli
