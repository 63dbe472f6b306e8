// SPDX-License-Identifier: Apache-2.0
#include "assemble/assembler.h"

#include <algorithm>
#include <string>
#include <vector>

#include "assemble/event_sink.h"
#include "assemble/open_work.h"
#include "assemble/thread_table.h"
#include "assemble/timeline.h"

namespace culprit::assemble {
namespace {

// Far enough from the ends of int64_t that sums and differences of two times
// cannot overflow.
constexpr int64_t kMaxTimeNs = int64_t{1} << 61;
constexpr int64_t kDefaultPeriodNs = 1'000'000;

struct HeldSample {
  SampleFact fact;
  trace::ThreadId id;
};

enum class Mode : uint8_t {
  kUndecided,    // no switch yet, samples are held back
  kTiles,        // the trace has switches
  kSamplesOnly,  // it has none
};

}  // namespace

struct Assembler::State {
  explicit State(trace::TraceWriter& writer)
      : target(writer),
        sink(target),
        threads(writer.dictionary()),
        timeline(sink, threads),
        open_work(sink, threads) {}

  int64_t Advance(int64_t time_ns);
  // A mention of a thread by something it did itself.
  LiveThread& Acting(int64_t tid, uint16_t cpu, int64_t time_ns);
  void Retire(LiveThread& thread, int64_t time_ns);
  void BeginTiles();
  void GiveUpTiles();
  void EmitSample(trace::ThreadId id, const SampleFact& fact);
  void FillMetadata();

