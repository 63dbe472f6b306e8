// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto_critical_path.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <tuple>

#include "export/event_walk.h"
#include "waitgraph/critical_path.h"
#include "waitgraph/instance_source.h"
#include "waitgraph/wait_class.h"

namespace culprit::export_ {
namespace {

using waitgraph::CriticalPath;
using waitgraph::kNoEvent;
using waitgraph::Segment;
using waitgraph::SegmentKind;

constexpr int64_t kMaxPathTime = int64_t{1} << 60;
constexpr size_t kMaxLanes = 64;        // of one scenario
constexpr size_t kMaxStackFrames = 12;  // in an annotation
constexpr std::string_view kTooLong =
    "event of a trace too long for critical paths, which were left out";
constexpr std::string_view kImpossibleTime =
    "event at an impossible time: critical paths were left out";
constexpr std::string_view kLeftOut =
    "instance without its critical path: those that took longest have theirs";

bool IsPossible(const trace::Event& event) {
  return event.time_ns > -kMaxPathTime && event.time_ns < kMaxPathTime && event.dur_ns >= 0 &&
         event.dur_ns < kMaxPathTime;
}

void Annotate(std::string_view name, std::string_view text, ProtoWriter& slice) {
  if (text.empty()) return;
  ProtoWriter annotation;
  slice.Message(4, annotation.Bytes(10, name).Bytes(6, Utf8Text(text)));
}

struct Lane {
  SliceTracks tracks;
  uint64_t end_ns = 0;
};

class PathTracks {
 public:
  PathTracks(const trace::Trace& trace, int64_t first_ns, PacketSequence& packets,
             uint64_t& next_uuid)
      : d_(trace.dictionary),
        timelines_(trace),
        source_(waitgraph::InstancesOf(timelines_)),
        facts_(waitgraph::ClassifyWaits(timelines_, waitgraph::ClassifyStacks(d_))),
        first_ns_(first_ns),
        packets_(packets),
        next_uuid_(next_uuid) {}

  Status Write(Diagnostics& diagnostics) {
    FindLongest();
    if (chosen_.empty()) return {};
    const size_t left_out = source_.instances.size() - chosen_.size();
    if (left_out > 0) diagnostics.Count(kLeftOut, left_out);
    root_ = next_uuid_++;
    ProtoWriter descriptor;
    descriptor.Uint(1, root_).Bytes(2, std::string(kPathTrack) + "s");
    CULPRIT_TRY(packets_.Put({}, kTrackDescriptor, descriptor));
    // By scenario, then by time, as tracks want their slices.
    std::stable_sort(chosen_.begin(), chosen_.end(), [](const Chosen& a, const Chosen& b) {
      return std::tuple(a.instance.scenario.value, a.instance.t0_ns) <
             std::tuple(b.instance.scenario.value, b.instance.t0_ns);
    });
    for (size_t begin = 0; begin < chosen_.size();) {
      size_t end = begin;
      while (end < chosen_.size() &&
             chosen_[end].instance.scenario == chosen_[begin].instance.scenario) {
        ++end;
      }
      CULPRIT_TRY(WriteScenario(begin, end, diagnostics));
      begin = end;
    }
    return {};
  }

 private:
  struct Chosen {
    trace::Instance instance;
    CriticalPath path;
  };

  void FindLongest() {
    std::vector<size_t> order(source_.instances.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto length = [&](size_t i) {
        return source_.instances[i].t1_ns - source_.instances[i].t0_ns;
      };
      return length(a) > length(b);
    });
    waitgraph::PathFinder finder(timelines_);
    size_t slices = 0;
    for (const size_t i : order) {
      Chosen chosen{.instance = source_.instances[i], .path = {}};
      finder.Find(chosen.instance, chosen.path);
      slices += chosen.path.segments.size() + 1;
      if (slices > kMaxPathSlices) return;
      chosen_.push_back(std::move(chosen));
    }
  }

  uint64_t Time(int64_t time_ns) const {
    return static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(first_ns_);
  }

  Status WriteScenario(size_t begin, size_t end, Diagnostics& diagnostics) {
    const std::string scenario =
        Utf8Text(source_.scenarios[chosen_[begin].instance.scenario.value]);
    std::deque<Lane> lanes;
    for (size_t i = begin; i < end; ++i) {
      const trace::Instance& instance = chosen_[i].instance;
      const uint64_t t0 = Time(instance.t0_ns);
      auto lane = std::find_if(lanes.begin(), lanes.end(),
                               [&](const Lane& other) { return other.end_ns <= t0; });
      if (lane == lanes.end()) {
        if (lanes.size() >= kMaxLanes) {
          diagnostics.Count("slice that overlaps too many others, left out");
          continue;
        }
        lanes.push_back({.tracks = SliceTracks(packets_, next_uuid_,
                                               std::string(kPathTrack) + ": " + scenario, root_)});
        lane = lanes.end() - 1;
      }
      lane->end_ns = Time(instance.t1_ns);
      CULPRIT_TRY(WritePath(scenario, chosen_[i], lane->tracks));
    }
    for (Lane& lane : lanes) CULPRIT_TRY(lane.tracks.Finish());
    return {};
  }

