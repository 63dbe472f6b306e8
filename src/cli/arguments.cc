// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "cli/command.h"

namespace culprit::cli {
namespace {

Error UsageError(const Command& command, std::string message) {
  return {.message = std::move(message),
          .hint = "culprit " + std::string(command.name) + " --help shows what it takes"};
}

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

const Flag* FindFlag(const Command& command, std::string_view name) {
  for (const Flag& flag : command.flags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

const Flag* FindLetter(const Command& command, char letter) {
  for (const Flag& flag : command.flags) {
    if (flag.letter != 0 && flag.letter == letter) return &flag;
  }
  return nullptr;
}

std::string Join(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

// What is wrong with a value, as the rest of a sentence that begins with the
// flag's name; empty if nothing is.
std::string ValueProblem(const Flag& flag, const std::string& value) {
  const std::string not_this = ", not " + Quoted(value);
  switch (flag.kind) {
    case ValueKind::kNone:
    case ValueKind::kText:
      return "";
    case ValueKind::kPath:
      return value.empty() ? " takes a path" + not_this : "";
    case ValueKind::kNumber:
      return ParseUnsigned(value) ? "" : " takes a whole number" + not_this;
    case ValueKind::kReal:
      return ParseDouble(value) ? "" : " takes a number" + not_this;
    case ValueKind::kDuration: {
      const auto dur_ns = ParseDuration(value);
      if (dur_ns && *dur_ns >= 0) return "";
      return " takes a time with its unit, such as 300ms or 1.5s" + not_this;
    }
    case ValueKind::kChoice: {
      if (std::find(flag.choices.begin(), flag.choices.end(), value) != flag.choices.end()) {
        return "";
      }
      std::string problem = " takes one of " + Join(flag.choices) + not_this;
      if (const auto near = Nearest(value, flag.choices)) {
        problem += "; did you mean " + Quoted(*near) + "?";
      }
      return problem;
    }
  }
  return "";
}

Error UnknownFlag(const Command& command, std::string_view word) {
  std::vector<std::string_view> names = {"--help"};
  for (const Flag& flag : command.flags) names.push_back(flag.name);
  std::string message = "unknown flag " + Quoted(word);
  const auto near = word.starts_with("--") ? Nearest(word, names) : std::nullopt;
  if (near) message += "; did you mean " + Quoted(*near) + "?";
  return UsageError(command, std::move(message));
}

// Walks over the words once; values and operands are left in the order given.
class Parser {
 public:
  Parser(const Command& command, const std::vector<std::string>& words)
      : command_(command), words_(words) {}

  Status Run() {
    bool flags_ended = false;
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (flags_ended || word.size() < 2 || word.front() != '-') {
        operands.push_back(word);
      } else if (word == "--") {
        flags_ended = true;
      } else if (word.starts_with("--")) {
        CULPRIT_TRY(LongFlag(word));
      } else {
        CULPRIT_TRY(Letters(word));
      }
    }
    CULPRIT_TRY(CheckRequired());
    return CheckOperandCount();
  }

  std::vector<std::string> operands;
  std::vector<std::pair<std::string_view, std::string>> values;

 private:
  Status LongFlag(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const Flag* flag = FindFlag(command_, name);
    if (flag == nullptr) return UnknownFlag(command_, name);
    if (equals == std::string_view::npos) {
      return flag->kind == ValueKind::kNone ? Keep(*flag, name, "") : NextWord(*flag, name);
    }
    if (flag->kind == ValueKind::kNone) {
      return UsageError(command_, std::string(name) + " takes no value");
    }
    return Keep(*flag, name, std::string(word.substr(equals + 1)));
  }

  // "-o value", "-ovalue", and letters without values together: "-fo value".
  Status Letters(std::string_view word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const Flag* flag = FindLetter(command_, word[i]);
      if (flag == nullptr) return UnknownFlag(command_, i == 1 ? word : "-" + std::string{word[i]});
      const std::string name = {'-', word[i]};
      if (flag->kind == ValueKind::kNone) {
        CULPRIT_TRY(Keep(*flag, name, ""));
        continue;
      }
      if (i + 1 == word.size()) return NextWord(*flag, name);
      return Keep(*flag, name, std::string(word.substr(i + 1)));
    }
    return {};
  }

  // A forgotten value must not swallow the flag behind it.
  Status NextWord(const Flag& flag, std::string_view name) {
    const std::string wanted =
        std::string(name) + " needs a value: " + std::string(name) + " " + std::string(flag.value);
    if (next_ == words_.size()) return UsageError(command_, wanted);
    const std::string& value = words_[next_];
    if (value == "--" || FindFlag(command_, value.substr(0, value.find('='))) != nullptr) {
      return UsageError(command_, wanted + ", and " + Quoted(value) + " is a flag");
    }
    ++next_;
    return Keep(flag, name, value);
  }

  Status Keep(const Flag& flag, std::string_view name, std::string value) {
    const std::string problem = ValueProblem(flag, value);
    if (!problem.empty()) return UsageError(command_, std::string(name) + problem);
    values.emplace_back(flag.name, std::move(value));
    return {};
  }

  Status CheckRequired() const {
    for (const Flag& flag : command_.flags) {
      const bool given = std::any_of(values.begin(), values.end(),
                                     [&](const auto& value) { return value.first == flag.name; });
      if (!flag.required || given) continue;
      std::string form(flag.name);
      if (!flag.choices.empty()) {
        form += ", one of " + Join(flag.choices);
      } else if (!flag.value.empty()) {
        form += " " + std::string(flag.value);
      }
      return UsageError(command_, "culprit " + std::string(command_.name) + " needs " + form);
    }
    return {};
  }

  Status CheckOperandCount() const {
    const std::string name = "culprit " + std::string(command_.name);
    const std::string form = name + " " + std::string(command_.operands);
    if (operands.size() < command_.min_operands) {
      return UsageError(command_, (operands.empty() ? "nothing" : "not enough") +
                                      std::string(" was named to work on: ") + form);
    }
    if (operands.size() <= command_.max_operands) return {};
    const std::string extra = Quoted(operands[command_.max_operands]);
    if (command_.max_operands == 0) {
      return UsageError(command_, name + " takes no operands, and " + extra + " is one");
    }
    return UsageError(command_, extra + " is one operand too many: " + form);
  }

  const Command& command_;
  const std::vector<std::string>& words_;
  size_t next_ = 0;
};

}  // namespace

Result<Arguments> ParseArguments(const Command& command, const std::vector<std::string>& words) {
  Parser parser(command, words);
  CULPRIT_TRY(parser.Run());
  Arguments arguments;
  arguments.command_ = &command;
  arguments.operands_ = std::move(parser.operands);
  arguments.values_ = std::move(parser.values);
  return arguments;
}

bool Arguments::Has(std::string_view flag) const {
  CULPRIT_CHECK(FindFlag(*command_, flag) != nullptr);
  return std::any_of(values_.begin(), values_.end(),
                     [&](const auto& value) { return value.first == flag; });
}

std::string Arguments::Text(std::string_view flag) const {
  const Flag* known = FindFlag(*command_, flag);
  CULPRIT_CHECK(known != nullptr);
  for (size_t i = values_.size(); i-- > 0;) {
    if (values_[i].first == flag) return values_[i].second;
  }
  return std::string(known->default_text);
}

std::vector<std::string> Arguments::All(std::string_view flag) const {
  CULPRIT_CHECK(FindFlag(*command_, flag) != nullptr);
  std::vector<std::string> all;
  for (const auto& [name, value] : values_) {
    if (name == flag) all.push_back(value);
  }
  return all;
}

uint64_t Arguments::Number(std::string_view flag) const {
  const std::string text = Text(flag);
  if (text.empty()) return 0;
  const auto value = ParseUnsigned(text);
  CULPRIT_CHECK(value.has_value());
  return *value;
}

double Arguments::Real(std::string_view flag) const {
  const std::string text = Text(flag);
  if (text.empty()) return 0;
  const auto value = ParseDouble(text);
  CULPRIT_CHECK(value.has_value());
  return *value;
}

int64_t Arguments::DurationNs(std::string_view flag) const {
  const std::string text = Text(flag);
  if (text.empty()) return 0;
  const auto value = ParseDuration(text);
  CULPRIT_CHECK(value.has_value());
  return *value;
}

}  // namespace culprit::cli
