// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>

#include "report/plain_text.h"

namespace culprit::cli {
namespace {

using report::CodePoints;

// Fills `text` into lines of `width`, all but the first indented.
std::string Fill(std::string_view text, size_t indent, size_t width) {
  std::string filled;
  size_t column = indent;
  bool line_empty = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const size_t length = CodePoints(word);
    if (!line_empty && column + 1 + length > width) {
      filled += "\n" + std::string(indent, ' ');
      column = indent;
      line_empty = true;
    }
    if (!line_empty) {
      filled += ' ';
      ++column;
    }
    filled += word;
    column += length;
    line_empty = false;
  }
  return filled;
}

struct Pair {
  std::string left;
  std::string right;
};

// Two columns; a left side too long for its column gets a line of its own.
std::string Columns(const std::vector<Pair>& pairs, size_t width) {
  constexpr size_t kIndent = 2, kGap = 2, kWidestLeft = 34;
  size_t left_width = 0;
  for (const Pair& pair : pairs) {
    const size_t length = CodePoints(pair.left);
    if (length <= kWidestLeft) left_width = std::max(left_width, length);
  }
  const size_t right_column = kIndent + left_width + kGap;
  std::string text;
  for (const Pair& pair : pairs) {
    const size_t length = CodePoints(pair.left);
    text += std::string(kIndent, ' ') + pair.left;
    if (!pair.right.empty()) {
      text += length > left_width ? "\n" + std::string(right_column, ' ')
                                  : std::string(left_width - length + kGap, ' ');
      text += Fill(pair.right, right_column, width);
    }
    text += "\n";
  }
  return text;
}

std::string ExamplesText(const std::vector<Example>& examples, size_t width) {
  if (examples.empty()) return "";
  std::vector<Pair> pairs;
  for (const Example& example : examples) {
    pairs.push_back({std::string(example.command), std::string(example.what)});
  }
  return "Examples:\n" + Columns(pairs, width) + "\n";
}

Pair FlagPair(const Flag& flag) {
  Pair pair;
  pair.left = flag.letter == 0 ? "    " : std::string{'-', flag.letter} + ", ";
  pair.left += FlagForm(flag);
  pair.right = flag.help;
  if (flag.required) pair.right += " (required)";
  if (!flag.default_text.empty()) {
    pair.right += " [default: " + std::string(flag.default_text) + "]";
  }
  return pair;
}

std::string CommandList(const std::vector<Command>& commands, size_t width) {
  std::vector<Pair> pairs;
  for (const Command& command : commands) {
    pairs.push_back({std::string(command.name), std::string(command.summary)});
  }
  return Columns(pairs, width);
}

}  // namespace

std::string_view GroupOf(const Command& command) {
  const size_t space = command.name.find(' ');
  return space == std::string_view::npos ? std::string_view() : command.name.substr(0, space);
}

const Flag& HelpFlag() {
  static const Flag flag = {.name = "--help", .letter = 'h', .help = "show this help"};
  return flag;
}

std::string FlagForm(const Flag& flag) {
  std::string form(flag.name);
  if (flag.kind == ValueKind::kNone) return form;
  if (!flag.value.empty()) return form + " " + std::string(flag.value);
  std::string choices;
  for (std::string_view choice : flag.choices) {
    choices += (choices.empty() ? "" : "|") + std::string(choice);
  }
  return form + " " + (choices.empty() ? "VALUE" : choices);
}

std::string UsageLine(const Command& command) {
  std::string line = "culprit " + std::string(command.name);
  if (!command.operands.empty()) line += " " + std::string(command.operands);
  for (const Flag& flag : command.flags) {
    if (!flag.required) continue;
    const std::string form = FlagForm(flag);
    line +=
        " " +
        (flag.letter == 0 ? form : std::string{'-', flag.letter} + form.substr(flag.name.size()));
  }
  return line + " [flags]";
}

std::vector<Paragraph> Paragraphs(std::string_view details) {
  std::vector<Paragraph> paragraphs;
  bool open = false;
  while (!details.empty()) {
    const size_t end = std::min(details.find('\n'), details.size());
    const std::string_view line = details.substr(0, end);
    details.remove_prefix(std::min(end + 1, details.size()));
    if (line.find_first_not_of(' ') == std::string_view::npos) {
      open = false;
      continue;
    }
    const bool verbatim = line.front() == ' ';
    if (!open || paragraphs.back().verbatim != verbatim) {
      paragraphs.push_back({.text = "", .verbatim = verbatim});
    }
    if (!paragraphs.back().text.empty()) paragraphs.back().text += '\n';
    paragraphs.back().text += line;
    open = true;
  }
  return paragraphs;
}

std::string HelpText(const Command& command, size_t width) {
  std::string text = "culprit " + std::string(command.name) + ": ";
  text = Fill(text + std::string(command.summary), 2, width) + "\n\n";
  text += ExamplesText(command.examples, width);
  text += "Usage:\n  " + UsageLine(command) + "\n\n";
  std::vector<Pair> flags;
  for (const Flag& flag : command.flags) flags.push_back(FlagPair(flag));
  flags.push_back(FlagPair(HelpFlag()));
  text += "Flags:\n" + Columns(flags, width);
  for (const Paragraph& paragraph : Paragraphs(command.details)) {
    text += "\n" + (paragraph.verbatim ? paragraph.text : Fill(paragraph.text, 0, width)) + "\n";
  }
  return text;
}

std::string GroupText(const std::vector<Command>& commands, std::string_view group, size_t width) {
  std::vector<Command> members;
  std::vector<Example> examples;
  for (const Command& command : commands) {
    if (GroupOf(command) != group) continue;
    members.push_back(command);
    if (!command.examples.empty()) examples.push_back(command.examples.front());
  }
  std::string text = ExamplesText(examples, width);
  text += "Commands:\n" + CommandList(members, width);
  return text + "\nculprit " + std::string(group) + " COMMAND --help explains one of them.\n";
}

std::string OverviewText(const std::vector<Command>& commands, size_t width) {
  static const std::vector<Example> kFirstSteps = {
      {"culprit synth --like demo -o c", "make a small corpus with known causes of delay"},
      {"culprit info c", "what is in it, and where its time went"},
      {"culprit analyze c", "what cost most time and why, on one screen and as a page"},
  };
  static constexpr std::string_view kAboutItself[] = {"help", "man", "completion"};
  std::vector<Command> work, about;
  for (const Command& command : commands) {
    const bool meta = std::find(std::begin(kAboutItself), std::end(kAboutItself), command.name) !=
                      std::end(kAboutItself);
    (meta ? about : work).push_back(command);
  }
  std::string text =
      Fill("culprit: finds the few behaviours behind most of the delay, over thousands of traces",
           2, width) +
      "\n\n";
  text += ExamplesText(kFirstSteps, width);
  text += "Usage:\n  culprit COMMAND [operands] [flags]\n\n";
  text += "Commands:\n" + CommandList(work, width);
  text += "\nAbout culprit itself:\n" + CommandList(about, width);
  return text +
         "\nculprit COMMAND --help explains one of them; culprit --version says which "
         "culprit this is.\n";
}

}  // namespace culprit::cli
