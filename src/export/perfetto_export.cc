// SPDX-License-Identifier: Apache-2.0
//
// A Perfetto trace (protobuf), as ui.perfetto.dev and trace_processor read it:
//
//   running, wait, ready  sched_switch events by CPU (perfetto_schedule.h)
//   unwait                sched_waking; of a device: from interrupt context
//   stacks                perf_sample packets, a packet sequence each: running
//                         code (timebase cpu-clock), where threads were
//                         switched out (sched_switch), where they woke others
//                         (sched_waking)
//   syscall               sys_enter and sys_exit
//   instances             slices on tracks "instances" under the thread's
//   call                  slices on the thread's own track
//   hardware              slices on the track of the device
//   marker                instants, except those that begin or end instances
//   critical paths        slices on tracks of their own (perfetto_critical_path.h)
//
// Written thread by thread (thread_walk.h); readers sort by time. Memory is
// that plus 32 bytes for each on-CPU span and some 30 for each begin or end of
// a system call at the very time of a switch. Times that are negative are moved, all by the
// same amount: the format has none.
#include <algorithm>
#include <tuple>

#include "export/event_walk.h"
#include "export/perfetto_critical_path.h"
#include "export/perfetto_packets.h"
#include "export/perfetto_schedule.h"
#include "export/thread_walk.h"

namespace culprit::export_ {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;
using trace::ThreadKind;

enum FtraceField : uint32_t { kSchedWaking = 20, kSysEnter = 329, kSysExit = 330 };
constexpr uint32_t kHardInterrupt = 8;     // in common_flags
constexpr uint32_t kMadeUpIds = 1u << 30;  // above what Linux gives
constexpr uint16_t kUnknownCpu = 0;        // where an event's CPU is not known

// The tiles of a thread as they follow each other. At the same time the short
// ones come first: a wait or a ready of no length stands before what it leads to.
class ThreadTiles {
 public:
  explicit ThreadTiles(const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (trace::IsTile(event.kind)) tiles_.push_back(&event);
    }
    const auto key = [](const Event* tile) {
      const int rank = tile->kind == EventKind::kRunning ? 2 : tile->kind == EventKind::kReady;
      return std::tuple(tile->time_ns, tile->dur_ns, rank);
    };
    std::stable_sort(tiles_.begin(), tiles_.end(),
                     [&](const Event* a, const Event* b) { return key(a) < key(b); });
    for (const Event* tile : tiles_) {
      if (tile->kind == EventKind::kRunning) running_.push_back(tile);
    }
  }
  size_t size() const { return tiles_.size(); }
  const Event& operator[](size_t i) const { return *tiles_[i]; }
  const Event* After(size_t i) const { return i + 1 < tiles_.size() ? tiles_[i + 1] : nullptr; }
  // The running tile that began last at or before a time; nullptr: none.
  const Event* RunningAt(int64_t time_ns) const {
    const auto it =
        std::upper_bound(running_.begin(), running_.end(), time_ns,
                         [](int64_t t, const Event* tile) { return t < tile->time_ns; });
    return it == running_.begin() ? nullptr : *(it - 1);
  }
  // The first one that begins at or after it.
  const Event* RunningFrom(int64_t time_ns) const {
    const auto it =
        std::lower_bound(running_.begin(), running_.end(), time_ns,
                         [](const Event* tile, int64_t t) { return tile->time_ns < t; });
    return it == running_.end() ? nullptr : *it;
  }

 private:
  std::vector<const Event*> tiles_;
  std::vector<const Event*> running_;
};

bool Continues(const Event& running, const Event* next) {
  return next != nullptr && next->kind == EventKind::kRunning && next->time_ns == EndOf(running) &&
         next->cpu == running.cpu;
}

ProtoWriter Timebase(std::string_view tracepoint, int64_t period_ns) {
  ProtoWriter timebase, point, samples, defaults;
  if (tracepoint.empty()) {
    timebase.Uint(4, 1);  // the CPU clock
    if (period_ns > 0) timebase.Int(1, period_ns);
  } else {
    timebase.Message(3, point.Bytes(1, tracepoint)).Uint(1, 1);
  }
  timebase.Bytes(10, tracepoint.empty() ? "cpu-clock" : tracepoint);
  return defaults.Message(12, samples.Message(1, timebase));
}

