// SPDX-License-Identifier: Apache-2.0
#include "watch/look_tiles.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace culprit::watch {
namespace {

using trace::Event;
using trace::EventKind;
using trace::StackId;

constexpr std::string_view kLeftOut = "[waits left out]";

struct SeenAt {
  StackId stack;
  uint64_t seen = 0;
};

struct Tile {
  EventKind kind = EventKind::kWait;
  StackId stack;
  int64_t dur_ns = 0;
};

// The recording may know the module with its path and build-id.
trace::ModuleId ModuleNamed(const std::string& name, trace::Dictionary& dictionary) {
  for (uint32_t i = 0; i < dictionary.modules().size(); ++i) {
    if (dictionary.Text(dictionary.modules()[i].name) == name) return trace::ModuleId(i);
  }
  return dictionary.InternModule({.name = dictionary.Intern(name)});
}

StackId InternSeen(const guard::SeenStack& seen, trace::Dictionary& dictionary) {
  std::vector<trace::FrameId> frames;
  for (auto it = seen.frames.rbegin(); it != seen.frames.rend(); ++it) {
    trace::Frame frame;
    if (!it->module.empty()) frame.module = ModuleNamed(it->module, dictionary);
    if (!it->function.empty()) frame.function = dictionary.Intern(it->function);
    frame.offset = it->offset;
    frames.push_back(dictionary.InternFrame(frame));
  }
  return dictionary.InternStack(frames);
}

// One unit of one thread, and what is to stand in its holes.
class UnitFiller {
 public:
  UnitFiller(const guard::UnitReport& report, trace::Dictionary& dictionary)
      : report_(report),
        begin_ns_(static_cast<int64_t>(report.begin_ns)),
        end_ns_(begin_ns_ + static_cast<int64_t>(report.wall_ns)) {
    for (const guard::SeenStack& seen : report.stacks) {
      // At its end a thread is where its loop is, at a guard where it came next, when
      // what took so long was over.
      if (seen.by != guard::SeenStack::By::kLook || seen.frames.empty()) continue;
      (seen.running ? running_ : sleeping_).push_back({InternSeen(seen, dictionary), seen.seen});
    }
  }

  bool knows_anything() const { return !running_.empty() || !sleeping_.empty(); }
  bool Overlaps(const Event& event) const {
    return event.time_ns < end_ns_ && event.end_ns() > begin_ns_ && event.dur_ns > 0;
  }

  // A tile without a stack: its part inside of the unit becomes a hole, what sticks
  // out stays.
  void Cut(const Event& event, std::vector<Event>& kept) {
    const int64_t from_ns = std::max(event.time_ns, begin_ns_);
    const int64_t to_ns = std::min(event.end_ns(), end_ns_);
    Event part = event;
    part.dur_ns = from_ns - event.time_ns;
    if (part.dur_ns > 0) kept.push_back(part);
    part.time_ns = to_ns;
    part.dur_ns = event.end_ns() - to_ns;
    if (part.dur_ns > 0) kept.push_back(part);
    holes_.emplace_back(from_ns, to_ns - from_ns);
    thread_ = event.thread;
    if (event.kind == EventKind::kWait) left_out_ = event.stack;
  }

  // What was recorded counts against the unit's sums.
  void Account(Event& event) {
    const int64_t inside_ns =
        std::min(event.end_ns(), end_ns_) - std::max(event.time_ns, begin_ns_);
    if (event.kind == EventKind::kRunning) recorded_running_ns_ += inside_ns;
    if (event.kind == EventKind::kReady) recorded_ready_ns_ += inside_ns;
    const bool whole = event.time_ns >= begin_ns_ && event.end_ns() <= end_ns_;
    if (!whole || (event.flags & trace::kNotSampled) == 0 || running_.empty()) return;
    event.stack = Most(running_);
    event.flags = static_cast<uint8_t>((event.flags & ~trace::kNotSampled) | trace::kInferred);
    changed_ = true;
  }

  // Lays the tiles into the holes.
  bool Fill(std::vector<Event>& kept) {
    std::vector<Tile> tiles = Tiles();
    size_t at = 0;
    std::sort(holes_.begin(), holes_.end());
    for (auto [time_ns, left_ns] : holes_) {
      while (left_ns > 0 && at < tiles.size()) {
        Tile& tile = tiles[at];
        const int64_t dur_ns = std::min(left_ns, tile.dur_ns);
        if (dur_ns > 0) kept.push_back(EventOf(tile, time_ns, dur_ns));
        time_ns += dur_ns;
        left_ns -= dur_ns;
        tile.dur_ns -= dur_ns;
        if (tile.dur_ns == 0) ++at;
      }
    }
    return changed_ || !holes_.empty();
  }

 private:
  static StackId Most(const std::vector<SeenAt>& seen) {
    return std::max_element(seen.begin(), seen.end(),
                            [](const SeenAt& a, const SeenAt& b) { return a.seen < b.seen; })
        ->stack;
  }
  static uint64_t Sum(const std::vector<SeenAt>& seen) {
    uint64_t sum = 0;
    for (const SeenAt& at : seen) sum += at.seen;
    return sum;
  }

  // Shares a time by how often each stack was seen; without any it stays one tile.
  static void Share(EventKind kind, int64_t dur_ns, const std::vector<SeenAt>& seen, StackId none,
                    std::vector<Tile>& tiles) {
    if (seen.empty()) tiles.push_back({kind, none, dur_ns});
    uint64_t weight = Sum(seen);
    for (const SeenAt& at : seen) {
      const auto part_ns = static_cast<int64_t>(
          static_cast<double>(dur_ns) * static_cast<double>(at.seen) / static_cast<double>(weight));
      const int64_t own_ns = at.seen == weight ? dur_ns : std::min(part_ns, dur_ns);
      tiles.push_back({kind, at.stack, own_ns});
      dur_ns -= own_ns;
      weight -= at.seen;
    }
  }

