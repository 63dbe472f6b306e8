// SPDX-License-Identifier: Apache-2.0
#include "analyze/inbox.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/mine_options.h"
#include "corpus/corpus.h"
#include "report/block.h"
#include "report/plain_text.h"

namespace culprit::cli {
namespace {

using analyze::InboxItem;
using analyze::Standing;
using report::PlainText;

std::string SeenText(const InboxItem& item) {
  std::string text;
  if (!item.first_day.empty()) {
    text = item.first_day == item.last_day
               ? "seen " + item.first_day
               : "seen since " + item.first_day + ", last " + item.last_day;
  }
  std::string versions;
  for (const stackmine::Sighting& seen : item.signature.seen) {
    if (seen.version.empty()) continue;
    versions += (versions.empty() ? " in " : ", ") + seen.app + " " + seen.version;
  }
  return text + versions;
}

// "call > watchCommand > watchForKey": how the program came to where the time goes.
std::string ChainText(const InboxItem& item) {
  std::string text;
  for (const std::string& frame : item.chain) {
    const std::string function = frame.substr(frame.rfind('!') + 1);
    if (function.starts_with("+0x")) continue;
    text += (text.empty() ? "" : " > ") + function;
  }
  constexpr size_t kLongest = 160;
  if (text.size() <= kLongest) return text;
  return "... > " + text.substr(text.find(" > ", text.size() - kLongest) + 3);
}

std::string ItemText(const InboxItem& item, const Output& output) {
  std::string text =
      "  " + report::Styled(report::Style::kBold, PlainText(item.signature.name), output.color());
  text += ": " + PlainText(item.finding.sentence) + "\n      ";
  if (item.all_slow > 0) {
    text += "in " +
            FormatShare(static_cast<int64_t>(item.slow_instances),
                        static_cast<int64_t>(item.all_slow)) +
            " of the slow instances of " + PlainText(item.scenario) + "; ";
  }
  text += PlainText(SeenText(item));
  if (!item.signature.owner.empty())
    text += "; " + PlainText(item.signature.owner) + " looks after it";
  if (!item.signature.note.empty()) text += "; " + PlainText(item.signature.note);
  text += "\n";
  if (!item.chain.empty()) text += "      " + PlainText(ChainText(item)) + "\n";
  if (!item.finding.command.empty()) {
    text += report::Styled(report::Style::kDim, "      " + PlainText(item.finding.command),
                           output.color()) +
            "\n";
  }
  return text;
}

std::string InboxText(const std::vector<InboxItem>& items, const Output& output) {
  if (items.empty()) return "nothing: no behaviour costs enough to be named\n";
  std::string text;
  for (const Standing standing : {Standing::kRegressed, Standing::kNew, Standing::kKnown}) {
    std::string some;
    size_t count = 0;
    for (const InboxItem& item : items) {
      if (item.standing != standing) continue;
      some += ItemText(item, output);
      ++count;
    }
    if (count == 0) continue;
    text += std::string(Name(standing)) + " (" + std::to_string(count) + ")\n" + some;
  }
  return text;
}

std::string InboxJson(const analyze::Analysis& analysis, const std::vector<InboxItem>& items) {
  JsonWriter json;
  json.BeginObject().Field("path", std::string_view(analysis.path));
  json.Field("traces", analysis.evidence.traces.size());
  json.Field("total_ns", analysis.total_ns()).Key("items").BeginArray();
  for (const InboxItem& item : items) {
    const stackmine::Signature& signature = item.signature;
    json.BeginObject().Field("name", std::string_view(signature.name));
    json.Field("standing", Name(item.standing)).Field("status", Name(signature.status));
    json.Field("sentence", std::string_view(item.finding.sentence));
    json.Field("command", std::string_view(item.finding.command));
    json.Field("cluster", std::string_view(analysis.mined.clusters[item.finding.cluster].id));
    json.Field("time_ns", item.time_ns).Field("instances", item.instances);
    json.Field("scenario", std::string_view(item.scenario));
    json.Field("slow_instances", item.slow_instances).Field("all_slow", item.all_slow);
    json.Field("slow_ns", item.slow_ns);
    json.Field("first", std::string_view(item.first_day));
    json.Field("last", std::string_view(item.last_day)).Key("common").BeginArray();
    for (const std::string& frame : signature.common) json.String(frame);
    json.EndArray().Key("chain").BeginArray();
    for (const std::string& frame : item.chain) json.String(frame);
    json.EndArray().Key("seen").BeginArray();
    for (const stackmine::Sighting& seen : signature.seen) {
      json.BeginObject().Field("app", std::string_view(seen.app));
      json.Field("version", std::string_view(seen.version));
      json.Field("first", std::string_view(seen.first));
      json.Field("last", std::string_view(seen.last)).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

Result<int> RunInbox(const Arguments& arguments, Output& output) {
  const std::string& path = arguments.operands().front();
  CULPRIT_ASSIGN(const MineSettings settings, ReadMineFlags(arguments));
  CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(path));
  CULPRIT_ASSIGN(const std::vector<corpus::TraceRow> traces, corpus.List());
  const std::string store = StorePath(arguments);
  CULPRIT_ASSIGN(
      const analyze::Analysis analysis,
      analyze::Analyze(path, {.gather = settings.gather, .mine = settings.mine, .store = store},
                       output.progress()));
  const std::vector<InboxItem> items =
      analyze::MakeInbox(analysis, traces, arguments.Number("--most"));
  if (!arguments.Has("--dry-run")) CULPRIT_TRY(analyze::RememberInbox(items, store));
  const std::string text =
      arguments.Has("--json") ? InboxJson(analysis, items) : InboxText(items, output);
  if (arguments.Has("--output")) {
    CULPRIT_TRY(WriteWholeFile(arguments.Text("--output"), text, Overwrite::kAllow));
  } else {
    output.Print(text);
  }
  for (const std::string& error : analysis.evidence.unreadable) output.Warn(error);
  if (!items.empty() && !arguments.Has("--json")) {
    output.Note("next: culprit signatures edit NAME --status known|fixed|ignored --note TEXT");
  }
  return 0;
}

}  // namespace

Command InboxCommand() {
  Command command;
  command.name = "inbox";
  command.summary = "what came back, what is new and what is known in a corpus";
  command.operands = "CORPUS";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {{"culprit inbox fleet", "the findings, regressed ones first"},
                      {"culprit inbox fleet --json", "the same for machines"},
                      {"culprit inbox fleet --dry-run", "the store of signatures stays as it is"}};
  command.flags = MineFlags();
  command.flags.push_back({.name = "--most",
                           .kind = ValueKind::kNumber,
                           .value = "N",
                           .help = "findings shown at most",
                           .default_text = "20"});
  command.flags.push_back(
      {.name = "--dry-run", .help = "do not write names and sightings into the store"});
  command.flags.push_back({.name = "--output",
                           .letter = 'o',
                           .kind = ValueKind::kPath,
                           .value = "FILE",
                           .help = "write it there, replacing the file whole"});
  command.flags.push_back({.name = "--json", .help = "print JSON"});
  command.flags.push_back(StoreFlag());
  command.details =
      "A finding that no signature matches gets a name in the store, status new, so that it is the "
      "same item next time; when it was first and last seen, and in which versions of which "
      "application, is kept there. Regressed: its signature says fixed. Variants of a behaviour "
      "are matched by the similarity that clustering uses. What is ignored is left out.";
  command.run = &RunInbox;
  return command;
}

}  // namespace culprit::cli
