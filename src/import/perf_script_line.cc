// SPDX-License-Identifier: Apache-2.0
#include "import/perf_script_line.h"

#include <algorithm>

#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

using assemble::kNoTid;

// "12", "12/13", "-1/-1".
bool ParseIds(std::string_view token, PerfScriptHead& head) {
  const size_t slash = token.find('/');
  const auto first = ParseDecimal(token.substr(0, slash));
  if (!first || *first < kNoTid) return false;
  if (slash == std::string_view::npos) {
    head.tid = *first;
    return true;
  }
  const auto second = ParseDecimal(token.substr(slash + 1));
  if (!second || *second < kNoTid) return false;
  head.pid = *first;
  head.tid = *second;
  return true;
}

bool ParseCpu(std::string_view token, PerfScriptHead& head) {
  if (token.size() < 3 || token.front() != '[' || token.back() != ']') return false;
  const auto cpu = ParseDecimal(token.substr(1, token.size() - 2));
  if (!cpu || *cpu < 0 || *cpu >= assemble::kNoCpu) return false;
  head.cpu = static_cast<uint16_t>(*cpu);
  return true;
}

bool ParseTime(std::string_view token, PerfScriptHead& head) {
  if (token.size() < 2 || token.back() != ':') return false;
  head.time_ns = ParseSecondsNs(token.substr(0, token.size() - 1));
  return head.time_ns.has_value();
}

bool IsEventName(std::string_view token) {
  return token.size() >= 2 && token.back() == ':' && !IsSpace(token.front());
}

// What follows the time: "[PERIOD] EVENT: PAYLOAD", or a record that is no event
// ("PERF_RECORD_FORK(7:7):(1:1)").
bool ParseEvent(std::string_view rest, PerfScriptHead& head) {
  const std::string_view whole = rest;
  std::string_view token = TakeToken(rest);
  if (const auto period = ParseDecimal(token)) {
    head.period = *period;
    token = TakeToken(rest);
  }
  if (token.starts_with("PERF_RECORD_")) {
    head.event = token.substr(0, token.find_first_of(":("));
    head.payload = Trim(whole.substr(whole.find(head.event) + head.event.size()));
    return true;
  }
  // perf script -F without `event`: a sample of whatever was recorded.
  if (token.empty() && head.time_ns) {
    head.event = "cycles";
    return true;
  }
  if (!IsEventName(token)) return false;
  head.event = token.substr(0, token.size() - 1);
  head.payload = Trim(rest);
  return true;
}

// Everything after COMM, which ends before `rest`.
bool ParseAfterComm(std::string_view rest, bool with_time, PerfScriptHead& head) {
  if (!ParseIds(TakeToken(rest), head)) return false;
  std::string_view after = rest;
  if (ParseCpu(TakeToken(after), head)) rest = after;
  after = rest;
  const std::string_view token = TakeToken(after);
  if (ParseTime(token, head)) return ParseEvent(after, head);
  std::string_view after_flags = after;
  if (!token.empty() && token.size() <= 8 && ParseTime(TakeToken(after_flags), head)) {
    return ParseEvent(after_flags, head);
  }
  return !with_time && ParseEvent(rest, head) && head.payload.empty();
}

}  // namespace

std::optional<PerfScriptHead> ParsePerfScriptHead(std::string_view line, bool with_time) {
  line = Trim(line);
  // COMM is at most 15 bytes in the kernel; some tools print longer ones.
  constexpr size_t kMaxComm = 64;
  for (size_t at = 1; at < line.size() && at <= kMaxComm; ++at) {
    if (!IsSpace(line[at - 1]) || (!IsDigit(line[at]) && line[at] != '-')) continue;
    PerfScriptHead head;
    head.comm = Trim(line.substr(0, at));
    if (!head.comm.empty() && ParseAfterComm(line.substr(at), with_time, head)) return head;
  }
  return {};
}

bool IsTracepoint(std::string_view event) {
  const size_t colon = event.find(':');
  if (colon == std::string_view::npos) return false;
  if (event.find('/') < colon) return false;
  const std::string_view modifiers = event.substr(colon + 1);
  return !std::all_of(modifiers.begin(), modifiers.end(), [](char c) {
    return std::string_view("ukhGHpPSDIWeb").find(c) != std::string_view::npos;
  });
}

std::string_view BaseEvent(std::string_view event) {
  if (IsTracepoint(event)) return event;
  const std::string_view base = event.substr(0, event.find_first_of(":/"));
  // "cpu_core/cycles/u" names its unit first; "cpu-clock/freq=1000/" its options last.
  const size_t slash = event.find('/');
  if (slash != std::string_view::npos && base.starts_with("cpu") && base != "cpu-clock") {
    const std::string_view inner = event.substr(slash + 1);
    const std::string_view name = inner.substr(0, inner.find_first_of("/,"));
    if (name.find('=') == std::string_view::npos) return name;
  }
  return base;
}

}  // namespace culprit::import_
