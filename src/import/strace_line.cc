// SPDX-License-Identifier: Apache-2.0
#include "import/strace_line.h"

#include <algorithm>

#include "base/text.h"
#include "import/text_scan.h"
#include "trace/error_table.h"

namespace culprit::import_ {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_';
}

// "12:34:56" and "12:34:56.789012".
std::optional<int64_t> ParseTimeOfDay(std::string_view token) {
  if (token.size() < 8 || token[2] != ':' || token[5] != ':') return {};
  const auto hours = ParseDecimal(token.substr(0, 2));
  const auto minutes = ParseDecimal(token.substr(3, 2));
  const std::string_view rest = token.substr(6);
  const auto whole = ParseDecimal(rest);
  const auto seconds_ns = whole ? std::optional(*whole * kNsPerSecond) : ParseSecondsNs(rest);
  if (!hours || !minutes || !seconds_ns || *hours < 0 || *hours > 23 || *minutes < 0 ||
      *minutes > 59 || *seconds_ns < 0 || *seconds_ns >= 61 * kNsPerSecond) {
    return {};
  }
  return (*hours * 3600 + *minutes * 60) * kNsPerSecond + *seconds_ns;
}

// "12" and, with -Y, "12<name of the thread>" from the front.
std::optional<int64_t> TakeNumber(std::string_view& text) {
  size_t length = 0;
  while (length < text.size() && IsDigit(text[length])) ++length;
  const auto number = ParseDecimal(text.substr(0, length));
  text.remove_prefix(length);
  if (number && text.starts_with('<')) {
    text.remove_prefix(std::min(text.find('>'), text.size() - 1) + 1);
  }
  return number;
}

// Takes "[pid 12]" or a bare number from the front.
void TakePid(std::string_view& line, StraceLine& out) {
  if (line.starts_with("[pid")) {
    std::string_view rest = TrimLeft(line.substr(4));
    const auto number = TakeNumber(rest);
    rest = TrimLeft(rest);
    if (!rest.starts_with(']')) return;
    out.tid = number;
    line = TrimLeft(rest.substr(1));
    return;
  }
  std::string_view named = line;
  const auto named_number = TakeNumber(named);
  if (named_number && *named_number > 0 && named.data() > line.data() && named.data()[-1] == '>') {
    out.tid = named_number;
    line = TrimLeft(named);
    return;
  }
  std::string_view rest = line;
  const auto number = ParseDecimal(TakeToken(rest));
  if (!number || *number <= 0 || rest.empty()) return;
  out.tid = *number;
  line = rest;
}

// "[0000ffffaf3dc88c]" (-i), "[ 221]" (-n), or both.
void SkipPlaces(std::string_view& line) {
  while (line.starts_with('[')) {
    const size_t close = line.find(']');
    if (close == std::string_view::npos) return;
    const std::string_view inside = Trim(line.substr(1, close - 1));
    if (!ParseHexadecimal(inside) && inside.find_first_not_of('?') != std::string_view::npos)
      return;
    line = TrimLeft(line.substr(close + 1));
  }
}

void TakeTime(std::string_view& line, StraceLine& out) {
  std::string_view rest = line;
  const std::string_view token = TakeToken(rest);
  if (const auto seconds = ParseSecondsNs(token)) {
    out.clock = StraceLine::Clock::kSeconds;
    out.time_ns = *seconds;
  } else if (const auto of_day = ParseTimeOfDay(token)) {
    out.clock = StraceLine::Clock::kOfDay;
    out.time_ns = *of_day;
  } else {
    return;
  }
  line = rest;
}

// " = RESULT [ERRNO (TEXT)] [<SECONDS>]" at the end of `text`; false: not there.
bool ParseResult(std::string_view text, StraceLine& out) {
  if (text.ends_with('>')) {
    const size_t open = text.rfind('<');
    if (open != std::string_view::npos) {
      out.dur_ns = ParseSecondsNs(text.substr(open + 1, text.size() - open - 2));
      if (out.dur_ns) text = Trim(text.substr(0, open));
    }
  }
  for (size_t at = text.rfind("= "); at != std::string_view::npos && at > 0;
       at = text.rfind("= ", at - 1)) {
    const std::string_view before = Trim(text.substr(0, at));
    if (!IsSpace(text[at - 1]) || !before.ends_with(')')) continue;
    std::string_view rest = text.substr(at + 2);
    std::string_view value = TakeToken(rest);
    value = value.substr(0, value.find('<'));  // "3</etc/passwd>" with -y
    const std::string_view name = TakeToken(rest);
    const int64_t code = trace::ErrorNumber(name);
    if ((value == "-1" || value == "?") && code != 0) {
      out.result = -code;
    } else if (value != "?") {
      out.result = ParseAnyInteger(value);
      if (!out.result) continue;
    }
    return true;
  }
  return false;
}

