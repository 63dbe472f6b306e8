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

Cells LaneOf(const waitgraph::SegmentText& text, const CriticalPath& path, ThreadId thread,
             const Scale& scale) {
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

// What a waker was doing when it ended a wait; empty where the trace does not say.
std::string WakingPlace(const waitgraph::SegmentText& text, const Segment& wait, ThreadId waker) {
  const waitgraph::EventIndex unwait = text.timelines().UnwaitOf(wait.event);
  if (unwait == waitgraph::kNoEvent) return {};
  const trace::Event& event = text.timelines().event(unwait);
  if (event.thread != waker) return {};
  const std::string frames = text.Frames(event.stack);
  const std::string leaf = frames.substr(0, frames.find(" < "));
  return leaf.empty() ? leaf : " in " + leaf;
}

std::string Joined(const Cells& cells) {
  std::string line = std::accumulate(cells.begin(), cells.end(), std::string());
  return line.erase(line.find_last_not_of(' ') + 1);
}

// The propagation of delays, drawn in the gaps between lanes: gap i lies below
// lane i. An arrow ends at the thread that was woken.
class Arrows {
 public:
  Arrows(size_t lanes, size_t columns) : gaps_(lanes, Cells(columns, " ")), used_(lanes) {}

  void Draw(size_t waker, size_t woken, size_t column) {
    for (size_t gap = std::min(waker, woken); gap < std::max(waker, woken); ++gap) {
      const bool is_tip = woken < waker ? gap == woken : gap + 1 == woken;
      std::string& cell = gaps_[gap][column];
      if (is_tip) cell = woken < waker ? "↑" : "↓";
      if (!is_tip && cell == " ") cell = "│";
      used_[gap] = true;
    }
  }
  bool used(size_t gap) const { return used_[gap]; }
  const Cells& gap(size_t gap) const { return gaps_[gap]; }

 private:
  std::vector<Cells> gaps_;
  std::vector<bool> used_;
};

std::string Legend(const waitgraph::SegmentText& text, const CriticalPath& path,
                   const trace::Instance& instance, const std::vector<uint32_t>& wake_ups,
                   const std::vector<ThreadId>& waker_of) {
  std::string out =
      "on the path █ runs ▒ ready ▓ device; off it ▁ runs : ready · waits; numbers: woken\n";
  for (size_t n = 0; n < wake_ups.size(); ++n) {
    const Segment& wait = path.segments[wake_ups[n]];
    const ThreadId waker = waker_of[wake_ups[n]];
    out += "(" + std::to_string(n + 1) + ") +" + FormatDuration(wait.end_ns - instance.t0_ns) +
           "  " +
           report::PlainText(text.Thread(waker) + WakingPlace(text, wait, waker) + " → " +
                             text.Describe(wait)) +
           ", " + FormatDuration(wait.dur_ns()) + "\n";
  }
  return out;
}

std::string Fitted(std::string label, size_t columns) {
  if (report::CodePoints(label) > columns) {
    label.resize(report::CodePointOffset(label, columns - 1));
    label += "…";
  }
  return label + std::string(columns - report::CodePoints(label), ' ');
}

}  // namespace

std::string LanesText(const waitgraph::SegmentText& text, const CriticalPath& path,
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
  std::map<ThreadId, size_t> lane_of;
  for (const ThreadId thread : threads) lane_of.emplace(thread, lane_of.size());
  std::vector<Cells> lanes;
  for (const ThreadId thread : threads) lanes.push_back(LaneOf(text, path, thread, scale));
  Arrows arrows(lanes.size(), scale.columns);
  for (size_t n = 0; n < wake_ups.size(); ++n) {
    const Segment& wait = path.segments[wake_ups[n]];
    const auto woken = lane_of.find(wait.thread);
    const auto waker = lane_of.find(waker_of[wake_ups[n]]);
    if (woken == lane_of.end()) continue;
    const size_t column = scale.ColumnOf(wait.end_ns - 1);
    lanes[woken->second][column] = std::to_string(n + 1);
    if (waker != lane_of.end()) arrows.Draw(waker->second, woken->second, column);
  }
  std::string out;
  for (size_t i = 0; i < lanes.size(); ++i) {
    out += Fitted(report::PlainText(text.Thread(threads[i])), label_columns) + "  │";
    out += Joined(lanes[i]) + "\n";
    if (!arrows.used(i)) continue;
    out += std::string(label_columns + 2, ' ') + "│" + Joined(arrows.gap(i)) + "\n";
  }
  if (hidden > 0) out += "… " + FormatCount(hidden) + " more threads\n";
  return out + Legend(text, path, instance, wake_ups, waker_of);
}

}  // namespace culprit::cli