// Stacks of one kind: a sequence of its own, so that readers tell them apart.
struct StackSequence {
  StackSequence(uint32_t id, ChunkedSink& out, const trace::Dictionary& d, const ProtoWriter& base)
      : packets(id, out, base), stacks(d) {}
  PacketSequence packets;
  InternedStacks stacks;
};

class PerfettoExport {
 public:
  PerfettoExport(const trace::TraceReader& reader, const Sink& sink)
      : reader_(reader),
        d_(reader.dictionary()),
        out_(sink),
        main_(1, out_),
        samples_(2, out_, d_, Timebase("", reader.metadata().sample_period_ns)),
        switch_stacks_(3, out_, d_, Timebase("sched:sched_switch", 0)),
        waker_stacks_(4, out_, d_, Timebase("sched:sched_waking", 0)),
        ftrace_(main_, FtraceBundles::Write::kAtOnce),
        late_ftrace_(main_, FtraceBundles::Write::kAtFlush),
        next_uuid_(d_.threads().size() + 1) {
    first_ns_ = std::min<int64_t>(0, reader.metadata().begin_ns);
    for (const trace::BlockInfo& block : reader.blocks()) {
      first_ns_ = std::min(first_ns_, block.min_time_ns);
    }
    for (const trace::Instance& instance : reader.instances()) {
      first_ns_ = std::min(first_ns_, instance.t0_ns);
    }
  }

  Result<Summary> Write(Progress* progress) {
    CULPRIT_TRY(WriteClock());
    CULPRIT_TRY(WriteProcessTree());
    SortInstances();
    CULPRIT_ASSIGN(
        Summary summary,
        WalkThreads(reader_, progress, [&](ThreadId thread, const std::vector<Event>& events) {
          return Visit(thread, events);
        }));
    CULPRIT_TRY(schedule_.Write([&](ThreadId thread) { return TaskOf(thread); }, ftrace_));
    CULPRIT_TRY(ftrace_.Flush());
    CULPRIT_TRY(late_ftrace_.Flush());
    CULPRIT_TRY(WriteCriticalPaths(reader_, first_ns_, main_, next_uuid_, diagnostics_));
    CULPRIT_TRY(out_.Flush());
    summary.diagnostics.Merge(diagnostics_);
    return summary;
  }

 private:
  uint64_t Time(int64_t time_ns) const {
    return static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(first_ns_);
  }
  uint64_t End(const Event& event) const {
    return Time(event.time_ns) + static_cast<uint64_t>(std::max<int64_t>(0, event.dur_ns));
  }

  int32_t Tid(ThreadId thread) const {
    if (!thread.valid()) return 0;
    const trace::Thread& row = d_.threads()[thread.value];
    if (row.kind == ThreadKind::kIdle) return 0;
    if (row.tid >= 0 && row.tid < kMadeUpIds) return static_cast<int32_t>(row.tid);
    return static_cast<int32_t>(kMadeUpIds + thread.value % kMadeUpIds);
  }
  int32_t ProcessIdOf(size_t process) const {
    const int64_t pid = d_.processes()[process].pid;
    if (pid >= 0 && pid < kMadeUpIds) return static_cast<int32_t>(pid);
    return static_cast<int32_t>(kMadeUpIds + (d_.threads().size() + process) % kMadeUpIds);
  }
  int32_t Pid(ThreadId thread) const {
    if (!thread.valid()) return 0;
    const trace::ProcessId process = d_.threads()[thread.value].process;
    return process.valid() ? ProcessIdOf(process.value) : Tid(thread);
  }
  std::string NameOf(ThreadId thread) const {
    return thread.valid() ? Utf8Text(d_.Text(d_.threads()[thread.value].name)) : "";
  }
  PerfettoSchedule::Task TaskOf(ThreadId thread) const { return {Tid(thread), NameOf(thread)}; }
  bool IsDevice(ThreadId thread) const {
    return thread.valid() && d_.threads()[thread.value].kind == ThreadKind::kDevice;
  }

