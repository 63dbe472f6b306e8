// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/area.h"

#include <algorithm>
#include <array>
#include <optional>

#include "waitgraph/glob.h"
#include "waitgraph/wait_graph.h"

namespace culprit::waitgraph {
namespace {

using trace::Event;
using trace::EventKind;
using trace::StackId;

constexpr uint32_t kNoParent = UINT32_MAX;

SegmentKind KindOf(EventKind kind) {
  switch (kind) {
    case EventKind::kWait:
      return SegmentKind::kWait;
    case EventKind::kReady:
      return SegmentKind::kReady;
    case EventKind::kHardware:
      return SegmentKind::kHardware;
    default:
      return SegmentKind::kRunning;
  }
}

// What one instance after the other adds to an Area.
class Collection {
 public:
  Collection(const Timelines& timelines, const AreaOptions& options, Area& area)
      : timelines_(timelines),
        dictionary_(timelines.trace().dictionary),
        filter_(dictionary_, options.with, options.without),
        any_class_(options.classes.empty()),
        max_events_(options.max_events),
        finder_(timelines, options.path),
        area_(area) {
    for (const WaitClass c : options.classes) wanted_[static_cast<size_t>(c)] = true;
  }

  void Add(uint32_t instance, Scope scope) {
    instance_ = instance;
    account_ = {};
    account_.total_ns = std::max<int64_t>(0, area_.instances[instance].dur_ns());
    switch (scope) {
      case Scope::kCriticalPath:
        AddPath();
        break;
      case Scope::kGraph:
        AddGraph();
        break;
      case Scope::kThread:
        AddThread();
        break;
    }
    area_.accounts.push_back(account_);
  }

 private:
  int64_t& Sum(SegmentKind kind) {
    switch (kind) {
      case SegmentKind::kRunning:
        return account_.running_ns;
      case SegmentKind::kReady:
        return account_.ready_ns;
      case SegmentKind::kHardware:
        return account_.hardware_ns;
      case SegmentKind::kWait:
        return account_.wait_ns;
      case SegmentKind::kUnattributed:
        break;
    }
    return account_.unattributed_ns;
  }

  WaitClass ClassOf(EventIndex wait) {
    const EventIndex unwait = timelines_.UnwaitOf(wait);
    const StackId waker = unwait == kNoEvent ? StackId() : timelines_.event(unwait).stack;
    return ClassifyWait(dictionary_, finder_.classes(), timelines_.event(wait), waker);
  }

  // Its index in Area::events if the content lets it through, else kNoParent.
  uint32_t Keep(AreaEvent event) {
    event.instance = instance_;
    event.stack = timelines_.event(event.event).stack;
    const bool wait = event.kind == SegmentKind::kWait;
    ++account_.events;
    if (!wait && !any_class_) return kNoParent;
    if (!filter_.Passes(event.stack)) return kNoParent;
    if (wait) event.wait_class = ClassOf(event.event);
    if (!any_class_ && !wanted_[static_cast<size_t>(event.wait_class)]) return kNoParent;
    if (area_.events.size() >= max_events_) {
      ++account_.dropped_events;
      return kNoParent;
    }
    ++account_.kept_events;
    area_.events.push_back(event);
    return static_cast<uint32_t>(area_.events.size() - 1);
  }

  void AddPath() {
    finder_.Find(area_.instances[instance_], path_);
    // Of each segment: the area event that it is, or else that its parent's is.
    kept_.assign(path_.segments.size(), kNoParent);
    for (size_t i = 0; i < path_.segments.size(); ++i) {
      const Segment& s = path_.segments[i];
      const uint32_t above = s.parent == UINT32_MAX ? kNoParent : kept_[s.parent];
      kept_[i] = above;
      if (s.kind != SegmentKind::kWait) Sum(s.kind) += s.dur_ns();
      if (s.kind == SegmentKind::kUnattributed) continue;
      const uint32_t index = Keep({.event = s.event,
                                   .begin_ns = s.begin_ns,
                                   .cost_ns = s.dur_ns(),
                                   .parent = above,
                                   .kind = s.kind,
                                   .note = s.note});
      if (index == kNoParent) continue;
      kept_[i] = index;
      if (above == kNoParent) account_.kept_ns += s.dur_ns();
    }
  }

