// SPDX-License-Identifier: Apache-2.0
//
// The makers of every command, one a file (xxx_command.cc). commands.cc puts
// them into the one table Commands() of command.h; a new command is a line
// here and a line there.
#pragma once

#include <string_view>
#include <vector>

#include "cli/command.h"

namespace culprit::cli {

Command RecordCommand();
Command TopCommand();
Command DumpCommand();
Command MarkCommand();
Command ImportCommand();
Command SymbolizeCommand();
Command SynthCommand();
Command InfoCommand();
Command ShowCommand();
Command AnalyzeCommand();
Command InboxCommand();
Command WatchCommand();
Command PushCommand();
Command ServeCommand();
Command MineCommand();
Command ImpactCommand();
Command ContrastCommand();
Command DiffCommand();
std::vector<Command> SignaturesCommands();  // signatures add, list, edit, rm, coverage, check
std::vector<Command> ProfileCommands();     // profile, profile merge, profile show
Command InferCommand();
std::vector<Command> GuardCommands();  // guard train, show, run, attach, detach, export
Command ExportCommand();
std::vector<Command> CorpusCommands();  // corpus add, list, rm, check
std::vector<Command> ShardCommands();   // shard map, reduce, finalize, status
Command CompletionCommand();
Command ManCommand();
Command HelpCommand();

// What to say to a name that is no command, with the nearest that is.
Error UnknownCommand(std::string_view name);

}  // namespace culprit::cli