  Status WriteClock() {
    if (reader_.metadata().wall_start_ns <= 0) return {};
    ProtoWriter snapshot, boot, wall;
    const uint64_t begin_ns = Time(reader_.metadata().begin_ns);
    snapshot.Message(1, boot.Uint(1, 6).Uint(2, begin_ns));
    snapshot.Message(1, wall.Uint(1, 1).Int(2, reader_.metadata().wall_start_ns));
    return main_.Put(begin_ns, kClockSnapshot, snapshot);
  }

  Status WriteProcessTree() {
    ProtoWriter tree;
    for (size_t i = 0; i < d_.processes().size(); ++i) {
      ProtoWriter process;
      process.Int(1, ProcessIdOf(i)).Bytes(3, Utf8Text(d_.Text(d_.processes()[i].name)));
      tree.Message(1, process);
    }
    for (size_t i = 0; i < d_.threads().size(); ++i) {
      const ThreadId id(i);
      if (IsDevice(id) || Tid(id) == 0) continue;
      ProtoWriter thread;
      tree.Message(2, thread.Int(1, Tid(id)).Bytes(2, NameOf(id)).Int(3, Pid(id)));
    }
    return main_.Put(Time(reader_.metadata().begin_ns), kProcessTree, tree);
  }

  // By thread, then as SliceTracks wants them.
  void SortInstances() {
    instances_ = reader_.instances();
    std::stable_sort(instances_.begin(), instances_.end(),
                     [](const trace::Instance& a, const trace::Instance& b) {
                       return std::tuple(a.thread.value, a.t0_ns, b.t1_ns) <
                              std::tuple(b.thread.value, b.t0_ns, a.t1_ns);
                     });
  }

  Status Visit(ThreadId thread, const std::vector<Event>& events) {
    const ThreadTiles tiles(events);
    CULPRIT_TRY(WriteTiles(tiles));
    for (const Event& event : events) {
      if (event.kind == EventKind::kUnwait) CULPRIT_TRY(WriteWaking(event, tiles));
      if (event.kind == EventKind::kSyscall) CULPRIT_TRY(WriteSyscall(event, tiles));
    }
    return WriteSlices(thread, events);
  }

  Status WriteTiles(const ThreadTiles& tiles) {
    uint16_t cpu = kUnknownCpu;
    const Event* span_begin = nullptr;
    for (size_t i = 0; i < tiles.size(); ++i) {
      const Event& tile = tiles[i];
      if (tile.kind != EventKind::kRunning) {
        // A ready that was not preempted has the stack of its wait.
        const bool preempted = (tile.flags & trace::kPreempted) != 0;
        if (tile.kind == EventKind::kReady && !preempted) continue;
        CULPRIT_TRY(WriteStack(switch_stacks_, tile.time_ns, tile.thread, cpu, tile.stack));
        continue;
      }
      if (span_begin == nullptr) span_begin = &tile;
      if (tile.cpu != Event::kNoCpu) cpu = tile.cpu;
      CULPRIT_TRY(WriteSample(tile, tiles.After(i), cpu));
      if (Continues(tile, tiles.After(i))) continue;
      AddSpan(*span_begin, tile, tiles.After(i));
      span_begin = nullptr;
    }
    return {};
  }

  // The thread's on-CPU span from `first` to `last`, running tiles that abut.
  void AddSpan(const Event& first, const Event& last, const Event* next) {
    if (!reader_.metadata().has_switches) return;
    if (first.cpu == Event::kNoCpu) {
      diagnostics_.Count("on-CPU span without a CPU, left out of the schedule");
      return;
    }
    PerfettoSchedule::Span span{.begin_ns = Time(first.time_ns),
                                .end_ns = std::max(Time(first.time_ns), End(last)),
                                .thread = first.thread,
                                .cpu = first.cpu};
    if (next != nullptr) {
      if (next->kind == EventKind::kWait) span.state = SwitchState::kSleeping;
    } else if (first.thread.valid() && d_.threads()[first.thread.value].end_ns == EndOf(last)) {
      span.state = SwitchState::kDead;
    }
    schedule_.Add(span);
  }

