// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <algorithm>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/help.h"

namespace culprit::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongCommandLine = 2;
constexpr size_t kWidestHelp = 100;

bool IsHelp(std::string_view word) { return word == "--help" || word == "-h"; }

bool AsksForHelp(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end, IsHelp);
}

// Note() ends the line itself.
void NoteText(std::string text, Output& output) {
  if (text.ends_with('\n')) text.pop_back();
  output.Note(text);
}

int WrongCommandLine(const Error& error, Output& output) {
  PrintError(error, output);
  return kWrongCommandLine;
}

int RunCommand(const Command& command, const std::vector<std::string>& words, Output& output) {
  if (AsksForHelp(words)) {
    output.Print(HelpText(command, std::min(output.width(), kWidestHelp)));
    return 0;
  }
  const Result<Arguments> arguments = ParseArguments(command, words);
  if (!arguments.ok()) return WrongCommandLine(arguments.error(), output);
  const Result<int> outcome = command.run(arguments.value(), output);
  output.progress().Finish();
  if (outcome.ok()) return outcome.value();
  PrintError(outcome.error(), output);
  return kFailed;
}

// `words` begins with the name of a group but no command of it.
int RunGroup(const std::vector<std::string>& words, Output& output) {
  const std::string text = GroupText(Commands(), words[0], std::min(output.width(), kWidestHelp));
  if (words.size() == 1) {
    NoteText(text, output);
    return kWrongCommandLine;
  }
  if (IsHelp(words[1])) {
    output.Print(text);
    return 0;
  }
  return WrongCommandLine(UnknownCommand(words[0] + " " + words[1]), output);
}

int RunFlag(const std::string& word, Output& output) {
  if (IsHelp(word)) {
    output.Print(OverviewText(Commands(), std::min(output.width(), kWidestHelp)));
    return 0;
  }
  if (word == "--version") {
    output.Print("culprit " + std::string(Version()) + "\n");
    return 0;
  }
  static constexpr std::string_view kFlags[] = {"--help", "--version"};
  Error error{.message = "unknown flag '" + word + "' before a command",
              .hint = "culprit --help lists the commands"};
  if (const auto near = Nearest(word, kFlags)) {
    error.message += "; did you mean '" + std::string(*near) + "'?";
  }
  return WrongCommandLine(error, output);
}

}  // namespace

std::string_view Version() { return CULPRIT_VERSION; }

void PrintError(const Error& error, Output& output) {
  output.Warn(error.ToString());
  if (!error.hint.empty()) output.Note("  hint: " + error.hint);
}

int RunCulprit(const std::vector<std::string>& words, Output& output) {
  if (words.empty()) {
    NoteText(OverviewText(Commands(), std::min(output.width(), kWidestHelp)), output);
    return kWrongCommandLine;
  }
  if (words[0].starts_with('-')) return RunFlag(words[0], output);
  if (words.size() >= 2) {
    if (const Command* command = FindCommand(words[0] + " " + words[1])) {
      return RunCommand(*command, {words.begin() + 2, words.end()}, output);
    }
  }
  if (const Command* command = FindCommand(words[0])) {
    return RunCommand(*command, {words.begin() + 1, words.end()}, output);
  }
  const bool group = std::any_of(Commands().begin(), Commands().end(),
                                 [&](const Command& c) { return GroupOf(c) == words[0]; });
  if (group) return RunGroup(words, output);
  return WrongCommandLine(UnknownCommand(words[0]), output);
}

}  // namespace culprit::cli
