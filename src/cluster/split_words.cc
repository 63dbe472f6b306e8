// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cluster/symbol_words.h"

namespace culprit::cluster {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// Bytes of other alphabets (UTF-8) count as lower-case letters.
bool IsLetter(char c) {
  return IsLower(c) || IsUpper(c) || (static_cast<unsigned char>(c) >= 0x80);
}
bool IsIdentifier(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '$'; }

constexpr std::string_view kOperator = "operator";

// Whether the identifier `operator` stands at `at`.
bool OperatorAt(std::string_view name, size_t at) {
  if (name.substr(at, kOperator.size()) != kOperator) return false;
  if (at > 0 && IsIdentifier(name[at - 1])) return false;
  const size_t end = at + kOperator.size();
  return end == name.size() || !IsIdentifier(name[end]);
}

// The length of an operator's sign at `at`: `()`, `[]`, `->*`, `<<=`; 0 where a
// word follows, as in `operator new` and in conversions.
size_t SignLength(std::string_view name, size_t at) {
  if (name.substr(at, 2) == "()" || name.substr(at, 2) == "[]") return 2;
  size_t end = at;
  constexpr std::string_view kSigns = "+-*/%^&|~!=<>,";
  while (end < name.size() && end < at + 3 && kSigns.find(name[end]) != std::string_view::npos) {
    ++end;
  }
  // `operator< <int>` is printed with a space, `operator-<int>` without one.
  const std::string_view sign = name.substr(at, end - at);
  if (sign.size() > 1 && sign.back() == '<' && sign != "<<")
    return sign == "<<<" ? 2 : sign.size() - 1;
  return sign.size();
}

// For each bracket that opens the place behind the one that closes it; npos
// where none does. In one pass: names are as long as a file says they are.
std::vector<size_t> GroupEnds(std::string_view name, char open, char close) {
  std::vector<size_t> ends(name.size(), std::string_view::npos);
  std::vector<size_t> opened;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == open) opened.push_back(i);
    if (name[i] == close && !opened.empty()) {
      ends[opened.back()] = i + 1;
      opened.pop_back();
    }
  }
  return ends;
}

// What opens with '(' and is no list of parameters. `(*` stands around the name
// of a function that returns a pointer to one: `void (*pick(int))(char)`.
bool IsPartOfName(std::string_view group) {
  return group.starts_with("(anonymous namespace)") || group.starts_with("(*") ||
         group.starts_with("(&");
}

// Drops parameters, `[abi:..]` and `[clone ..]`, keeps the sign of an operator.
// A group that never closes is kept: half a name is better than none.
std::string WithoutParameters(std::string_view name) {
  const std::vector<size_t> parameter_ends = GroupEnds(name, '(', ')');
  const std::vector<size_t> note_ends = GroupEnds(name, '[', ']');
  std::string kept;
  for (size_t i = 0; i < name.size();) {
    if (OperatorAt(name, i)) {
      const size_t end = i + kOperator.size();
      const size_t sign = SignLength(name, end);
      kept.append(name.substr(i, kOperator.size() + sign));
      i = end + sign;
      continue;
    }
    size_t end = std::string_view::npos;
    if (name[i] == '(' && !IsPartOfName(name.substr(i))) {
      end = parameter_ends[i];
    } else if (name.substr(i).starts_with("[abi:") || name.substr(i).starts_with("[clone ")) {
      end = note_ends[i];
    }
    if (end != std::string_view::npos) {
      i = end;
    } else {
      kept.push_back(name[i++]);
    }
  }
  return kept;
}

// `const`, `&` and the like behind the parameters.
std::string_view WithoutQualifiers(std::string_view name) {
  constexpr std::array<std::string_view, 6> kQualifiers = {" const", " volatile", " noexcept",
                                                           " &&",    " &",        " "};
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view qualifier : kQualifiers) {
      if (name.ends_with(qualifier) && name.size() > qualifier.size()) {
        name.remove_suffix(qualifier.size());
        again = true;
      }
    }
  }
  return name;
}

// What stands before the last blank outside all brackets, up to an operator.
std::string_view WithoutReturnType(std::string_view name) {
  size_t depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && OperatorAt(name, i)) break;
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    const bool arrow = c == '>' && i > 0 && name[i - 1] == '-';
    if (depth > 0 && !arrow && (c == '>' || c == ')' || c == '}' || c == ']')) --depth;
    if (depth == 0 && c == ' ') begin = i + 1;
  }
  return begin < name.size() ? name.substr(begin) : name;
}

// What compilers add to the name of a copy they made of a function, and Rust's
// hash.
std::string_view WithoutCloneSuffix(std::string_view name) {
  constexpr std::array<std::string_view, 7> kClones = {
      ".isra.", ".constprop.", ".part.", ".cold", ".llvm.", ".lto_priv.", ".localalias"};
  size_t end = name.size();
  for (const std::string_view clone : kClones) {
    const size_t at = name.find(clone);
    if (at != std::string_view::npos && at > 0 && at < end) end = at;
  }
  name = name.substr(0, end);
  constexpr size_t kHashLength = 19;  // ::h and 16 hexadecimal digits
  if (name.size() > kHashLength) {
    const std::string_view tail = name.substr(name.size() - kHashLength);
    if (tail.starts_with("::h") &&
        tail.find_first_not_of("0123456789abcdef", 3) == std::string_view::npos) {
      name.remove_suffix(kHashLength);
    }
  }
  return name;
}

// Whether a word ends before name[i], both sides being letters or digits:
// hash|Table, XML|Parser, sha|256.
bool WordEnds(std::string_view name, size_t i) {
  const char before = name[i - 1];
  const char c = name[i];
  if (IsDigit(before) != IsDigit(c)) return true;
  if (!IsUpper(c)) return false;
  return !IsUpper(before) || (i + 1 < name.size() && IsLower(name[i + 1]));
}

std::vector<std::string> Cut(std::string_view name) {
  std::vector<std::string> words;
  bool open = false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (OperatorAt(name, i)) {
      const size_t sign = SignLength(name, i + kOperator.size());
      words.emplace_back(kOperator);
      if (sign > 0) words.emplace_back(name.substr(i + kOperator.size(), sign));
      i += kOperator.size() + sign - 1;
      open = false;
      continue;
    }
    const char c = name[i];
    if (!IsLetter(c) && !IsDigit(c)) {
      open = false;
      continue;
    }
    if (!open || WordEnds(name, i)) words.emplace_back();
    words.back().push_back(IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c);
    open = true;
  }
  return words;
}

}  // namespace

std::vector<std::string> SplitWords(std::string_view function) {
  const std::string bare = WithoutParameters(function);
  return Cut(WithoutReturnType(WithoutCloneSuffix(WithoutQualifiers(bare))));
}

}  // namespace culprit::cluster
