// SPDX-License-Identifier: Apache-2.0
#include "export/event_walk.h"

#include <array>

#include "base/utf8.h"
#include "trace/trace.h"

namespace culprit::export_ {

using trace::Event;
using trace::EventKind;

Status RequireReadable(const trace::TraceReader& reader) {
  std::vector<Event> events;
  Status last;
  for (size_t i = 0; i < reader.blocks().size(); ++i) {
    last = reader.ReadBlock(i, events);
    if (last.ok()) return {};
  }
  if (!last.ok()) return last;
  if (reader.complete()) return {};
  return Error{.message = "no events can be read from it: the file breaks off before the first",
               .hint = "record or copy the trace again"};
}

Result<Summary> WalkEvents(const trace::TraceReader& reader, Progress* progress,
                           const std::function<Status(const std::vector<Event>&)>& visit) {
  if (progress != nullptr) progress->Start("exporting", "events", reader.events());
  Summary summary;
  summary.diagnostics.Merge(reader.diagnostics());
  std::vector<Event> events;
  for (size_t i = 0; i < reader.blocks().size(); ++i) {
    const uint32_t expected = reader.blocks()[i].events;
    const Status status = reader.ReadBlock(i, events);
    if (status.ok()) {
      trace::SortByTime(events);
      CULPRIT_TRY(visit(events));
      summary.events += events.size();
    } else {
      summary.diagnostics.Count(status.error().message, 1, status.error().offset);
      summary.diagnostics.Count("events lost with a damaged block", expected);
    }
    if (progress != nullptr) progress->Advance(expected);
  }
  if (progress != nullptr) progress->Finish();
  return summary;
}

std::vector<std::string_view> FlagNames(uint8_t flags) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "not_sampled", "preempted",  "waker_unknown", "waker_lost",
      "inferred",    "unfinished", "begin",         "end"};
  std::vector<std::string_view> names;
  for (size_t bit = 0; bit < kNames.size(); ++bit) {
    if ((flags >> bit & 1) != 0) names.push_back(kNames[bit]);
  }
  return names;
}

std::string_view Name(trace::ThreadKind kind) {
  static constexpr std::array<std::string_view, trace::kThreadKinds> kNames = {"user", "kernel",
                                                                               "idle", "device"};
  return kNames[static_cast<size_t>(kind)];
}

ArgumentNames ArgumentNamesOf(EventKind kind) {
  switch (kind) {
    case EventKind::kHardware:
      return {"bytes", "operation"};
    case EventKind::kSyscall:
      return {"number", "result"};
    case EventKind::kMarker:
      return {"", "id"};
    default:
      return {};
  }
}

std::string_view MarkerName(const trace::Dictionary& dictionary, const Event& event) {
  if (event.kind != EventKind::kMarker || event.arg0 < 0) return {};
  if (static_cast<uint64_t>(event.arg0) >= dictionary.strings().size()) return {};
  return dictionary.Text(StringId(static_cast<size_t>(event.arg0)));
}

std::string Utf8Text(std::string_view bytes) {
  std::string text;
  for (const char c : ValidUtf8(bytes)) {
    if (c == '\0') {
      text += kReplacementCharacter;
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace culprit::export_
