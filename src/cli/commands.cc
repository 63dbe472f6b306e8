// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <iterator>

#include "base/text.h"
#include "cli/help.h"

namespace culprit::cli {

// The order is that of the overview: first what a newcomer types first.
const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = [] {
    std::vector<Command> all;
    all.push_back(RecordCommand());
    all.push_back(TopCommand());
    all.push_back(DumpCommand());
    all.push_back(MarkCommand());
    all.push_back(ImportCommand());
    all.push_back(SymbolizeCommand());
    all.push_back(SynthCommand());
    all.push_back(InfoCommand());
    all.push_back(ShowCommand());
    all.push_back(AnalyzeCommand());
    all.push_back(ServeCommand());
    all.push_back(InboxCommand());
    all.push_back(WatchCommand());
    all.push_back(PushCommand());
    all.push_back(MineCommand());
    all.push_back(ImpactCommand());
    all.push_back(ContrastCommand());
    all.push_back(DiffCommand());
    std::vector<Command> signatures = SignaturesCommands();
    std::move(signatures.begin(), signatures.end(), std::back_inserter(all));
    std::vector<Command> profile = ProfileCommands();
    std::move(profile.begin(), profile.end(), std::back_inserter(all));
    all.push_back(InferCommand());
    std::vector<Command> guard = GuardCommands();
    std::move(guard.begin(), guard.end(), std::back_inserter(all));
    std::vector<Command> corpus = CorpusCommands();
    std::move(corpus.begin(), corpus.end(), std::back_inserter(all));
    all.push_back(ExportCommand());
    std::vector<Command> shard = ShardCommands();
    std::move(shard.begin(), shard.end(), std::back_inserter(all));
    all.push_back(HelpCommand());
    all.push_back(ManCommand());
    all.push_back(CompletionCommand());
    return all;
  }();
  return commands;
}

const Command* FindCommand(std::string_view name) {
  for (const Command& command : Commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

Error UnknownCommand(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Command& command : Commands()) {
    names.push_back(command.name);
    if (!GroupOf(command).empty()) names.push_back(GroupOf(command));
  }
  std::string message = "'" + std::string(name) + "' is not a command";
  const auto near = Nearest(name, names);
  if (near) message += "; did you mean '" + std::string(*near) + "'?";
  return {.message = std::move(message), .hint = "culprit --help lists the commands"};
}

}  // namespace culprit::cli
