// SPDX-License-Identifier: Apache-2.0
//
// culprit signatures add, list, edit, rm: the store of known behaviours. What
// holds a corpus against it is in signatures_coverage.cc.
#include <algorithm>
#include <ctime>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/mine_facts.h"
#include "cli/signatures_coverage.h"
#include "report/plain_text.h"
#include "report/table.h"
#include "stackmine/signature_store.h"

namespace culprit::cli {
namespace {

using report::Table;
using stackmine::Signature;
using stackmine::StackKind;

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[16];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d", &utc);
  return std::string(text, length);
}

// The cluster whose id begins with `id`.
Result<size_t> FindCluster(const MineFacts& facts, const std::string& id) {
  std::vector<size_t> found;
  for (size_t i = 0; i < facts.result.clusters.size(); ++i) {
    if (facts.result.clusters[i].id.starts_with(id)) found.push_back(i);
  }
  if (found.size() == 1 && !id.empty()) return found.front();
  const std::string hint = "culprit mine " + facts.path + " shows the clusters";
  if (found.empty()) {
    return Error{.message = "there is no cluster '" + id + "' among " +
                            std::to_string(facts.result.clusters.size()),
                 .hint = hint + "; the flags that chose them must be given again"};
  }
  return Error{
      .message = "'" + id + "' begins the ids of " + std::to_string(found.size()) + " clusters",
      .hint = hint};
}

Result<Signature> FromCluster(const Arguments& arguments, Output& output) {
  if (arguments.operands().size() != 1) {
    return Error{.message = "--from needs the corpus or trace in which the cluster is",
                 .hint = "culprit signatures add --from CLUSTER CORPUS"};
  }
  CULPRIT_ASSIGN(const MineSettings settings, ReadMineFlags(arguments));
  CULPRIT_ASSIGN(const MineFacts facts,
                 GatherMine(arguments.operands().front(), settings, "", output.progress()));
  CULPRIT_ASSIGN(const size_t at, FindCluster(facts, arguments.Text("--from")));
  const stackmine::Cluster& cluster = facts.result.clusters[at];
  Signature signature = stackmine::SignatureOf(facts.evidence, cluster);
  signature.source = facts.path;
  signature.name = std::string(facts.evidence.stacks.Function(cluster.key));
  return signature;
}

Result<Signature> ByHand(const Arguments& arguments) {
  Signature signature;
  for (const std::string& text : arguments.All("--pattern")) {
    signature.patterns.push_back(stackmine::ParseFrames(text));
    if (signature.patterns.back().empty()) {
      return Error{.message = "a pattern without frames",
                   .hint = "--pattern 'App!GetHashCode;kernel32!GetShortPathName'"};
    }
  }
  if (signature.patterns.empty()) {
    return Error{.message = "what is the signature made of?",
                 .hint = "--from CLUSTER CORPUS, or --pattern 'caller!f;callee!g'"};
  }
  signature.kind = arguments.Text("--of") == "run" ? StackKind::kRun : StackKind::kWait;
  signature.common = signature.patterns.front();
  signature.name = signature.common.back();
  return signature;
}

Result<int> RunAdd(const Arguments& arguments, Output& output) {
  const std::string store = StorePath(arguments);
  CULPRIT_ASSIGN(Signature signature,
                 arguments.Has("--from") ? FromCluster(arguments, output) : ByHand(arguments));
  signature.status = *stackmine::ParseSignatureStatus(arguments.Text("--status"));
  signature.owner = arguments.Text("--owner");
  signature.note = arguments.Text("--note");
  signature.added = Today();
  CULPRIT_TRY(stackmine::ChangeStore(store, [&](std::vector<Signature>& all) -> Status {
    // A name that was asked for must be free; one that was not asked for is made so.
    signature.name = arguments.Has("--name") ? arguments.Text("--name")
                                             : stackmine::FreeName(all, signature.name);
    if (signature.name.empty()) return Error{.message = "a signature needs a name"};
    all.push_back(signature);
    return {};
  }));
  output.Print("added '" + report::PlainText(signature.name) + "' to " + store + ": " +
               std::to_string(signature.patterns.size()) +
               (signature.patterns.size() == 1 ? " pattern" : " patterns") + " of " +
               std::string(Name(signature.kind)) + " stacks, status " +
               std::string(Name(signature.status)) + "\n");
  if (!arguments.operands().empty()) {
    output.Note("next: culprit signatures coverage " + arguments.operands().front());
  }
  return 0;
}

Result<int> RunList(const Arguments& arguments, Output& output) {
  const std::string store = StorePath(arguments);
  CULPRIT_ASSIGN(std::vector<Signature> signatures, stackmine::ReadStore(store));
  if (arguments.Has("--status")) {
    const auto wanted = stackmine::ParseSignatureStatus(arguments.Text("--status"));
    std::erase_if(signatures, [&](const Signature& s) { return s.status != *wanted; });
  }
  if (arguments.Has("--json")) {
    output.Print(stackmine::SignaturesToJson(signatures));
    return 0;
  }
  Table table;
  table.Column("name").Column("kind").Column("status").Column("owner").Column("added");
  table.Column("patterns", Table::Align::kRight)
      .Column("note or frames", Table::Align::kLeft, true);
  for (const Signature& s : signatures) {
    std::string frames;
    for (const std::string& frame : s.common) frames += (frames.empty() ? "" : " > ") + frame;
    table.Row({s.name, std::string(Name(s.kind)), std::string(Name(s.status)), s.owner, s.added,
               std::to_string(s.patterns.size()), s.note.empty() ? frames : s.note});
  }
  output.Print(signatures.empty() ? "no signatures in " + store + "\n"
                                  : table.ToText(output.width(), output.color()));
  return 0;
}

Result<int> RunEdit(const Arguments& arguments, Output& output) {
  const std::string& name = arguments.operands().front();
  const std::string store = StorePath(arguments);
  CULPRIT_TRY(stackmine::ChangeStore(store, [&](std::vector<Signature>& all) -> Status {
    CULPRIT_ASSIGN(const size_t at, stackmine::FindSignature(all, name));
    Signature& signature = all[at];
    if (arguments.Has("--name")) signature.name = arguments.Text("--name");
    if (signature.name.empty()) return Error{.message = "a signature needs a name"};
    if (arguments.Has("--owner")) signature.owner = arguments.Text("--owner");
    if (arguments.Has("--note")) signature.note = arguments.Text("--note");
    if (arguments.Has("--status")) {
      signature.status = *stackmine::ParseSignatureStatus(arguments.Text("--status"));
    }
    if (arguments.Has("--pattern")) {
      CULPRIT_ASSIGN(const Signature by_hand, ByHand(arguments));
      signature.patterns = by_hand.patterns;
      signature.common = by_hand.common;
    }
    return {};
  }));
  output.Print("changed '" + report::PlainText(name) + "' in " + store + "\n");
  return 0;
}

Result<int> RunRemove(const Arguments& arguments, Output& output) {
  const std::string store = StorePath(arguments);
  CULPRIT_TRY(stackmine::ChangeStore(store, [&](std::vector<Signature>& all) -> Status {
    for (const std::string& name : arguments.operands()) {
      CULPRIT_ASSIGN(const size_t at, stackmine::FindSignature(all, name));
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return {};
  }));
  output.Print("removed " + std::to_string(arguments.operands().size()) + " from " + store + "\n");
  return 0;
}

// Some of the store, or all, for another store.
Result<int> RunExport(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const std::vector<Signature> all, stackmine::ReadStore(StorePath(arguments)));
  std::vector<Signature> chosen;
  for (const std::string& name : arguments.operands()) {
    CULPRIT_ASSIGN(const size_t at, stackmine::FindSignature(all, name));
    chosen.push_back(all[at]);
  }
  if (arguments.operands().empty()) chosen = all;
  output.Print(stackmine::SignaturesToJson(chosen));
  return 0;
}

// Sightings of both stay.
void MergeSightings(const Signature& from, Signature& into) {
  for (const stackmine::Sighting& seen : from.seen) {
    stackmine::NoteSighting(into, seen.app, seen.version, seen.first);
    stackmine::NoteSighting(into, seen.app, seen.version, seen.last);
  }
}

Result<int> RunImport(const Arguments& arguments, Output& output) {
  const std::string store = StorePath(arguments);
  const bool replace = arguments.Has("--replace");
  uint64_t added = 0;
  uint64_t changed = 0;
  for (const std::string& file : arguments.operands()) {
    CULPRIT_ASSIGN(const std::string text, ReadWholeFile(file));
    CULPRIT_ASSIGN(const std::vector<Signature> given, stackmine::SignaturesFromJson(text, file));
    CULPRIT_TRY(stackmine::ChangeStore(store, [&](std::vector<Signature>& all) -> Status {
      for (const Signature& signature : given) {
        const auto same = std::find_if(
            all.begin(), all.end(), [&](const Signature& s) { return s.name == signature.name; });
        if (same == all.end()) {
          all.push_back(signature);
          ++added;
          continue;
        }
        const Signature old = *same;
        if (replace) *same = signature;
        MergeSightings(replace ? old : signature, *same);
        if (!(*same == old)) ++changed;
      }
      return {};
    }));
  }
  output.Print("added " + std::to_string(added) + " to " + store + ", changed " +
               std::to_string(changed) + "\n");
  return 0;
}

// ---- the table

Flag StatusFlag(std::string_view help, std::string_view otherwise) {
  return {"--status",
          0,
          ValueKind::kChoice,
          "S",
          help,
          otherwise,
          {"new", "known", "fixed", "ignored"}};
}

std::vector<Flag> DescribingFlags() {
  return {{"--name", 0, ValueKind::kText, "NAME", "how it is called"},
          {"--owner", 0, ValueKind::kText, "WHO", "who looks after it"},
          {"--note", 0, ValueKind::kText, "TEXT", "what is known about it"},
          {"--pattern", 0, ValueKind::kText, "FRAMES",
           "caller!f;callee!g: frames in order, others may be between; may be repeated"}};
}

Command AddCommand() {
  Command command;
  command.name = "signatures add";
  command.summary = "keep a cluster, or a pattern, as a named behaviour";
  command.operands = "[CORPUS|TRACE]";
  command.max_operands = 1;
  command.examples = {
      {"culprit signatures add --from 6dade38a55 fleet --name short-paths --owner ann",
       "a cluster that culprit mine showed"},
      {"culprit signatures add --pattern 'App!GetHashCode;kernel32!GetShortPathName' --name paths",
       "a pattern by hand"}};
  command.flags = DescribingFlags();
  command.flags.push_back(
      {"--from", 0, ValueKind::kText, "CLUSTER", "id of a cluster, or the beginning of it"});
  command.flags.push_back({"--of",
                           0,
                           ValueKind::kChoice,
                           "KIND",
                           "the stacks --pattern is for",
                           "wait",
                           {"wait", "run"}});
  command.flags.push_back(StatusFlag("what to think of it", "new"));
  command.flags.push_back(StoreFlag());
  for (Flag& flag : MineFlags()) command.flags.push_back(std::move(flag));
  command.details =
      "The corpus is mined again to find the cluster, so flags that chose the area of interest "
      "or lambda must be given again. A signature keeps all patterns of its cluster.";
  command.run = &RunAdd;
  return command;
}

Command ListCommand() {
  Command command;
  command.name = "signatures list";
  command.summary = "list the known behaviours";
  command.examples = {{"culprit signatures list", "all of them"},
                      {"culprit signatures list --status fixed --json", "for a script"}};
  command.flags = {StatusFlag("only those of this status", ""),
                   {.name = "--json", .help = "print JSON, as in the store"},
                   StoreFlag()};
  command.run = &RunList;
  return command;
}

Command EditCommand() {
  Command command;
  command.name = "signatures edit";
  command.summary = "change name, status, owner, note or patterns of a signature";
  command.operands = "NAME";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {{"culprit signatures edit short-paths --status fixed --note 'since 2.1'",
                       "from now on it must not come back"}};
  command.flags = DescribingFlags();
  command.flags.push_back({"--of",
                           0,
                           ValueKind::kChoice,
                           "KIND",
                           "the stacks --pattern is for",
                           "wait",
                           {"wait", "run"}});
  command.flags.push_back(StatusFlag("what to think of it", ""));
  command.flags.push_back(StoreFlag());
  command.run = &RunEdit;
  return command;
}

Command RemoveCommand() {
  Command command;
  command.name = "signatures rm";
  command.summary = "forget signatures";
  command.operands = "NAME...";
  command.min_operands = 1;
  command.max_operands = SIZE_MAX;
  command.examples = {{"culprit signatures rm short-paths", "one, by its name"}};
  command.flags = {StoreFlag()};
  command.details = "All of the names, or none: an unknown name leaves the store as it was.";
  command.run = &RunRemove;
  return command;
}

Command SignaturesExportCommand() {
  Command command;
  command.name = "signatures export";
  command.summary = "print signatures for another store";
  command.operands = "[NAME...]";
  command.max_operands = SIZE_MAX;
  command.examples = {{"culprit signatures export > team.json", "all of them"},
                      {"culprit signatures export short-paths > one.json", "one, by its name"}};
  command.flags = {StoreFlag()};
  command.run = &RunExport;
  return command;
}

Command SignaturesImportCommand() {
  Command command;
  command.name = "signatures import";
  command.summary = "take signatures of another store";
  command.operands = "FILE...";
  command.min_operands = 1;
  command.max_operands = SIZE_MAX;
  command.examples = {{"culprit signatures import team.json", "what is not known here yet"},
                      {"culprit signatures import team.json --replace",
                       "theirs instead of ours where the name is the same"}};
  command.flags = {{.name = "--replace", .help = "theirs win where a name is in both"},
                   StoreFlag()};
  command.details =
      "Of a name in both stores ours stays; when it was seen, and in which versions, is taken from "
      "both. A file that is no store changes nothing.";
  command.run = &RunImport;
  return command;
}

}  // namespace

std::vector<Command> SignaturesCommands() {
  return {AddCommand(),
          ListCommand(),
          EditCommand(),
          RemoveCommand(),
          CoverageCommand(),
          SignaturesCheckCommand(),
          SignaturesExportCommand(),
          SignaturesImportCommand()};
}

}  // namespace culprit::cli
