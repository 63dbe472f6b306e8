// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/man.h"
#include "cli/run.h"

namespace culprit::cli {
namespace {

Result<int> WriteAllPages(const std::string& folder, Output& output) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    return Error{.message = "cannot create the folder: " + code.message(), .file = folder};
  }
  const auto write = [&](std::string_view name, const std::string& page) {
    const auto path = std::filesystem::path(folder) / (ManPageName(name) + ".1");
    return WriteWholeFile(path.string(), page, Overwrite::kAllow);
  };
  CULPRIT_TRY(write("", ManOverviewPage(Commands(), Version())));
  for (const Command& command : Commands()) {
    CULPRIT_TRY(write(command.name, ManPage(command, Version())));
  }
  output.Note("wrote " + std::to_string(Commands().size() + 1) + " manual pages into " + folder);
  return 0;
}

Result<int> RunMan(const Arguments& arguments, Output& output) {
  std::string name;
  for (const std::string& word : arguments.operands()) name += (name.empty() ? "" : " ") + word;
  if (arguments.Has("--into")) {
    if (name.empty()) return WriteAllPages(arguments.Text("--into"), output);
    return Error{.message = "--into writes every page; leave out '" + name + "'"};
  }
  if (name.empty()) {
    output.Print(ManOverviewPage(Commands(), Version()));
    return 0;
  }
  const Command* command = FindCommand(name);
  if (command == nullptr) return UnknownCommand(name);
  output.Print(ManPage(*command, Version()));
  return 0;
}

}  // namespace

Command ManCommand() {
  return {.name = "man",
          .summary = "print manual pages, or write them all into a folder",
          .operands = "[COMMAND]",
          .min_operands = 0,
          .max_operands = 2,
          .examples = {{"culprit man info | man -l -", "read the page of one command"},
                       {"culprit man --into ~/.local/share/man/man1",
                        "let man culprit-info and the others find them"}},
          .flags = {{.name = "--into",
                     .kind = ValueKind::kPath,
                     .value = "DIR",
                     .help = "write every page into this folder, made if it does not exist"}},
          .details =
              "Without a command, the page of culprit itself. Pages are troff source with "
              "the man macros. Existing pages of the same names are replaced.",
          .run = RunMan};
}

}  // namespace culprit::cli
