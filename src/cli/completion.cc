// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <algorithm>

#include "cli/help.h"

namespace culprit::cli {
namespace {

using Words = std::vector<std::string>;

std::string Join(const Words& words, std::string_view separator = " ") {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string_view LastWord(const Command& command) {
  return command.name.substr(GroupOf(command).empty() ? 0 : GroupOf(command).size() + 1);
}

// First words of the command line, each once, in the table's order.
Words FirstWords(const std::vector<Command>& commands) {
  Words words;
  for (const Command& command : commands) {
    const std::string_view group = GroupOf(command);
    const std::string word(group.empty() ? command.name : group);
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

Words Groups(const std::vector<Command>& commands) {
  Words groups;
  for (const Command& command : commands) {
    const std::string group(GroupOf(command));
    if (!group.empty() && std::find(groups.begin(), groups.end(), group) == groups.end()) {
      groups.push_back(group);
    }
  }
  return groups;
}

// A group that is a command by itself too ("profile", "profile merge").
bool IsCommand(const std::vector<Command>& commands, std::string_view group) {
  return std::any_of(commands.begin(), commands.end(),
                     [&](const Command& command) { return command.name == group; });
}

Words SecondWords(const std::vector<Command>& commands, std::string_view group) {
  Words words;
  for (const Command& command : commands) {
    if (GroupOf(command) == group) words.emplace_back(LastWord(command));
  }
  return words;
}

std::vector<Flag> AllFlags(const Command& command) {
  std::vector<Flag> flags = command.flags;
  flags.push_back(HelpFlag());
  return flags;
}

Words Choices(const Flag& flag) { return {flag.choices.begin(), flag.choices.end()}; }

enum class OperandKind { kNone, kFile, kCommand, kChoice };

OperandKind KindOfOperands(const Command& command) {
  const std::string_view text = command.operands;
  if (text.empty()) return OperandKind::kNone;
  if (text.find("COMMAND") != std::string_view::npos) return OperandKind::kCommand;
  const bool small = std::all_of(text.begin(), text.end(),
                                 [](char c) { return (c >= 'a' && c <= 'z') || c == '|'; });
  return small ? OperandKind::kChoice : OperandKind::kFile;
}

Words OperandWords(const Command& command, const std::vector<Command>& commands) {
  if (KindOfOperands(command) == OperandKind::kCommand) return FirstWords(commands);
  Words words;
  if (KindOfOperands(command) != OperandKind::kChoice) return words;
  std::string text(command.operands);
  std::replace(text.begin(), text.end(), '|', ' ');
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// A single-quoted word of the shell. bash and zsh end the quotes around a
// quote; fish takes it behind a backslash, and wants backslashes doubled.
std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string FishQuoted(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string FlagPattern(const Command& command, const Flag& flag) {
  std::string pattern = ShellQuoted(std::string(command.name) + " " + std::string(flag.name));
  if (flag.letter != 0) {
    pattern += "|" + ShellQuoted(std::string(command.name) + " -" + flag.letter);
  }
  return pattern;
}

// The case over "COMMAND FLAG" that completes a flag's value.
std::string BashValues(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    for (const Flag& flag : command.flags) {
      if (flag.kind == ValueKind::kNone) continue;
      text += "    " + FlagPattern(command, flag) + ") ";
      if (flag.kind == ValueKind::kChoice) {
        text += "_culprit_words " + ShellQuoted(Join(Choices(flag))) + "; ";
      } else if (flag.kind == ValueKind::kPath) {
        text += "_culprit_files; ";
      }
      text += "return ;;\n";
    }
  }
  return text;
}

// Offers a group's second words, and finds out which command it is.
std::string BashGroup(const std::vector<Command>& commands, const std::string& group) {
  const Words words = SecondWords(commands, group);
  std::string text = "    " + ShellQuoted(group) + ")\n      if ((COMP_CWORD == 2))";
  if (!IsCommand(commands, group)) {
    return text + "; then _culprit_words " + ShellQuoted(Join(words)) +
           "; return; fi\n      name+=\" ${COMP_WORDS[2]}\" ;;\n";
  }
  text += " && [[ $cur != -* ]]; then\n        _culprit_files\n";
  text += "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W " +
          ShellQuoted(Join(words)) + " -- \"$cur\")\n        return\n      fi\n";
  return text + "      case ${COMP_WORDS[2]} in " + Join(words, "|") +
         ") name+=\" ${COMP_WORDS[2]}\" ;; esac ;;\n";
}

std::string BashFlagsAndOperands(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    Words flags;
    for (const Flag& flag : AllFlags(command)) {
      flags.emplace_back(flag.name);
      if (flag.letter != 0) flags.push_back(std::string{'-', flag.letter});
    }
    text += "    " + ShellQuoted(command.name) + ")\n";
    text += "      if [[ $cur == -* ]]; then _culprit_words " + ShellQuoted(Join(flags)) + "\n";
    switch (KindOfOperands(command)) {
      case OperandKind::kNone:
        break;
      case OperandKind::kFile:
        text += "      else _culprit_files\n";
        break;
      case OperandKind::kCommand:
      case OperandKind::kChoice:
        text += "      else _culprit_words " + ShellQuoted(Join(OperandWords(command, commands))) +
                "\n";
        break;
    }
    text += "      fi ;;\n";
  }
  return text;
}

// An item of zsh's _describe is 'word:description'.
std::string ZshItem(std::string_view word, std::string_view what) {
  std::string item;
  for (char c : word) item += c == ':' ? std::string("\\:") : std::string(1, c);
  return ShellQuoted(item + ":" + std::string(what));
}

// What follows the description in zsh's _arguments.
std::string ZshAction(const Flag& flag) {
  if (flag.kind == ValueKind::kNone) return "";
  std::string name(flag.value.empty() ? "value" : flag.value);
  std::replace(name.begin(), name.end(), ':', ' ');
  if (flag.kind == ValueKind::kChoice) return ":" + name + ":(" + Join(Choices(flag)) + ")";
  return ":" + name + ":" + (flag.kind == ValueKind::kPath ? "_files" : " ");
}

std::string ZshFlag(const Flag& flag) {
  std::string what;
  for (char c : flag.help) {
    if (c == '[' || c == ']' || c == '\\' || c == ':') what += '\\';
    what += c;
  }
  const std::string tail = "[" + what + "]" + ZshAction(flag);
  std::string text = "      " + ShellQuoted("*" + std::string(flag.name) +
                                            (flag.kind == ValueKind::kNone ? "" : "=") + tail);
  if (flag.letter != 0) {
    text += " \\\n      " + ShellQuoted("*-" + std::string(1, flag.letter) +
                                        (flag.kind == ValueKind::kNone ? "" : "+") + tail);
  }
  return text + " \\\n";
}

std::string ZshCommand(const Command& command, const std::vector<Command>& commands) {
  std::string text = "    " + ShellQuoted(command.name) + ")\n      _arguments \\\n";
  for (const Flag& flag : AllFlags(command)) text += ZshFlag(flag);
  switch (KindOfOperands(command)) {
    case OperandKind::kNone:
      text += "      && return\n";
      break;
    case OperandKind::kFile:
      text += "      '*:file:_files' && return\n";
      break;
    case OperandKind::kCommand:
    case OperandKind::kChoice:
      text += "      " + ShellQuoted("*:operand:(" + Join(OperandWords(command, commands)) + ")") +
              " && return\n";
      break;
  }
  return text + "      ;;\n";
}

std::string FishCondition(const Command& command) {
  const std::string_view group = GroupOf(command);
  std::string condition;
  if (!group.empty()) {
    condition = "__fish_seen_subcommand_from " + std::string(group) + "; and ";
  }
  return condition + "__fish_seen_subcommand_from " + std::string(LastWord(command));
}

std::string FishFlag(const std::string& start, const Flag& flag) {
  std::string text = start + " -l " + std::string(flag.name.substr(2));
  if (flag.letter != 0) text += std::string(" -s ") + flag.letter;
  if (flag.kind == ValueKind::kPath) {
    text += " -r -F";
  } else if (flag.kind == ValueKind::kChoice) {
    text += " -x -a " + FishQuoted(Join(Choices(flag)));
  } else if (flag.kind != ValueKind::kNone) {
    text += " -x";
  }
  return text + " -d " + FishQuoted(flag.help) + "\n";
}

}  // namespace

std::string BashCompletion(const std::vector<Command>& commands) {
  std::string text = R"(# bash completion for culprit; made by: culprit completion bash
_culprit_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_culprit_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}
_culprit() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} name=${COMP_WORDS[1]}
  COMPREPLY=()
  # bash parts --flag=value into three words.
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if ((COMP_CWORD == 1)); then
    _culprit_words ')";
  text += Join(FirstWords(commands)) + " --help --version'\n    return\n  fi\n  case $name in\n";
  for (const std::string& group : Groups(commands)) text += BashGroup(commands, group);
  text += "  esac\n  case \"$name $prev\" in\n" + BashValues(commands);
  text += "  esac\n  case $name in\n" + BashFlagsAndOperands(commands);
  return text + "  esac\n}\ncomplete -F _culprit culprit\n";
}

std::string ZshCompletion(const std::vector<Command>& commands) {
  std::string text =
      "#compdef culprit\n"
      "# zsh completion for culprit; made by: culprit completion zsh\n"
      "_culprit() {\n  local -a items\n  local name=$words[2]\n"
      "  if (( CURRENT == 2 )); then\n    items=(\n";
  for (const std::string& word : FirstWords(commands)) {
    const auto row = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& command) { return command.name == word; });
    text += "      " +
            ZshItem(word,
                    row == commands.end() ? "commands about " + word : std::string(row->summary)) +
            "\n";
  }
  text += "    )\n    _describe command items\n    return\n  fi\n  case $name in\n";
  for (const std::string& group : Groups(commands)) {
    const bool command_too = IsCommand(commands, group);
    text += "    " + ShellQuoted(group) + ")\n      if (( CURRENT == 3 ))" +
            (command_too ? " && [[ $words[3] != -* ]]" : "") + "; then\n        items=(\n";
    for (const Command& command : commands) {
      if (GroupOf(command) != group) continue;
      text += "          " + ZshItem(LastWord(command), command.summary) + "\n";
    }
    text += "        )\n        _describe command items\n";
    if (command_too) text += "        _files\n";
    text += "        return\n      fi\n";
    if (command_too)
      text += "      case $words[3] in\n      " + Join(SecondWords(commands, group), "|") + ")\n";
    text += "      name+=\" $words[3]\"\n      shift words\n      (( CURRENT-- ))\n      ;;\n";
    if (command_too) text += "      esac\n      ;;\n";
  }
  text += "  esac\n  shift words\n  (( CURRENT-- ))\n  case $name in\n";
  for (const Command& command : commands) text += ZshCommand(command, commands);
  // Loaded by compinit from $fpath the file is the function's body; sourced, it
  // has to be registered.
  return text +
         "  esac\n}\n"
         "if [[ $funcstack[1] == _culprit ]]; then _culprit \"$@\"; else compdef _culprit culprit; "
         "fi\n";
}