  // A sample cuts a span: its tile ends where it was taken, except the last,
  // which also has the rest of the span.
  Status WriteSample(const Event& running, const Event* next, uint16_t cpu) {
    int64_t time_ns = running.time_ns;
    if (reader_.metadata().has_switches) {
      const bool cut = Continues(running, next);
      time_ns = AddSaturated(time_ns, cut ? running.dur_ns : running.dur_ns / 2);
    }
    return WriteStack(samples_, time_ns, running.thread, cpu, running.stack);
  }

  Status WriteStack(StackSequence& sequence, int64_t time_ns, ThreadId thread, uint16_t cpu,
                    trace::StackId stack) {
    if (!stack.valid()) return {};
    ProtoWriter interned, sample;
    const uint64_t iid = sequence.stacks.Intern(stack, interned);
    const trace::Frame& leaf = d_.frames()[d_.stacks()[stack.value].frame.value];
    const bool kernel = (leaf.flags & trace::kKernelMode) != 0;
    sample.Uint(1, cpu).Int(2, Pid(thread)).Int(3, Tid(thread)).Uint(4, iid);
    sample.Uint(5, kernel ? 1 : 2);
    return sequence.packets.Put(Time(time_ns), kPerfSample, sample, interned);
  }

  Status WriteWaking(const Event& unwait, const ThreadTiles& tiles) {
    const uint16_t cpu = unwait.cpu != Event::kNoCpu ? unwait.cpu : kUnknownCpu;
    const bool device = IsDevice(unwait.thread);
    const Event* runs = tiles.RunningFrom(unwait.time_ns);
    ProtoWriter waking;
    waking.Bytes(1, NameOf(unwait.peer)).Int(2, Tid(unwait.peer)).Int(3, 120).Int(4, 1);
    if (runs != nullptr && runs->cpu != Event::kNoCpu) waking.Int(5, runs->cpu);
    CULPRIT_TRY(ftrace_.Add(cpu, Time(unwait.time_ns), device ? 0 : Tid(unwait.thread),
                            kSchedWaking, waking, device ? kHardInterrupt : 0));
    if (device) return {};
    return WriteStack(waker_stacks_, unwait.time_ns, unwait.thread, cpu, unwait.stack);
  }

  Status WriteSyscall(const Event& event, const ThreadTiles& tiles) {
    ProtoWriter enter, exit;
    enter.Int(1, FirstArgument(event));
    CULPRIT_TRY(WriteCallEdge(event, event.time_ns, kSysEnter, enter, tiles));
    if ((event.flags & trace::kUnfinished) != 0) return {};
    exit.Int(1, FirstArgument(event)).Int(2, event.arg1);
    return WriteCallEdge(event, EndOf(event), kSysExit, exit, tiles);
  }

  // On the CPU the thread had then; a call can begin on one and end on another.
  Status WriteCallEdge(const Event& event, int64_t time_ns, FtraceField field,
                       const ProtoWriter& payload, const ThreadTiles& tiles) {
    const Event* running = tiles.RunningAt(time_ns);
    uint16_t cpu = running != nullptr ? running->cpu : event.cpu;
    if (cpu == Event::kNoCpu) cpu = kUnknownCpu;
    const bool after_switch = running != nullptr && running->time_ns == time_ns;
    FtraceBundles& bundles = after_switch ? late_ftrace_ : ftrace_;
    return bundles.Add(cpu, Time(time_ns), Tid(event.thread), field, payload);
  }

  Status WriteSlices(ThreadId thread, const std::vector<Event>& events) {
    const uint64_t uuid = thread.valid() ? uint64_t{thread.value} + 1 : 0;
    const auto begin = std::lower_bound(
        instances_.begin(), instances_.end(), thread.value,
        [](const trace::Instance& a, uint32_t value) { return a.thread.value < value; });
    const bool has_instances = begin != instances_.end() && begin->thread == thread;
    const bool has_events = std::any_of(events.begin(), events.end(), [](const Event& event) {
      return event.kind >= EventKind::kHardware && event.kind != EventKind::kSyscall;
    });
    if (!has_instances && !has_events) return {};
    if (thread.valid()) CULPRIT_TRY(WriteTrack(thread, uuid));
    SliceTracks instances(main_, next_uuid_, "instances", uuid);
    for (auto it = begin; it != instances_.end() && it->thread == thread; ++it) {
      ProtoWriter slice;
      slice.Bytes(22, "instance").Bytes(23, Utf8Text(d_.Text(it->scenario)));
      CULPRIT_TRY(
          AddSlice(instances, Time(it->t0_ns), Time(std::max(it->t0_ns, it->t1_ns)), slice));
    }
    CULPRIT_TRY(instances.Finish());
    return WriteWork(thread, uuid, events);
  }

