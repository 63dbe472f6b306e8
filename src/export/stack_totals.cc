// SPDX-License-Identifier: Apache-2.0
#include "export/stack_totals.h"

#include <algorithm>
#include <unordered_map>

#include "export/event_walk.h"

namespace culprit::export_ {
namespace {

using trace::Event;
using trace::EventKind;

EventKind DefaultKind(const trace::TraceReader& reader) {
  for (const trace::BlockInfo& block : reader.blocks()) {
    if (block.HasKind(EventKind::kWait)) return EventKind::kWait;
  }
  return EventKind::kRunning;
}

uint32_t StackOf(const Event& event) {
  if (event.stack.valid()) return event.stack.value;
  return (event.flags & trace::kNotSampled) != 0 ? kNotSampledStack : kNoStack;
}

}  // namespace

std::string_view PseudoStackName(uint32_t stack) {
  if (stack == kNotSampledStack) return "[not sampled]";
  return stack == kNoStack ? "[no stack]" : "";
}

Result<StackTotals> SumByStack(const trace::TraceReader& reader, const Options& options,
                               bool by_thread) {
  CULPRIT_TRY(RequireReadable(reader));
  StackTotals totals{.kind = options.kind.value_or(DefaultKind(reader))};
  std::unordered_map<uint64_t, size_t> rows;  // thread << 32 | stack
  CULPRIT_ASSIGN(
      totals.summary,
      WalkEvents(reader, options.progress, [&](const std::vector<Event>& events) -> Status {
        for (const Event& event : events) {
          if (event.kind != totals.kind) continue;
          const trace::ThreadId thread = by_thread ? event.thread : trace::ThreadId::none();
          const uint32_t stack = StackOf(event);
          const auto [it, is_new] =
              rows.emplace(uint64_t{thread.value} << 32 | stack, totals.rows.size());
          if (is_new) totals.rows.push_back({.thread = thread, .stack = stack});
          StackTotal& row = totals.rows[it->second];
          ++row.events;
          row.time_ns = AddSaturated(row.time_ns, event.dur_ns);
        }
        return Status();
      }));
  std::sort(totals.rows.begin(), totals.rows.end(), [](const StackTotal& a, const StackTotal& b) {
    return std::pair(a.thread.value, a.stack) < std::pair(b.thread.value, b.stack);
  });
  return totals;
}

}  // namespace culprit::export_