std::string FishCompletion(const std::vector<Command>& commands) {
  const std::string program = "complete -c culprit";
  std::string text = "# fish completion for culprit; made by: culprit completion fish\n";
  text += program + " -f\n";
  text += program + " -n __fish_use_subcommand -l help -s h -d 'show the list of commands'\n";
  text += program + " -n __fish_use_subcommand -l version -d 'which culprit this is'\n";
  for (const Command& command : commands) {
    if (!GroupOf(command).empty()) continue;
    text += program + " -n __fish_use_subcommand -a " + std::string(command.name) + " -d " +
            FishQuoted(command.summary) + "\n";
  }
  for (const std::string& group : Groups(commands)) {
    if (!IsCommand(commands, group)) {
      text += program + " -n __fish_use_subcommand -a " + group + " -d " +
              FishQuoted("commands about " + group) + "\n";
    }
    const std::string inside = "__fish_seen_subcommand_from " + group +
                               "; and not __fish_seen_subcommand_from " +
                               Join(SecondWords(commands, group));
    for (const Command& command : commands) {
      if (GroupOf(command) != group) continue;
      text += program + " -n " + FishQuoted(inside) + " -a " + std::string(LastWord(command)) +
              " -d " + FishQuoted(command.summary) + "\n";
    }
  }
  for (const Command& command : commands) {
    const std::string start = program + " -n " + FishQuoted(FishCondition(command));
    for (const Flag& flag : AllFlags(command)) text += FishFlag(start, flag);
    const Words words = OperandWords(command, commands);
    if (!words.empty()) text += start + " -a " + FishQuoted(Join(words)) + "\n";
    if (KindOfOperands(command) == OperandKind::kFile) text += start + " -F\n";
  }
  return text;
}

}  // namespace culprit::cli
