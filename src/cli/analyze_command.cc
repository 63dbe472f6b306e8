// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <optional>

#include "analyze/part.h"
#include "analyze/verdict.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/analyze_parts.h"
#include "cli/commands.h"
#include "cli/engine_options.h"
#include "cli/gather_flags.h"
#include "cli/mine_options.h"
#include "page/page.h"

namespace culprit::cli {
namespace {

constexpr size_t kFindings = 8;
constexpr size_t kHeadBytes = 1024;  // enough of a file to know a report by

Status WriteReport(const analyze::Analysis& analysis, const analyze::Additions& additions,
                   const page::Bundle& bundle, const std::string& path) {
  const std::vector<analyze::Part> parts = analyze::MakeParts(analysis, {}, additions);
  std::vector<page::PagePart> named;
  for (const analyze::Part& part : parts) named.push_back({.name = part.name, .json = part.json});
  return WriteWholeFile(path, page::MakeReport(bundle, "culprit: " + analysis.path, named),
                        Overwrite::kAllow);
}

// An older report may be replaced, anything else not.
Status CheckReplaceable(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Status();
  std::string head(kHeadBytes, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(in.gcount()));
  if (page::IsReport(head)) return Status();
  return Error{.message = "is there already and is no report of culprit",
               .file = path,
               .hint = "name another file with -o, or remove it"};
}

// Evidence from a run over hosts (engine_options.h).
auto RunFor(const std::string& path, const MineSettings& settings, const Arguments& arguments,
            Output& output) {
  return [&](const stackmine::ReduceOptions& mine,
             const causality::ExtractOptions& causes) -> Result<analyze::BothEvidence> {
    CULPRIT_ASSIGN(scale::RunEvidence found,
                   GatherByRun(path, {.mine = mine, .causes = causes}, settings.gather.loop(),
                               arguments, output));
    return analyze::BothEvidence{.mine = std::move(*found.mine),
                                 .causes = std::move(*found.causes)};
  };
}

// What was given beside the corpus.
Status AddParts(const Arguments& arguments, const std::string& path,
                analyze::Additions& additions) {
  if (arguments.Has("--guard")) {
    CULPRIT_ASSIGN(analyze::Part units,
                   UnitsPart(arguments.Text("--guard"), arguments.Text("--reports")));
    additions.parts.push_back(std::move(units));
  }
  if (arguments.Has("--profile")) {
    CULPRIT_ASSIGN(analyze::Part inference,
                   InferencePart(path, arguments.Text("--profile"), arguments.Text("--normal"),
                                 arguments.Number("--jobs")));
    additions.parts.push_back(std::move(inference));
  }
  return {};
}

Result<int> RunAnalyze(const Arguments& arguments, Output& output) {
  const std::string& path = arguments.operands().front();
  CULPRIT_ASSIGN(const MineSettings settings, ReadMineFlags(arguments));
  const std::string report = arguments.Text("--output");
  Result<page::Bundle> bundle = page::FindBundle();
  // Told before the long work where a page was asked for by name.
  if (!bundle.ok() && arguments.Has("--output")) return bundle.error();
  if (bundle.ok()) CULPRIT_TRY(CheckReplaceable(report));
  CULPRIT_ASSIGN(const bool wants_run, WantsRun(arguments));
  analyze::AnalysisOptions options{
      .gather = settings.gather,
      .mine = settings.mine,
      .gather_elsewhere = {},
      .miner = MinerOf(path, settings.gather.loop(), arguments, output),
      .store = StorePath(arguments)};
  if (wants_run) options.gather_elsewhere = RunFor(path, settings, arguments, output);
  CULPRIT_ASSIGN(const analyze::Analysis analysis,
                 analyze::Analyze(path, options, output.progress()));
  NoteGathered(analysis.gathered, output);
  std::optional<stackmine::Evidence> before;
  if (arguments.Has("--against")) {
    CULPRIT_ASSIGN(before, stackmine::GatherEvidence(arguments.Text("--against"), settings.gather,
                                                     output.progress()));
  }
  const std::vector<analyze::Finding> findings = analyze::MakeFindings(analysis, kFindings);
  if (arguments.Has("--json")) {
    output.Print(analyze::VerdictJson(analysis, findings));
  } else {
    output.Print(analyze::VerdictText(analysis, findings,
                                      {.width = output.width(), .color = output.color()}));
  }
  const bool nothing_read =
      analysis.evidence.traces.empty() && !analysis.evidence.unreadable.empty();
  if (nothing_read) {
    output.Note("no report is written: not one trace could be read");
  } else if (bundle.ok()) {
    analyze::Additions additions;
    if (before) additions.before = &*before;
    CULPRIT_TRY(AddParts(arguments, path, additions));
    CULPRIT_TRY(WriteReport(analysis, additions, bundle.value(), report));
    output.Note("report: " + report);
  } else {
    output.Warn(bundle.error().message + ": no report is written (" + bundle.error().hint + ")");
  }
  return nothing_read ? 1 : 0;
}

}  // namespace

Command AnalyzeCommand() {
  Command command;
  command.name = "analyze";
  command.summary = "all that the data allows: a verdict on one screen, and a report page";
  command.operands = "CORPUS|TRACE";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {
      {"culprit analyze fleet", "the verdict, and report.html beside you"},
      {"culprit analyze fleet -o monday.html --slower-than 1s", "only slow instances"},
      {"culprit analyze after --against before", "flame graphs that tell what changed"},
      {"culprit analyze slow.ctrace --json", "the verdict for machines"},
      {"culprit analyze /shared/fleet --engine slurm", "the same, read by Slurm jobs"}};
  command.flags = MineFlags();
  command.flags.push_back({.name = "--output",
                           .letter = 'o',
                           .kind = ValueKind::kPath,
                           .value = "FILE",
                           .help = "the page to write; an older one is replaced",
                           .default_text = "report.html"});
  command.flags.push_back(
      {.name = "--against",
       .kind = ValueKind::kPath,
       .value = "CORPUS|TRACE",
       .help = "an older recording: the page's flame graphs tell what changed"});
  command.flags.push_back({.name = "--guard",
                           .kind = ValueKind::kPath,
                           .value = "PROFILE",
                           .help = "of guards: the page shows its kinds of work"});
  command.flags.push_back({.name = "--reports",
                           .kind = ValueKind::kPath,
                           .value = "FOLDER",
                           .help = "with --guard: what it reported as slow (guard run --store)"});
  command.flags.push_back({.name = "--profile",
                           .kind = ValueKind::kPath,
                           .value = "PROFILE",
                           .help = "of system calls: the page shows whom they point at"});
  command.flags.push_back({.name = "--normal",
                           .kind = ValueKind::kPath,
                           .value = "TRACE",
                           .help = "with --profile: a normal trace to compare with"});
  command.flags.push_back({.name = "--json", .help = "print the verdict as JSON"});
  command.flags.push_back(StoreFlag());
  for (Flag& flag : MiningEngineFlags()) command.flags.push_back(std::move(flag));
  command.details =
      "Reads every trace once, follows the waits of every instance, mines and clusters what cost "
      "time, matches it against known signatures, and compares fast instances with slow ones. "
      "The page is one file that opens from disk and asks nothing of the network. With --engine "
      "the traces are read by many hosts that share the disk (docs/cluster.md); the outcome is the "
      "same, and after any failure the same command does what is missing.";
  command.run = &RunAnalyze;
  return command;
}

}  // namespace culprit::cli
