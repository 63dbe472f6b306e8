// SPDX-License-Identifier: Apache-2.0
//
// Timeline: turns what the Machine does into events of a trace, and keeps the
// truth about planted behaviours. The Machine reports switches, blocked spans
// and CPU segments; the Timeline cuts on-CPU spans at each core's sampling
// ticks (trace/event.h says how tiles must look) and maps the world's stacks to
// the trace's own ids when they are first used.
//
// The truth comes from the plant marks of ops, never from reading events back:
// an error in emission therefore shows as a difference between the two.
//
// Events come out in order of their end, so a writer's blocks stay tight.
// Owned by one Machine; O(1) an event after a stack's first use.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "synth/behaviour.h"
#include "synth/op.h"
#include "synth/world.h"
#include "trace/trace.h"

namespace culprit::synth {

// Where a simulated trace goes: a file, or memory in tests.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual trace::Dictionary& dictionary() = 0;
  virtual void Add(const trace::Event& event) = 0;
  virtual void AddInstance(const trace::Instance& instance) = 0;
};

struct Tally {
  uint64_t events = 0;
  int64_t cost_ns = 0;              // of the events' durations
  int64_t planted_ns = 0;           // waits, calls: the same; running: CPU time spent there
  std::vector<uint32_t> instances;  // indices, ascending
};
using TraceTruth = std::array<Tally, kPlantCount>;

inline constexpr uint32_t kNoInstance = UINT32_MAX;

struct TimelineOptions {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t sample_period_ns = 1'000'000;
  bool syscall_stacks = true;
};

class Timeline {
 public:
  // What a thread is executing or blocked in.
  struct Activity {
    WorldStack stack = kNoStack;
    uint8_t plant = kOrdinary;
    uint32_t instance = kNoInstance;
  };
  struct Wait {
    ThreadIndex thread = kNoThread;
    ThreadIndex waker = kNoThread;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    uint16_t cpu = trace::Event::kNoCpu;
    uint8_t flags = 0;
    Activity activity;
  };
  struct Ready {
    ThreadIndex thread = kNoThread;
    ThreadIndex holder = kNoThread;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    uint16_t cpu = trace::Event::kNoCpu;
    bool preempted = false;
    WorldStack stack = kNoStack;
  };

  Timeline(const World& world, EventSink& sink, const TimelineOptions& options,
           const std::vector<int64_t>& tick_phases_ns);

  void SwitchIn(uint16_t cpu, ThreadIndex thread, int64_t now_ns);
  // The running thread of `cpu` executed `activity` during [begin, end).
  void Segment(uint16_t cpu, int64_t begin_ns, int64_t end_ns, const Activity& activity);
  void SwitchOut(uint16_t cpu, int64_t now_ns);
  int64_t SpanBegin(uint16_t cpu) const { return spans_[cpu].begin_ns; }

  void AddWait(const Wait& wait);
  void AddUnwait(int64_t now_ns, ThreadIndex waker, ThreadIndex woken, WorldStack stack,
                 uint16_t cpu);
  void AddReady(const Ready& ready);
  void AddHardware(ThreadIndex device, ThreadIndex requester, int64_t begin_ns, int64_t end_ns,
                   WorldStack stack, int64_t bytes, bool write, bool unfinished);
  void AddSyscall(ThreadIndex thread, uint16_t cpu, int64_t begin_ns, int64_t end_ns,
                  const Activity& activity, int64_t number, int64_t result, bool unfinished);
  // Returns the instance's index.
  uint32_t BeginInstance(ThreadIndex thread, uint16_t cpu, int64_t now_ns,
                         std::string_view scenario);
  void EndInstance(uint32_t instance, uint16_t cpu, int64_t now_ns);
  // Hands the instances to the sink; those still open end with the trace.
  void Finish();

  const TraceTruth& truth() const { return truth_; }
  const std::vector<trace::Instance>& instances() const { return instances_; }
  uint64_t events() const { return events_; }

 private:
  // One stay of a thread on a core. `tile` is the last sampled part, held back
  // because it grows to the end of the span when no further tick hits.
  struct Span {
    ThreadIndex thread = kNoThread;
    int64_t begin_ns = 0;
    int64_t next_tick_ns = 0;
    bool sampled = false;
    int64_t tile_begin_ns = 0;
    int64_t tile_end_ns = 0;
    Activity tile;
  };
  trace::StackId StackOf(WorldStack stack);
  void Emit(const trace::Event& event);
  void EmitTile(uint16_t cpu, int64_t end_ns);
  void Count(const Activity& activity, trace::EventKind kind, int64_t dur_ns);

  const World& world_;
  EventSink& sink_;
  TimelineOptions options_;
  std::vector<Span> spans_;
  std::vector<trace::StackId> stack_ids_;
  std::vector<trace::FrameId> frame_ids_;
  std::vector<trace::Instance> instances_;
  TraceTruth truth_ = {};
  uint64_t events_ = 0;
};

}  // namespace culprit::synth