// "name(" at the front; empty: not there.
std::string_view CallName(std::string_view line) {
  size_t length = 0;
  while (length < line.size() && IsNameCharacter(line[length])) ++length;
  const bool call =
      length != 0 && !IsDigit(line.front()) && length < line.size() && line[length] == '(';
  return line.substr(0, call ? length : 0);
}

bool ParseCall(std::string_view line, StraceLine& out) {
  out.name = CallName(line);
  const size_t length = out.name.size();
  if (length == 0) return false;
  const std::string_view arguments = line.substr(length + 1);
  out.arguments = arguments;
  if (arguments.starts_with('"')) {
    const size_t quote = arguments.find('"', 1);
    if (quote != std::string_view::npos) out.first_argument = arguments.substr(1, quote - 1);
  }
  if (line.ends_with("<unfinished ...>")) {
    out.kind = StraceKind::kUnfinished;
    return true;
  }
  out.kind = StraceKind::kCall;
  return ParseResult(line, out);
}

bool ParseResumed(std::string_view line, StraceLine& out) {
  line.remove_prefix(5);
  const size_t end = line.find(" resumed");
  if (end == std::string_view::npos) return false;
  out.name = Trim(line.substr(0, end));
  out.kind = StraceKind::kResumed;
  line.remove_prefix(end);
  // "<... exit resumed> <unfinished ...>" and alike have no result.
  ParseResult(line, out);
  return true;
}

}  // namespace

std::optional<StraceLine> ParseStraceLine(std::string_view line) {
  StraceLine out;
  line = Trim(line);
  TakePid(line, out);
  TakeTime(line, out);
  SkipPlaces(line);
  if (line.starts_with("--- ") && line.ends_with(" ---")) {
    out.kind = StraceKind::kSignal;
    return out;
  }
  if (line.starts_with("+++ ") && line.ends_with(" +++")) {
    out.kind = StraceKind::kExit;
    return out;
  }
  if (line.starts_with("<... ")) {
    return ParseResumed(line, out) ? std::optional(out) : std::nullopt;
  }
  return ParseCall(line, out) ? std::optional(out) : std::nullopt;
}

std::string_view StraceArgument(std::string_view arguments, size_t index) {
  size_t depth = 0;
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const char c = arguments[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '(' || c == '[' || c == '{') ++depth;
    const bool closes = c == ')' || c == ']' || c == '}';
    const bool ends =
        depth == 0 && (c == ',' || closes || arguments.substr(i).starts_with(" <unf"));
    if (closes && depth > 0) --depth;
    if (!ends) continue;
    if (index == 0) return Trim(arguments.substr(begin, i - begin));
    if (c != ',') return {};
    --index;
    begin = i + 1;
  }
  return {};
}

bool BeginsStraceCall(std::string_view line) {
  StraceLine out;
  line = Trim(line);
  TakePid(line, out);
  TakeTime(line, out);
  SkipPlaces(line);
  return !CallName(line).empty() && (out.tid || out.clock != StraceLine::Clock::kNone);
}

std::optional<StraceFrame> ParseStraceFrame(std::string_view line) {
  if (!line.starts_with(" > ")) return {};
  line = Trim(line.substr(3));
  StraceFrame frame;
  const size_t bracket = line.rfind(" [0x");
  if (bracket == std::string_view::npos || !line.ends_with(']')) return {};
  frame.address = ParseHexadecimal(line.substr(bracket + 2, line.size() - bracket - 3)).value_or(0);
  line = line.substr(0, bracket);
  const size_t open = line.find('(');
  frame.module = line.substr(0, open);
  if (open == std::string_view::npos || !line.ends_with(')')) return frame;
  const std::string_view inside = line.substr(open + 1, line.size() - open - 2);
  frame.function = inside.substr(0, inside.rfind("+0x"));
  return frame;
}

}  // namespace culprit::import_
