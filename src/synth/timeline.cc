// SPDX-License-Identifier: Apache-2.0
#include "synth/timeline.h"

#include <algorithm>

#include "base/check.h"

namespace culprit::synth {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;

namespace {

// Simulated threads are added to the dictionary in order, so indices agree.
ThreadId IdOf(ThreadIndex thread) {
  return thread == kNoThread ? ThreadId::none() : ThreadId(thread);
}

}  // namespace

Timeline::Timeline(const World& world, EventSink& sink, const TimelineOptions& options,
                   const std::vector<int64_t>& tick_phases_ns)
    : world_(world), sink_(sink), options_(options), spans_(tick_phases_ns.size()) {
  stack_ids_.resize(world.stacks().size());
  frame_ids_.resize(world.frames().size());
  for (size_t cpu = 0; cpu < spans_.size(); ++cpu) {
    spans_[cpu].next_tick_ns = options.begin_ns + tick_phases_ns[cpu];
  }
}

trace::StackId Timeline::StackOf(WorldStack stack) {
  if (stack == kNoStack) return {};
  trace::StackId& id = stack_ids_[stack];
  if (id.valid()) return id;
  const World::Stack& node = world_.stacks()[stack];
  const trace::StackId parent = StackOf(node.parent);
  trace::FrameId& frame = frame_ids_[node.frame];
  if (!frame.valid()) {
    trace::Dictionary& dictionary = sink_.dictionary();
    const World::Frame& source = world_.frames()[node.frame];
    trace::Frame row;
    if (!source.module.empty()) {
      row.module = dictionary.InternModule(
          {.name = dictionary.Intern(source.module), .path = {}, .build_id = {}});
    }
    row.function = dictionary.Intern(source.function);
    if (source.kernel_mode) row.flags = trace::kKernelMode;
    frame = dictionary.InternFrame(row);
  }
  id = sink_.dictionary().InternStack(parent, frame);
  return id;
}

void Timeline::Emit(const Event& event) {
  ++events_;
  sink_.Add(event);
}

void Timeline::Count(const Activity& activity, EventKind kind, int64_t dur_ns) {
  if (activity.plant == kOrdinary) return;
  const Behaviour& behaviour = BehaviourOf(static_cast<Plant>(activity.plant));
  if (behaviour.event_kind != kind) return;
  Tally& tally = truth_[activity.plant];
  ++tally.events;
  tally.cost_ns += dur_ns;
  if (kind != EventKind::kRunning) tally.planted_ns += dur_ns;
  CULPRIT_CHECK(activity.instance != kNoInstance || behaviour.scenario.empty());
  if (activity.instance == kNoInstance) return;
  const auto at =
      std::lower_bound(tally.instances.begin(), tally.instances.end(), activity.instance);
  if (at == tally.instances.end() || *at != activity.instance) {
    tally.instances.insert(at, activity.instance);
  }
}

void Timeline::SwitchIn(uint16_t cpu, ThreadIndex thread, int64_t now_ns) {
  Span& span = spans_[cpu];
  CULPRIT_CHECK(span.thread == kNoThread);
  span.thread = thread;
  span.begin_ns = now_ns;
  span.sampled = false;
  // A tick at the very moment of the switch belongs to nobody.
  if (span.next_tick_ns <= now_ns) {
    const int64_t missed = (now_ns - span.next_tick_ns) / options_.sample_period_ns + 1;
    span.next_tick_ns += missed * options_.sample_period_ns;
  }
}

void Timeline::Segment(uint16_t cpu, int64_t begin_ns, int64_t end_ns, const Activity& activity) {
  if (activity.plant != kOrdinary &&
      BehaviourOf(static_cast<Plant>(activity.plant)).event_kind == EventKind::kRunning) {
    truth_[activity.plant].planted_ns += end_ns - begin_ns;
  }
  Span& span = spans_[cpu];
  while (span.next_tick_ns < end_ns) {
    int64_t cut_ns = span.begin_ns;
    if (span.sampled) {
      cut_ns = span.tile_end_ns;
      EmitTile(cpu, span.tile_end_ns);
    }
    span.sampled = true;
    span.tile_begin_ns = cut_ns;
    span.tile_end_ns = span.next_tick_ns;
    span.tile = activity;
    span.next_tick_ns += options_.sample_period_ns;
  }
}

void Timeline::EmitTile(uint16_t cpu, int64_t end_ns) {
  const Span& span = spans_[cpu];
  Event event;
  event.kind = EventKind::kRunning;
  event.time_ns = span.tile_begin_ns;
  event.dur_ns = end_ns - span.tile_begin_ns;
  event.thread = IdOf(span.thread);
  event.stack = StackOf(span.tile.stack);
  event.cpu = cpu;
  Count(span.tile, EventKind::kRunning, event.dur_ns);
  Emit(event);
}

void Timeline::SwitchOut(uint16_t cpu, int64_t now_ns) {
  Span& span = spans_[cpu];
  if (span.sampled) {
    EmitTile(cpu, now_ns);
  } else if (now_ns > span.begin_ns) {
    Event event;
    event.kind = EventKind::kRunning;
    event.time_ns = span.begin_ns;
    event.dur_ns = now_ns - span.begin_ns;
    event.thread = IdOf(span.thread);
    event.cpu = cpu;
    event.flags = trace::kNotSampled;
    Emit(event);
  }
  span.thread = kNoThread;
}

void Timeline::AddWait(const Wait& wait) {
  Event event;
  event.kind = EventKind::kWait;
  event.time_ns = wait.begin_ns;
  event.dur_ns = wait.end_ns - wait.begin_ns;
  event.thread = IdOf(wait.thread);
  event.peer = IdOf(wait.waker);
  event.stack = StackOf(wait.activity.stack);
  event.cpu = wait.cpu;
  event.flags = wait.flags;
  Count(wait.activity, EventKind::kWait, event.dur_ns);
  Emit(event);
}

void Timeline::AddUnwait(int64_t now_ns, ThreadIndex waker, ThreadIndex woken, WorldStack stack,
                         uint16_t cpu) {
  Event event;
  event.kind = EventKind::kUnwait;
  event.time_ns = now_ns;
  event.thread = IdOf(waker);
  event.peer = IdOf(woken);
  event.stack = StackOf(stack);
  event.cpu = cpu;
  Emit(event);
}

void Timeline::AddReady(const Ready& ready) {
  Event event;
  event.kind = EventKind::kReady;
  event.time_ns = ready.begin_ns;
  event.dur_ns = ready.end_ns - ready.begin_ns;
  event.thread = IdOf(ready.thread);
  event.peer = IdOf(ready.holder);
  event.stack = StackOf(ready.stack);
  event.cpu = ready.cpu;
  if (ready.preempted) event.flags = trace::kPreempted;
  Emit(event);
}

void Timeline::AddHardware(ThreadIndex device, ThreadIndex requester, int64_t begin_ns,
                           int64_t end_ns, WorldStack stack, int64_t bytes, bool write,
                           bool unfinished) {
  Event event;
  event.kind = EventKind::kHardware;
  event.time_ns = begin_ns;
  event.dur_ns = end_ns - begin_ns;
  event.thread = IdOf(device);
  event.peer = IdOf(requester);
  event.stack = StackOf(stack);
  if (unfinished) event.flags = trace::kUnfinished;
  event.arg0 = bytes;
  event.arg1 = write ? 1 : 0;
  Emit(event);
}

void Timeline::AddSyscall(ThreadIndex thread, uint16_t cpu, int64_t begin_ns, int64_t end_ns,
                          const Activity& activity, int64_t number, int64_t result,
                          bool unfinished) {
  Event event;
  event.kind = EventKind::kSyscall;
  event.time_ns = begin_ns;
  event.dur_ns = end_ns - begin_ns;
  event.thread = IdOf(thread);
  if (options_.syscall_stacks) event.stack = StackOf(activity.stack);
  event.cpu = cpu;
  if (unfinished) event.flags = trace::kUnfinished;
  event.arg0 = number;
  event.arg1 = result;
  Count(activity, EventKind::kSyscall, event.dur_ns);
  Emit(event);
}

uint32_t Timeline::BeginInstance(ThreadIndex thread, uint16_t cpu, int64_t now_ns,
                                 std::string_view scenario) {
  const uint32_t index = static_cast<uint32_t>(instances_.size());
  trace::Instance instance;
  instance.scenario = sink_.dictionary().Intern(scenario);
  instance.thread = IdOf(thread);
  instance.t0_ns = now_ns;
  instance.t1_ns = trace::kNoTime;
  instances_.push_back(instance);
  Event event;
  event.kind = EventKind::kMarker;
  event.time_ns = now_ns;
  event.thread = instance.thread;
  event.cpu = cpu;
  event.flags = trace::kBegin;
  event.arg0 = instance.scenario.value;
  event.arg1 = index;
  Emit(event);
  return index;
}

void Timeline::EndInstance(uint32_t instance, uint16_t cpu, int64_t now_ns) {
  trace::Instance& row = instances_[instance];
  CULPRIT_CHECK(row.t1_ns == trace::kNoTime);
  row.t1_ns = now_ns;
  Event event;
  event.kind = EventKind::kMarker;
  event.time_ns = now_ns;
  event.thread = row.thread;
  event.cpu = cpu;
  event.flags = trace::kEnd;
  event.arg0 = row.scenario.value;
  event.arg1 = instance;
  Emit(event);
}

void Timeline::Finish() {
  for (trace::Instance& instance : instances_) {
    if (instance.t1_ns == trace::kNoTime) instance.t1_ns = options_.end_ns;
    sink_.AddInstance(instance);
  }
}

}  // namespace culprit::synth