  void AddThread() {
    const trace::Instance& instance = area_.instances[instance_];
    const std::span<const EventIndex> tiles = timelines_.tiles(instance.thread);
    const auto range = timelines_.TilesIn(instance.thread, instance.t0_ns, instance.t1_ns);
    int64_t covered_ns = 0;
    for (size_t i = range.begin; i < range.end; ++i) {
      const Event& tile = timelines_.event(tiles[i]);
      const SegmentKind kind = KindOf(tile.kind);
      const int64_t begin_ns = std::max(instance.t0_ns, tile.time_ns);
      const int64_t dur_ns =
          std::min(instance.t1_ns, timelines_.TileEnd(instance.thread, i)) - begin_ns;
      covered_ns += dur_ns;
      Sum(kind) += dur_ns;
      const uint32_t index =
          Keep({.event = tiles[i], .begin_ns = begin_ns, .cost_ns = dur_ns, .kind = kind});
      if (index != kNoParent) account_.kept_ns += dur_ns;
    }
    account_.unattributed_ns = account_.total_ns - covered_ns;
  }

  void AddGraph() {
    if (!builder_) builder_.emplace(timelines_);
    builder_->Build(area_.instances[instance_], graph_);
    int64_t roots_ns = 0;
    for (uint32_t i = graph_.roots_begin; i < graph_.roots_end; ++i) {
      roots_ns += graph_.nodes[i].dur_ns();
    }
    account_.unattributed_ns = std::max<int64_t>(0, account_.total_ns - roots_ns);
    kept_.assign(graph_.nodes.size(), kNoParent);
    for (const uint32_t i : graph_.breadth_first) {
      const GraphNode& node = graph_.nodes[i];
      const uint32_t above = node.found_by == UINT32_MAX ? kNoParent : kept_[node.found_by];
      const SegmentKind kind = KindOf(timelines_.event(node.event).kind);
      Sum(kind) += node.dur_ns();
      const uint32_t index = Keep({.event = node.event,
                                   .begin_ns = node.begin_ns,
                                   .cost_ns = node.dur_ns(),
                                   .parent = above,
                                   .kind = kind});
      kept_[i] = index == kNoParent ? above : index;
      if (index != kNoParent) account_.kept_ns += node.dur_ns();
    }
  }

  const Timelines& timelines_;
  const trace::Dictionary& dictionary_;
  StackFilter filter_;
  bool any_class_;
  std::array<bool, kWaitClasses> wanted_ = {};
  uint64_t max_events_;
  PathFinder finder_;
  std::optional<WaitGraphBuilder> builder_;  // of the scope kGraph
  Area& area_;
  AreaAccount account_;
  uint32_t instance_ = 0;
  CriticalPath path_;
  WaitGraph graph_;
  std::vector<uint32_t> kept_;
};

}  // namespace

void AreaAccount::Add(const AreaAccount& other) {
  total_ns += other.total_ns;
  running_ns += other.running_ns;
  ready_ns += other.ready_ns;
  hardware_ns += other.hardware_ns;
  unattributed_ns += other.unattributed_ns;
  wait_ns += other.wait_ns;
  kept_ns += other.kept_ns;
  events += other.events;
  kept_events += other.kept_events;
  dropped_events += other.dropped_events;
}

Area AreaOfInterest(const Timelines& timelines, const std::vector<trace::Instance>& instances,
                    const AreaOptions& options) {
  Area area;
  area.instances = instances;
  area.accounts.reserve(instances.size());
  Collection collection(timelines, options, area);
  for (uint32_t i = 0; i < instances.size(); ++i) collection.Add(i, options.scope);
  return area;
}

}  // namespace culprit::waitgraph