  std::vector<Tile> Tiles() const {
    int64_t holes_ns = 0;
    for (const auto& [time_ns, dur_ns] : holes_) holes_ns += dur_ns;
    int64_t cpu_ns = 0;
    if (report_.has_cpu) {
      cpu_ns = static_cast<int64_t>(report_.cpu_ns) - recorded_running_ns_;
    } else {
      const uint64_t looks = Sum(running_) + Sum(sleeping_);
      cpu_ns =
          static_cast<int64_t>(static_cast<double>(holes_ns) * static_cast<double>(Sum(running_)) /
                               static_cast<double>(std::max<uint64_t>(looks, 1)));
    }
    cpu_ns = std::clamp<int64_t>(cpu_ns, 0, holes_ns);
    const int64_t ready_ns = std::clamp<int64_t>(
        static_cast<int64_t>(report_.ready_ns) - recorded_ready_ns_, 0, holes_ns - cpu_ns);
    std::vector<Tile> tiles;
    Share(EventKind::kRunning, cpu_ns, running_, StackId::none(), tiles);
    tiles.push_back({EventKind::kReady, StackId::none(), ready_ns});
    Share(EventKind::kWait, holes_ns - cpu_ns - ready_ns, sleeping_, left_out_, tiles);
    return tiles;
  }

  Event EventOf(const Tile& tile, int64_t time_ns, int64_t dur_ns) const {
    Event event;
    event.time_ns = time_ns;
    event.dur_ns = dur_ns;
    event.thread = thread_;
    event.stack = tile.stack;
    event.kind = tile.kind;
    event.flags = trace::kInferred;
    if (tile.kind == EventKind::kWait) event.flags |= trace::kWakerUnknown;
    // Still a sum, of who knows how many.
    if (tile.kind == EventKind::kWait && tile.stack == left_out_) event.arg0 = 1;
    if (tile.kind == EventKind::kReady) event.flags |= trace::kPreempted;
    if (tile.kind == EventKind::kRunning && !tile.stack.valid()) event.flags |= trace::kNotSampled;
    return event;
  }

  const guard::UnitReport& report_;
  const int64_t begin_ns_;
  const int64_t end_ns_;
  std::vector<SeenAt> running_;
  std::vector<SeenAt> sleeping_;
  std::vector<std::pair<int64_t, int64_t>> holes_;  // time, duration
  trace::ThreadId thread_;
  StackId left_out_;
  int64_t recorded_running_ns_ = 0;
  int64_t recorded_ready_ns_ = 0;
  bool changed_ = false;
};

// By stack: is it the one of waits that were left out?
std::vector<bool> LeftOutStacks(const trace::Dictionary& dictionary) {
  std::vector<bool> left_out(dictionary.stacks().size());
  for (size_t i = 0; i < left_out.size(); ++i) {
    const trace::Frame& leaf = dictionary.frames()[dictionary.stacks()[i].frame.value];
    left_out[i] = leaf.function.valid() && dictionary.Text(leaf.function) == kLeftOut;
  }
  return left_out;
}

trace::ThreadId ThreadOf(const guard::UnitReport& report, const trace::Dictionary& dictionary) {
  const auto begin_ns = static_cast<int64_t>(report.begin_ns);
  const std::vector<trace::Thread>& threads = dictionary.threads();
  for (uint32_t i = 0; i < threads.size(); ++i) {
    const trace::Thread& thread = threads[i];
    const bool begun = thread.start_ns == trace::kNoTime || thread.start_ns <= begin_ns;
    const bool ended = thread.end_ns != trace::kNoTime && thread.end_ns <= begin_ns;
    if (thread.tid == report.tid && thread.kind == trace::ThreadKind::kUser && begun && !ended) {
      return trace::ThreadId(i);
    }
  }
  return trace::ThreadId::none();
}

}  // namespace

uint64_t FillFromLooks(std::span<const guard::UnitReport> reports, trace::Trace& trace) {
  if (!trace.metadata.has_switches) return 0;
  const std::vector<bool> left_out = LeftOutStacks(trace.dictionary);
  const auto is_sum = [&](const Event& event) {
    if ((event.flags & trace::kInferred) == 0) return false;
    return !event.stack.valid() || trace::IsSumOfWaits(event) ||
           (event.stack.value < left_out.size() && left_out[event.stack.value]);
  };
  uint64_t filled = 0;
  for (const guard::UnitReport& report : reports) {
    const trace::ThreadId thread = ThreadOf(report, trace.dictionary);
    UnitFiller unit(report, trace.dictionary);
    if (!thread.valid() || !unit.knows_anything()) continue;
    std::vector<Event> kept;
    kept.reserve(trace.events.size() + 16);
    for (Event& event : trace.events) {
      const bool concerned =
          event.thread == thread && trace::IsTile(event.kind) && unit.Overlaps(event);
      if (concerned && is_sum(event)) {
        unit.Cut(event, kept);
        continue;
      }
      if (concerned) unit.Account(event);
      kept.push_back(event);
    }
    filled += unit.Fill(kept) ? 1 : 0;
    trace.events = std::move(kept);
  }
  trace::SortByTime(trace.events);
  return filled;
}

}  // namespace culprit::watch