  WriterTarget target;
  EventSink sink;
  ThreadTable threads;
  Timeline timeline;
  OpenWork open_work;
  Mode mode = Mode::kUndecided;
  bool started = false;
  int64_t now_ns = 0;
  std::vector<HeldSample> held;
  Diagnostics diagnostics;
};

int64_t Assembler::State::Advance(int64_t time_ns) {
  time_ns = std::clamp(time_ns, -kMaxTimeNs, kMaxTimeNs);
  if (started && time_ns < now_ns) sink.Count(Oddity::kBackwards);
  if (!started || time_ns > now_ns) {
    now_ns = time_ns;
    sink.Cover(now_ns, now_ns);
  }
  started = true;
  return now_ns;
}

LiveThread& Assembler::State::Acting(int64_t tid, uint16_t cpu, int64_t time_ns) {
  timeline.SeenCpu(cpu);
  LiveThread& thread = threads.Get(tid);
  if (mode == Mode::kTiles && tid > 0) timeline.Touch(thread, cpu, time_ns);
  return thread;
}

void Assembler::State::Retire(LiveThread& thread, int64_t time_ns) {
  open_work.Close(thread, time_ns);
  if (mode == Mode::kTiles) {
    timeline.Leave(thread, time_ns);
    timeline.Close(thread, time_ns);
  }
  threads.End(thread, time_ns);
}

void Assembler::State::BeginTiles() {
  mode = Mode::kTiles;
  for (const HeldSample& sample : held) {
    LiveThread* thread = threads.Find(sample.fact.tid);
    if (thread == nullptr || thread->id != sample.id) {
      sink.Count(Oddity::kEndedSample);
    } else {
      timeline.Sample(*thread, sample.fact);
    }
  }
  held = {};
}

void Assembler::State::GiveUpTiles() {
  mode = Mode::kSamplesOnly;
  for (const HeldSample& sample : held) EmitSample(sample.id, sample.fact);
  held = {};
}

void Assembler::State::EmitSample(trace::ThreadId id, const SampleFact& fact) {
  int64_t period_ns = fact.period_ns;
  if (period_ns <= 0) period_ns = sink.target().metadata().sample_period_ns;
  if (period_ns <= 0) period_ns = kDefaultPeriodNs;
  sink.Emit({.time_ns = fact.time_ns,
             .dur_ns = std::min(period_ns, kMaxTimeNs),
             .thread = id,
             .stack = fact.stack,
             .cpu = fact.cpu,
             .kind = trace::EventKind::kRunning});
}

Assembler::Assembler(trace::TraceWriter& writer) : state_(std::make_unique<State>(writer)) {}
Assembler::~Assembler() = default;

trace::ThreadId Assembler::ThreadOf(int64_t tid) { return state_->threads.Get(tid).id; }

void Assembler::Name(int64_t pid, int64_t tid, std::string_view name) {
  state_->threads.Name(pid, tid, name);
}

void Assembler::ProcessName(int64_t pid, std::string_view name, std::string_view command_line) {
  state_->threads.ProcessName(pid, name, command_line);
}

void Assembler::Cgroup(int64_t pid, std::string_view cgroup) {
  state_->threads.Cgroup(pid, cgroup);
}

void Assembler::Kind(int64_t tid, trace::ThreadKind kind) {
  const trace::ThreadId id = ThreadOf(tid);
  state_->sink.dictionary().thread(id).kind = kind;
}

void Assembler::Fork(int64_t time_ns, int64_t parent_tid, int64_t pid, int64_t tid) {
  State& s = *state_;
  if (tid <= 0) return;
  time_ns = s.Advance(time_ns);
  LiveThread* old = s.threads.Find(tid);
  // Two tracers may tell of the same birth; what has done nothing yet is it.
  if (old != nullptr && (old->active || old->exiting)) s.Retire(*old, time_ns);
  s.threads.Started(s.threads.Get(tid), time_ns, pid, parent_tid);
}

void Assembler::Exit(int64_t time_ns, int64_t tid) {
  State& s = *state_;
  if (tid <= 0) return;
  time_ns = s.Advance(time_ns);
  LiveThread& thread = s.threads.Get(tid);
  // With switches its last one is still to come.
  if (s.mode == Mode::kSamplesOnly) return s.Retire(thread, time_ns);
  thread.exiting = true;
  thread.exit_ns = time_ns;
  s.sink.dictionary().thread(thread.id).end_ns = time_ns;
}

Status Assembler::Switch(const SwitchFact& fact) {
  State& s = *state_;
  SwitchFact moved = fact;
  moved.time_ns = s.Advance(fact.time_ns);
  s.timeline.SeenCpu(fact.cpu);
  if (s.mode == Mode::kSamplesOnly) {
    s.sink.Count(Oddity::kLateSwitch);
    return s.sink.status();
  }
  if (s.mode == Mode::kUndecided) s.BeginTiles();
  s.timeline.Switch(moved);
  if (moved.prev_tid > 0 && moved.prev_tid != moved.next_tid) {
    LiveThread& prev = s.threads.Get(moved.prev_tid);
    if (prev.exiting) {
      // Its life ends with its last running tile.
      prev.phase = Phase::kUnseen;
      s.Retire(prev, moved.time_ns);
    }
  }
  return s.sink.status();
}

Status Assembler::Waking(const WakingFact& fact) {
  State& s = *state_;
  if (fact.wakee_tid <= 0) return {};
  WakingFact moved = fact;
  moved.time_ns = s.Advance(fact.time_ns);
  s.timeline.SeenCpu(fact.cpu);
  WakeUp wake_up = {.time_ns = moved.time_ns, .waker = {}, .stack = fact.stack, .cpu = fact.cpu};
  const bool interrupt = fact.context == WakeContext::kInterrupt || fact.waker_tid == 0;
  if (!fact.device.empty()) {
    wake_up.waker = s.threads.Device(fact.device);
  } else if (interrupt) {
    wake_up.waker = s.threads.Device("interrupt");
  } else if (fact.waker_tid > 0) {
    LiveThread& waker = s.threads.Get(fact.waker_tid);
    waker.active = true;
    wake_up.waker = waker.id;
  }
  s.timeline.Waking(moved, wake_up, s.mode == Mode::kTiles);
  return s.sink.status();
}

Status Assembler::Sample(const SampleFact& fact) {
  State& s = *state_;
  SampleFact moved = fact;
  moved.time_ns = s.Advance(fact.time_ns);
  s.timeline.SeenCpu(fact.cpu);
  // The idle task does not run, whatever the sampler says.
  if (fact.tid <= 0) return {};
  LiveThread& thread = s.threads.Get(fact.tid);
  thread.active = true;
  switch (s.mode) {
    case Mode::kUndecided:
      s.held.push_back({.fact = moved, .id = thread.id});
      if (s.held.size() >= kMaxHeldSamples) s.GiveUpTiles();
      break;
    case Mode::kTiles:
      s.timeline.Sample(thread, moved);
      break;
    case Mode::kSamplesOnly:
      s.EmitSample(thread.id, moved);
      break;
  }
  return s.sink.status();
}

Status Assembler::SyscallEnter(int64_t time_ns, uint16_t cpu, int64_t tid, int64_t number,
                               trace::StackId stack) {
  State& s = *state_;
  if (tid <= 0) return {};
  time_ns = s.Advance(time_ns);
  LiveThread& thread = s.Acting(tid, cpu, time_ns);
  s.open_work.SyscallEnter(thread,
                           {.time_ns = time_ns, .number = number, .stack = stack, .cpu = cpu});
  return s.sink.status();
}

Status Assembler::SyscallExit(int64_t time_ns, uint16_t cpu, int64_t tid, int64_t number,
                              int64_t result) {
  State& s = *state_;
  if (tid <= 0) return {};
  time_ns = s.Advance(time_ns);
  s.open_work.SyscallExit(s.Acting(tid, cpu, time_ns), time_ns, number, result);
  return s.sink.status();
}

Status Assembler::Syscall(int64_t time_ns, int64_t dur_ns, int64_t tid, int64_t number,
                          int64_t result, trace::StackId stack) {
  State& s = *state_;
  LiveThread& thread = s.threads.Get(tid);
  thread.active = true;
  s.sink.Emit({.time_ns = std::clamp(time_ns, -kMaxTimeNs, kMaxTimeNs),
               .dur_ns = std::clamp<int64_t>(dur_ns, 0, kMaxTimeNs),
               .thread = thread.id,
               .stack = stack,
               .kind = trace::EventKind::kSyscall,
               .arg0 = number,
               .arg1 = result});
  return s.sink.status();
}

Status Assembler::BlockIssue(const BlockFact& fact) {
  BlockFact moved = fact;
  moved.time_ns = state_->Advance(fact.time_ns);
  state_->open_work.BlockIssue(moved);
  return state_->sink.status();
}

Status Assembler::BlockComplete(const BlockFact& fact) {
  BlockFact moved = fact;
  moved.time_ns = state_->Advance(fact.time_ns);
  state_->open_work.BlockComplete(moved);
  return state_->sink.status();
}

Status Assembler::SliceBegin(int64_t time_ns, int64_t tid, std::string_view name) {
  time_ns = state_->Advance(time_ns);
  state_->open_work.SliceBegin(state_->threads.Get(tid), time_ns, name);
  return state_->sink.status();
}

Status Assembler::SliceEnd(int64_t time_ns, int64_t tid, std::string_view name) {
  time_ns = state_->Advance(time_ns);
  state_->open_work.SliceEnd(state_->threads.Get(tid), time_ns, name);
  return state_->sink.status();
}

void Assembler::Instance(std::string_view scenario, int64_t tid, int64_t t0_ns, int64_t t1_ns) {
  State& s = *state_;
  t0_ns = std::clamp(t0_ns, -kMaxTimeNs, kMaxTimeNs);
  s.sink.target().AddInstance({.scenario = s.sink.dictionary().Intern(scenario),
                               .thread = ThreadOf(tid),
                               .t0_ns = t0_ns,
                               .t1_ns = std::clamp(t1_ns, t0_ns, kMaxTimeNs)});
}

void Assembler::State::FillMetadata() {
  trace::Metadata& metadata = sink.target().metadata();
  metadata.begin_ns = sink.begin_ns();
  metadata.end_ns = sink.end_ns();
  metadata.cpus = std::max(metadata.cpus, timeline.cpus());
  metadata.has_switches = mode == Mode::kTiles;
  metadata.has_wakers = metadata.has_switches && timeline.has_wakers();
  const uint64_t inferred = sink.count(Oddity::kInferredSwitch);
  if (inferred != 0) metadata.properties["switches.inferred"] = std::to_string(inferred);
}

Status Assembler::Finish(int64_t end_ns) {
  State& s = *state_;
  if (s.mode == Mode::kUndecided) s.GiveUpTiles();
  if (end_ns != 0) s.now_ns = std::max(s.now_ns, std::min(end_ns, kMaxTimeNs));
  if (s.started) s.sink.Cover(s.now_ns, s.now_ns);
  // Calls that the tracer joined may end after the last fact.
  const int64_t last_ns = std::max(s.now_ns, s.mode == Mode::kTiles ? s.sink.end_ns() : s.now_ns);
  for (LiveThread* thread : s.threads.Sorted()) {
    s.open_work.Close(*thread, last_ns);
    if (s.mode == Mode::kTiles) s.timeline.Close(*thread, last_ns);
  }
  s.open_work.CloseBlocks(last_ns);
  s.threads.CompleteProcesses();
  s.FillMetadata();
  s.sink.ReportTo(s.diagnostics);
  return s.sink.status();
}

const Diagnostics& Assembler::diagnostics() const { return state_->diagnostics; }

}  // namespace culprit::assemble
