// SPDX-License-Identifier: Apache-2.0
#include "scale/command_template.h"

#include <algorithm>
#include <array>

#include "base/shell_word.h"
#include "base/text.h"

namespace culprit::scale {
namespace {

constexpr std::array<std::string_view, 8> kPlaceholders = {"index",   "indexes", "verb", "run",
                                                           "program", "slot",    "host", "command"};

Error TemplateError(const std::string& message) {
  return {.message = "the command of --command " + message,
          .hint = "an example: --command 'ssh {host} {command}' --hosts a,b,c"};
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Words as a shell cuts them, as far as blanks, quotes and backslashes go.
Result<std::vector<std::string>> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && IsBlank(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) return TemplateError("has a quote without its end");
  return words;
}

std::string ShellLine(const TemplateValues& values) {
  std::string line = ShellWord(values.program) + " shard " + std::string(VerbName(values.verb)) +
                     " " + ShellWord(values.run) + " " + std::to_string(values.index);
  for (const std::string& flag : values.task_flags) line += " " + ShellWord(flag);
  return line;
}

std::string ValueOf(std::string_view name, const TemplateValues& values) {
  if (name == "index") return std::to_string(values.index);
  if (name == "indexes") return values.indexes;
  if (name == "verb") return std::string(VerbName(values.verb));
  if (name == "run") return values.run;
  if (name == "program") return values.program;
  if (name == "slot") return std::to_string(values.slot);
  if (name == "host") return values.host;
  return ShellLine(values);
}

}  // namespace

Result<CommandTemplate::Word> CommandTemplate::ParseWord(std::string_view word) {
  Word pieces;
  std::string text;
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if ((c == '{' || c == '}') && i + 1 < word.size() && word[i + 1] == c) {
      text += c;
      ++i;
      continue;
    }
    if (c == '}') return TemplateError("has a '}' without its '{'; write }} for the sign itself");
    if (c != '{') {
      text += c;
      continue;
    }
    const size_t end = word.find('}', i);
    const std::string_view name =
        word.substr(i + 1, end == std::string_view::npos ? end : end - i - 1);
    if (end == std::string_view::npos ||
        std::find(kPlaceholders.begin(), kPlaceholders.end(), name) == kPlaceholders.end()) {
      std::string message = "has '{" + std::string(name) + "', which is no placeholder";
      if (const auto near = Nearest(name, kPlaceholders)) {
        message += "; did you mean {" + std::string(*near) + "}?";
      }
      return TemplateError(message);
    }
    if (!text.empty()) pieces.push_back({.text = std::move(text)});
    text.clear();
    pieces.push_back({.is_placeholder = true, .text = std::string(name)});
    i = end;
  }
  if (!text.empty() || pieces.empty()) pieces.push_back({.text = std::move(text)});
  return pieces;
}

Result<CommandTemplate> CommandTemplate::Parse(std::string_view text) {
  CULPRIT_ASSIGN(const std::vector<std::string> words, SplitWords(text));
  if (words.empty()) return TemplateError("is empty");
  CommandTemplate result;
  bool for_one = false;
  for (const std::string& word : words) {
    CULPRIT_ASSIGN(Word pieces, ParseWord(word));
    for (const Piece& piece : pieces) {
      if (!piece.is_placeholder) continue;
      result.for_all_ = result.for_all_ || piece.text == "indexes";
      result.uses_host_ = result.uses_host_ || piece.text == "host";
      for_one = for_one || piece.text == "index" || piece.text == "command";
    }
    result.words_.push_back(std::move(pieces));
  }
  if (for_one == result.for_all_) {
    return TemplateError(for_one
                             ? "has {indexes} for all tasks and {index} or {command} for one"
                             : "does not say which task: it needs {command}, {index} or {indexes}");
  }
  return result;
}

std::vector<std::string> CommandTemplate::Fill(const TemplateValues& values) const {
  std::vector<std::string> words;
  for (const Word& pieces : words_) {
    std::string word;
    for (const Piece& piece : pieces) {
      word += piece.is_placeholder ? ValueOf(piece.text, values) : piece.text;
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace culprit::scale
