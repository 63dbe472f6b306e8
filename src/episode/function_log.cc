// SPDX-License-Identifier: Apache-2.0
#include "episode/function_log.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/parallel.h"

namespace culprit::episode {
namespace {

using trace::Event;
using trace::EventKind;

constexpr size_t kBlocksAtOnce = 32;

// Every tool has its own way to write the same clock.
std::string ClockOf(std::string_view name) {
  std::string clock;
  for (const char c : name) clock += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (clock.starts_with("clock_")) clock.erase(0, 6);
  return clock == "mono" ? "monotonic" : clock;
}

}  // namespace

FunctionLog ReadFunctionLog(const trace::TraceReader& reader, size_t jobs) {
  FunctionLog log;
  std::vector<size_t> wanted;
  for (size_t i = 0; i < reader.blocks().size(); ++i) {
    if (reader.blocks()[i].HasKind(EventKind::kCall)) wanted.push_back(i);
  }
  const auto& threads = reader.dictionary().threads();
  std::vector<std::vector<Event>> events(kBlocksAtOnce);
  std::vector<uint8_t> damaged(kBlocksAtOnce);
  for (size_t first = 0; first < wanted.size(); first += kBlocksAtOnce) {
    const size_t count = std::min(kBlocksAtOnce, wanted.size() - first);
    ParallelFor(count, jobs, [&](size_t i) {
      damaged[i] = !reader.ReadBlock(wanted[first + i], events[i]).ok();
      if (damaged[i] != 0) events[i].clear();
    });
    for (size_t i = 0; i < count; ++i) {
      if (damaged[i] != 0) {
        log.diagnostics.Count("block that could not be read", 1,
                              reader.blocks()[wanted[first + i]].offset);
      }
      for (const Event& event : events[i]) {
        if (event.kind != EventKind::kCall || !event.thread.valid()) continue;
        log.threads[threads[event.thread.value].tid].push_back(
            {.time_ns = event.time_ns, .dur_ns = event.dur_ns, .stack = event.stack});
        ++log.calls;
      }
    }
  }
  for (auto& [tid, spans] : log.threads) OrderCalls(spans);
  return log;
}

Status CheckSameTime(const trace::TraceReader& functions, const trace::TraceReader& syscalls) {
  const trace::Metadata& a = functions.metadata();
  const trace::Metadata& b = syscalls.metadata();
  if (ClockOf(a.clock) != ClockOf(b.clock)) {
    return Error{.message = "the functions have times of the clock '" + a.clock +
                            "', the system calls of '" + b.clock + "': they cannot be compared",
                 .hint = "record both by CLOCK_MONOTONIC (perf record -k CLOCK_MONOTONIC)"};
  }
  if (a.end_ns < b.begin_ns || b.end_ns < a.begin_ns) {
    return Error{.message = "the two traces are not of the same time",
                 .hint = "record the system calls while the functions are recorded"};
  }
  return {};
}

}  // namespace culprit::episode