  Status WritePath(const std::string& scenario, const Chosen& chosen, SliceTracks& tracks) {
    ProtoWriter whole;
    whole.Bytes(22, kPathTrack).Bytes(23, scenario);
    Annotate("thread", d_.ThreadLabel(chosen.instance.thread), whole);
    CULPRIT_TRY(tracks.Add(Time(chosen.instance.t0_ns), Time(chosen.instance.t1_ns), whole));
    for (const Segment& segment : chosen.path.segments) {
      ProtoWriter slice;
      slice.Bytes(22, kPathTrack).Bytes(23, Utf8Text(NameOf(segment)));
      Annotate("kind", Name(segment.kind), slice);
      if (segment.thread.valid()) Annotate("thread", d_.ThreadLabel(segment.thread), slice);
      Annotate("note", Name(segment.note), slice);
      if (segment.event != kNoEvent) AnnotateEvent(segment, slice);
      CULPRIT_TRY(tracks.Add(Time(segment.begin_ns), Time(segment.end_ns), slice));
    }
    return {};
  }

  void AnnotateEvent(const Segment& segment, ProtoWriter& slice) const {
    const trace::Event& event = timelines_.event(segment.event);
    if (segment.kind == SegmentKind::kReady && event.peer.valid()) {
      Annotate("CPU held by", d_.ThreadLabel(event.peer), slice);
    }
    if (segment.kind == SegmentKind::kWait && event.peer.valid()) {
      Annotate("woken by", d_.ThreadLabel(event.peer), slice);
    }
    if (!event.stack.valid() || segment.kind == SegmentKind::kUnattributed) return;
    const std::vector<trace::FrameId> frames = d_.StackFrames(event.stack);
    std::string text;
    for (size_t i = 0; i < frames.size() && i < kMaxStackFrames; ++i) {
      text += (i > 0 ? " < " : "") + d_.FrameName(frames[frames.size() - 1 - i]);
    }
    if (frames.size() > kMaxStackFrames) text += " < ...";
    Annotate("stack", text, slice);
  }

  // The leaf-most frame, or that outside the kernel: all waits end in the
  // scheduler.
  std::string FrameOf(const trace::Event& event, bool user) const {
    if (!event.stack.valid()) return {};
    const std::vector<trace::FrameId> frames = d_.StackFrames(event.stack);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      const bool kernel = (d_.frames()[frame->value].flags & trace::kKernelMode) != 0;
      if (!user || !kernel) return d_.FrameName(*frame);
    }
    return frames.empty() ? std::string() : d_.FrameName(frames.back());
  }

  std::string NameOf(const Segment& segment) const {
    const trace::Event* event =
        segment.event == kNoEvent ? nullptr : &timelines_.event(segment.event);
    switch (segment.kind) {
      case SegmentKind::kRunning: {
        const std::string frame = event == nullptr ? std::string() : FrameOf(*event, false);
        return frame.empty() ? "[not sampled]" : frame;
      }
      case SegmentKind::kWait: {
        if (event == nullptr) return "wait";
        const auto wait_class = source_.idle_wait[segment.event]
                                    ? waitgraph::WaitClass::kRequest
                                    : facts_.by_event[segment.event].wait_class;
        return "wait (" + std::string(Name(wait_class)) + ") " + FrameOf(*event, true);
      }
      case SegmentKind::kHardware:
        return segment.thread.valid() ? d_.ThreadLabel(segment.thread) : "hardware";
      case SegmentKind::kReady:
        return "ready";
      case SegmentKind::kUnattributed:
        break;
    }
    return "[unattributed]";
  }

  const trace::Dictionary& d_;
  waitgraph::Timelines timelines_;
  waitgraph::InstanceSource source_;
  waitgraph::WaitFacts facts_;
  int64_t first_ns_;
  PacketSequence& packets_;
  uint64_t& next_uuid_;
  uint64_t root_ = 0;
  std::vector<Chosen> chosen_;
};

}  // namespace

Status WriteCriticalPaths(const trace::TraceReader& reader, int64_t first_ns,
                          PacketSequence& packets, uint64_t& next_uuid, Diagnostics& diagnostics) {
  if (!reader.metadata().has_switches) return {};
  uint64_t events = 0;
  for (const trace::BlockInfo& block : reader.blocks()) events += block.events;
  if (events > kMaxPathEvents) {
    diagnostics.Count(kTooLong, events);
    return {};
  }
  trace::Trace trace;
  trace.metadata = reader.metadata();
  trace::CopyDictionary(reader.dictionary(), trace.dictionary);
  trace.instances = reader.instances();
  uint64_t impossible = 0;
  // Blocks that cannot be read were counted when the rest was written.
  CULPRIT_TRY(WalkEvents(reader, nullptr, [&](const std::vector<trace::Event>& block) -> Status {
    for (const trace::Event& event : block) impossible += IsPossible(event) ? 0 : 1;
    trace.events.insert(trace.events.end(), block.begin(), block.end());
    return {};
  }));
  for (const trace::Instance& instance : trace.instances) {
    impossible +=
        IsPossible({.time_ns = instance.t0_ns}) && IsPossible({.time_ns = instance.t1_ns}) ? 0 : 1;
  }
  if (impossible > 0) {
    diagnostics.Count(kImpossibleTime, impossible);
    return {};
  }
  trace::SortByTime(trace.events);
  return PathTracks(trace, first_ns, packets, next_uuid).Write(diagnostics);
}

}  // namespace culprit::export_
