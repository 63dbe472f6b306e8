// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>

#include "base/text.h"
#include "cli/show_path.h"
#include "report/plain_text.h"

namespace culprit::cli {

using trace::EventKind;
using trace::ThreadId;
using waitgraph::CriticalPath;
using waitgraph::Segment;
using waitgraph::SegmentKind;

namespace {

constexpr size_t kMaxLabel = 30;
constexpr size_t kMostWakeUps = 9;

// Columns of equal time over an instance.
struct Scale {
  int64_t t0_ns = 0;
  int64_t dur_ns = 1;
  size_t columns = 1;

  // The products may pass 64 bits for instances of many years.
  size_t ColumnOf(int64_t time_ns) const {
    const double share = static_cast<double>(time_ns - t0_ns) / static_cast<double>(dur_ns);
    const double column = std::clamp(share, 0.0, 1.0) * static_cast<double>(columns);
    return std::min(columns - 1, static_cast<size_t>(column));
  }
  int64_t MiddleOf(size_t column) const {
    const double share = (static_cast<double>(column) + 0.5) / static_cast<double>(columns);
    return t0_ns + static_cast<int64_t>(share * static_cast<double>(dur_ns));
  }
};

std::vector<ThreadId> ThreadsOf(const CriticalPath& path) {
  std::vector<ThreadId> threads;
  std::map<ThreadId, bool> seen;
  for (const Segment& s : path.segments) {
    if (s.kind == SegmentKind::kUnattributed || !s.thread.valid()) continue;
    if (!std::exchange(seen[s.thread], true)) threads.push_back(s.thread);
  }
  return threads;
}

// What a thread did at a moment when it was not on the path.
std::string_view OffPath(const waitgraph::Timelines& timelines, ThreadId thread, int64_t time_ns) {
  const auto range = timelines.TilesIn(thread, time_ns, time_ns + 1);
  if (range.begin == range.end) return " ";
  switch (timelines.event(timelines.tiles(thread)[range.end - 1]).kind) {
    case EventKind::kWait:
      return "·";
    case EventKind::kReady:
      return ":";
    default:
      return "▁";
  }
}

std::string_view OnPath(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::kReady:
      return "▒";
    case SegmentKind::kHardware:
      return "▓";
    default:
      return "█";
  }
}

using Cells = std::vector<std::string>;

Cells LaneOf(const ShowText& text, const CriticalPath& path, ThreadId thread, const Scale& scale) {
  Cells cells(scale.columns);
  for (size_t c = 0; c < cells.size(); ++c) {
    cells[c] = OffPath(text.timelines(), thread, scale.MiddleOf(c));
  }
  for (const Segment& s : path.segments) {
    const bool leaf = s.kind != SegmentKind::kWait && s.kind != SegmentKind::kUnattributed;
    if (!leaf || s.thread != thread) continue;
    const size_t last = scale.ColumnOf(s.end_ns - 1);
    for (size_t c = scale.ColumnOf(s.begin_ns); c <= last; ++c) cells[c] = OnPath(s.kind);
  }
  return cells;
}

// The longest waits that somebody ended, in order of their ends.
std::vector<uint32_t> WakeUps(const CriticalPath& path, std::vector<ThreadId>& waker_of) {
  waker_of.assign(path.segments.size(), ThreadId());
  for (const Segment& s : path.segments) {
    const bool told = s.kind != SegmentKind::kUnattributed && s.parent != UINT32_MAX;
    if (told && s.end_ns == path.segments[s.parent].end_ns) waker_of[s.parent] = s.thread;
  }
  std::vector<uint32_t> waits;
  for (uint32_t i = 0; i < path.segments.size(); ++i) {
    if (path.segments[i].kind == SegmentKind::kWait && waker_of[i].valid()) waits.push_back(i);
  }
  std::stable_sort(waits.begin(), waits.end(), [&](uint32_t a, uint32_t b) {
    return path.segments[a].dur_ns() > path.segments[b].dur_ns();
  });
  if (waits.size() > kMostWakeUps) waits.resize(kMostWakeUps);
  std::stable_sort(waits.begin(), waits.end(), [&](uint32_t a, uint32_t b) {
    return path.segments[a].end_ns < path.segments[b].end_ns;
  });
  return waits;
}

std::string Fitted(std::string label, size_t columns) {
  if (report::CodePoints(label) > columns) {
    label.resize(report::CodePointOffset(label, columns - 1));
    label += "…";
  }
  return label + std::string(columns - report::CodePoints(label), ' ');
}

}  // namespace

std::string LanesText(const ShowText& text, const CriticalPath& path,
                      const trace::Instance& instance, size_t max_lanes, size_t width) {
  std::vector<ThreadId> threads = ThreadsOf(path);
  const size_t hidden = threads.size() > max_lanes ? threads.size() - max_lanes : 0;
  threads.resize(threads.size() - hidden);
  size_t label_columns = 0;
  for (const ThreadId thread : threads) {
    label_columns =
        std::max(label_columns, report::CodePoints(report::PlainText(text.Thread(thread))));
  }
  label_columns = std::min(label_columns, kMaxLabel);
  const size_t room = width > label_columns + 4 ? width - label_columns - 4 : 0;
  const Scale scale = {.t0_ns = instance.t0_ns,
                       .dur_ns = std::max<int64_t>(1, instance.dur_ns()),
                       .columns = std::max<size_t>(20, room)};
  std::vector<ThreadId> waker_of;
  const std::vector<uint32_t> wake_ups = WakeUps(path, waker_of);
  std::string out;
  for (const ThreadId thread : threads) {
    Cells cells = LaneOf(text, path, thread, scale);
    for (size_t n = 0; n < wake_ups.size(); ++n) {
      const Segment& wait = path.segments[wake_ups[n]];
      if (wait.thread == thread) cells[scale.ColumnOf(wait.end_ns - 1)] = std::to_string(n + 1);
    }
    out += Fitted(report::PlainText(text.Thread(thread)), label_columns) + "  │";
    out += std::accumulate(cells.begin(), cells.end(), std::string()) + "\n";
  }
  if (hidden > 0) out += "… " + FormatCount(hidden) + " more threads\n";
  out += "on the path █ runs ▒ ready ▓ device; off it ▁ runs : ready · waits; numbers: woken\n";
  for (size_t n = 0; n < wake_ups.size(); ++n) {
    const Segment& wait = path.segments[wake_ups[n]];
    out += "(" + std::to_string(n + 1) + ") +" + FormatDuration(wait.end_ns - instance.t0_ns) +
           "  " + text.Thread(waker_of[wake_ups[n]]) + " → " + text.Describe(wait) + ", " +
           FormatDuration(wait.dur_ns()) + "\n";
  }
  return out;
}

}  // namespace culprit::cli
