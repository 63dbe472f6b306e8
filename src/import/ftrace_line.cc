// SPDX-License-Identifier: Apache-2.0
#include "import/ftrace_line.h"

#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxTask = 256;

// "[003]" with nothing else inside.
std::optional<uint16_t> ParseCpu(std::string_view token) {
  if (token.size() < 3 || token.front() != '[' || token.back() != ']') return {};
  const auto cpu = ParseDecimal(token.substr(1, token.size() - 2));
  if (!cpu || *cpu < 0 || *cpu >= assemble::kNoCpu) return {};
  return static_cast<uint16_t>(*cpu);
}

// "d.h3": irqs off, need resched, hard or soft interrupt, depth.
std::optional<uint64_t> ParseFlags(std::string_view token) {
  if (token.size() < 4 || token.size() > 8) return {};
  switch (token[2]) {
    case 'h':
      return 0x08;
    case 'H':
      return 0x18;
    case 's':
      return 0x10;
    case 'z':
      return 0x40;
    case 'Z':
      return 0x48;
    default:
      return 0;
  }
}

bool ParseTask(std::string_view text, FtraceLine& out) {
  text = Trim(text);
  if (text.ends_with(')')) {
    const size_t open = text.rfind('(');
    if (open != std::string_view::npos) {
      // "(-----)" where the kernel did not know.
      const auto tgid = ParseDecimal(Trim(text.substr(open + 1, text.size() - open - 2)));
      if (tgid && *tgid >= 0) out.tgid = *tgid;
      text = Trim(text.substr(0, open));
    }
  }
  const size_t dash = text.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return false;
  const auto tid = ParseDecimal(text.substr(dash + 1));
  if (!tid || *tid < 0) return false;
  out.tid = *tid;
  out.comm = Trim(text.substr(0, dash));
  return true;
}

// "(+59200)" of trace-cmd report --ts-diff.
void SkipDifference(std::string_view& rest) {
  std::string_view after = TrimLeft(rest);
  if (!after.starts_with("(+")) return;
  const std::string_view token = TakeToken(after);
  if (token.ends_with(')') && ParseDecimal(token.substr(2, token.size() - 3))) rest = after;
}

bool ParseEvent(std::string_view rest, FtraceLine& out) {
  SkipDifference(rest);
  rest = TrimLeft(rest);
  if (rest.starts_with("<stack trace>") || rest.starts_with("<user stack trace>")) {
    out.event = rest.substr(0, rest.find('>') + 1);
    return true;
  }
  size_t length = 0;
  while (length < rest.size() && !IsSpace(rest[length]) && rest[length] != '(' &&
         rest[length] != ':') {
    ++length;
  }
  if (length == 0) return false;
  out.event = rest.substr(0, length);
  rest.remove_prefix(length);
  const bool colon = rest.starts_with(':');
  if (colon) rest.remove_prefix(1);
  out.payload = Trim(rest);
  return colon || out.event.starts_with("sys_");
}

// Everything from the CPU's bracket on.
bool ParseFromCpu(std::string_view rest, FtraceLine& out) {
  const auto cpu = ParseCpu(TakeToken(rest));
  if (!cpu) return false;
  out.cpu = *cpu;
  for (int i = 0; i < 2; ++i) {
    const std::string_view token = TakeToken(rest);
    if (token.size() >= 2 && token.back() == ':') {
      const auto time_ns = ParseSecondsNs(token.substr(0, token.size() - 1));
      if (!time_ns) return false;
      out.time_ns = *time_ns;
      return ParseEvent(rest, out);
    }
    out.flags = ParseFlags(token);
  }
  return false;
}

// Without brackets, as trace-cmd report -l writes it: "TASK-TID 2d.s4. TIME: ...".
std::optional<FtraceLine> ParseLatencyLine(std::string_view line) {
  const size_t colon = line.find(": ");
  if (colon == std::string_view::npos || colon > kMaxTask + 64) return {};
  const size_t time_at = line.rfind(' ', colon) + 1;
  const auto time_ns = ParseSecondsNs(line.substr(time_at, colon - time_at));
  const std::string_view before = Trim(line.substr(0, time_at));
  const size_t place_at = before.rfind(' ');
  if (!time_ns || place_at == std::string_view::npos) return {};
  std::string_view place = before.substr(place_at + 1);
  size_t digits = 0;
  while (digits < place.size() && IsDigit(place[digits])) ++digits;
  const auto cpu = ParseDecimal(place.substr(0, digits));
  place.remove_prefix(digits);
  FtraceLine out;
  out.flags = ParseFlags(place);
  if (!cpu || *cpu >= assemble::kNoCpu || !out.flags ||
      !ParseTask(before.substr(0, place_at), out)) {
    return {};
  }
  out.cpu = static_cast<uint16_t>(*cpu);
  out.time_ns = *time_ns;
  return ParseEvent(line.substr(colon + 1), out) ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<FtraceLine> ParseFtraceLine(std::string_view line) {
  for (size_t at = line.find(" ["); at != std::string_view::npos && at < kMaxTask;
       at = line.find(" [", at + 1)) {
    FtraceLine out;
    if (ParseTask(line.substr(0, at), out) && ParseFromCpu(line.substr(at), out)) return out;
  }
  return ParseLatencyLine(line);
}

}  // namespace culprit::import_