  Status WriteTrack(ThreadId thread, uint64_t uuid) {
    ProtoWriter descriptor, row;
    descriptor.Uint(1, uuid);
    if (IsDevice(thread)) {
      descriptor.Bytes(2, NameOf(thread));
    } else {
      row.Int(1, Pid(thread)).Int(2, Tid(thread)).Bytes(5, NameOf(thread));
      // System calls are slices too and need not nest with ours.
      descriptor.Message(4, row).Uint(9, 1);
    }
    return main_.Put({}, kTrackDescriptor, descriptor);
  }

  // Hardware, calls and instants. A device's requests are on its own track.
  Status WriteWork(ThreadId thread, uint64_t uuid, const std::vector<Event>& events) {
    SliceTracks calls(main_, next_uuid_, "calls", uuid, IsDevice(thread) ? 0 : uuid);
    SliceTracks requests(main_, next_uuid_, IsDevice(thread) ? NameOf(thread) : "requests", 0,
                         IsDevice(thread) ? uuid : 0);
    for (const Event& event : events) {
      ProtoWriter slice;
      if (event.kind == EventKind::kHardware) {
        static constexpr std::string_view kOperations[] = {"read", "write", "flush", "discard"};
        const bool known = event.arg1 >= 0 && event.arg1 < 4;
        slice.Bytes(22, "hardware").Bytes(23, known ? kOperations[event.arg1] : "request");
        AddAnnotation("bytes", event.arg0, slice);
        if (event.peer.valid()) AddAnnotation("requester tid", Tid(event.peer), slice);
        CULPRIT_TRY(AddSlice(requests, Time(event.time_ns), End(event), slice));
      } else if (event.kind == EventKind::kCall) {
        std::string name = "[no stack]";
        if (event.stack.valid()) name = d_.FrameName(d_.stacks()[event.stack.value].frame);
        slice.Bytes(22, "call").Bytes(23, Utf8Text(name));
        CULPRIT_TRY(AddSlice(calls, Time(event.time_ns), End(event), slice));
      } else if (event.kind == EventKind::kMarker &&
                 (event.flags & (trace::kBegin | trace::kEnd)) == 0) {
        slice.Bytes(22, "marker").Bytes(23, Utf8Text(MarkerName(d_, event)));
        slice.Uint(9, 3).Uint(11, uuid);
        CULPRIT_TRY(main_.Put(Time(event.time_ns), kTrackEvent, slice));
      }
    }
    CULPRIT_TRY(requests.Finish());
    return calls.Finish();
  }

  static void AddAnnotation(std::string_view name, int64_t value, ProtoWriter& slice) {
    ProtoWriter annotation;
    slice.Message(4, annotation.Bytes(10, name).Int(4, value));
  }

  Status AddSlice(SliceTracks& tracks, uint64_t begin_ns, uint64_t end_ns,
                  const ProtoWriter& slice) {
    CULPRIT_ASSIGN(const bool added, tracks.Add(begin_ns, end_ns, slice));
    if (!added) diagnostics_.Count("slice that overlaps too many others, left out");
    return {};
  }

  const trace::TraceReader& reader_;
  const trace::Dictionary& d_;
  ChunkedSink out_;
  PacketSequence main_;
  StackSequence samples_;
  StackSequence switch_stacks_;
  StackSequence waker_stacks_;
  FtraceBundles ftrace_;
  FtraceBundles late_ftrace_;  // what happened right after a switch
  PerfettoSchedule schedule_;
  std::vector<trace::Instance> instances_;
  uint64_t next_uuid_;
  int64_t first_ns_ = 0;
  Diagnostics diagnostics_;
};

}  // namespace

Result<Summary> ExportPerfetto(const trace::TraceReader& reader, const Options& options,
                               const Sink& sink) {
  CULPRIT_TRY(RequireReadable(reader));
  return PerfettoExport(reader, sink).Write(options.progress);
}

}  // namespace culprit::export_
