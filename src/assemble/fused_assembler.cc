// SPDX-License-Identifier: Apache-2.0
#include "assemble/fused_assembler.h"

#include <algorithm>

namespace culprit::assemble {
namespace {

using trace::EventKind;
using trace::kInferred;
using trace::kNotSampled;
using trace::kPreempted;
using trace::kWakerLost;
using trace::kWakerUnknown;
using trace::StackId;
using trace::ThreadId;

constexpr size_t kMaxHeldStacks = 256;
constexpr size_t kMaxEnded = 100'000;
constexpr ptrdiff_t kRememberedSeats = 8192;
constexpr int64_t kRememberEndedNs = 10'000'000'000;
constexpr std::string_view kRecorderName = "culprit";

}  // namespace

FusedAssembler::FusedAssembler(EventTarget& target, int64_t begin_ns)
    : sink_(target),
      threads_(target.dictionary()),
      open_work_(sink_, threads_),
      begin_ns_(begin_ns) {
  sink_.Cover(begin_ns, begin_ns);
}

void FusedAssembler::SeenCpu(uint16_t cpu) {
  if (cpu != kNoCpu && cpu >= seats_.size()) seats_.resize(size_t{cpu} + 1);
}

void FusedAssembler::Seat::Take(int64_t time_ns) {
  if (taken_ns.size() >= size_t{2} * kRememberedSeats) {
    taken_ns.erase(taken_ns.begin(), taken_ns.end() - kRememberedSeats);
  }
  if (taken_ns.empty() || taken_ns.back() <= time_ns) {
    taken_ns.push_back(time_ns);
    return;
  }
  taken_ns.insert(std::upper_bound(taken_ns.begin(), taken_ns.end(), time_ns), time_ns);
}

int64_t FusedAssembler::Seat::TakenAfter(int64_t time_ns) const {
  const auto it = std::upper_bound(taken_ns.begin(), taken_ns.end(), time_ns);
  return it == taken_ns.end() ? 0 : *it;
}

void FusedAssembler::Sit(LiveThread& thread, uint16_t cpu, int64_t time_ns) {
  thread.cpu = cpu;
  thread.displaced_ns = 0;
  SeenCpu(cpu);
  if (cpu == kNoCpu) return;
  Seat& seat = seats_[cpu];
  seat.Take(time_ns);
  if (time_ns < seat.since_ns) {
    thread.displaced_ns = seat.TakenAfter(time_ns);
    return;
  }
  LiveThread* before = seat.tid == thread.tid ? nullptr : threads_.Find(seat.tid);
  if (before != nullptr && before->cpu == cpu && before->displaced_ns == 0) {
    before->displaced_ns = time_ns;
  }
  seat.tid = thread.tid;
  seat.since_ns = time_ns;
}

void FusedAssembler::Kind(int64_t tid, trace::ThreadKind kind) {
  sink_.dictionary().thread(threads_.Get(tid).id).kind = kind;
}

// Who had that tid then: a thread that has ended meanwhile may be meant.
ThreadId FusedAssembler::ThreadAt(int64_t tid, int64_t time_ns) {
  if (tid <= 0) return {};
  const auto it = ended_.find(tid);
  if (it != ended_.end() && time_ns <= it->second.end_ns) return it->second.id;
  LiveThread& thread = threads_.Get(tid);
  thread.active = true;
  return thread.id;
}

void FusedAssembler::End(LiveThread& thread, int64_t time_ns) {
  open_work_.Close(thread, time_ns);
  ended_[thread.tid] = {.id = thread.id, .end_ns = time_ns};
  ended_order_.emplace(time_ns, thread.tid);
  threads_.End(thread, time_ns);
  while (ended_order_.size() > kMaxEnded ||
         ended_order_.begin()->first < time_ns - kRememberEndedNs) {
    const auto [end_ns, tid] = *ended_order_.begin();
    ended_order_.erase(ended_order_.begin());
    const auto it = ended_.find(tid);
    if (it != ended_.end() && it->second.end_ns == end_ns) ended_.erase(it);
  }
}

void FusedAssembler::Fork(int64_t time_ns, int64_t parent_tid, int64_t pid, int64_t tid) {
  if (tid <= 0) return;
  LiveThread* old = threads_.Find(tid);
  // Its kernel records may have come first.
  const bool told = old != nullptr && (old->phase != Phase::kUnseen || !old->held.empty());
  if (told && !old->exiting) return;
  if (old != nullptr && old->exiting) End(*old, std::max(old->exit_ns, old->since_ns));
  threads_.Started(threads_.Get(tid), time_ns, pid, parent_tid);
}

void FusedAssembler::Exit(int64_t time_ns, int64_t tid) {
  LiveThread* thread = threads_.Find(tid);
  if (thread == nullptr) return;
  // Who has tiles still has its last switch-out before it.
  if (thread->phase == Phase::kUnseen && thread->held.empty()) return End(*thread, time_ns);
  thread->exiting = true;
  thread->exit_ns = time_ns;
}

// A thread that was not told about before has been running since the recording
// began, or since it was made: had it been anything else, its first record would
// say so.
LiveThread& FusedAssembler::Begin(int64_t tid, int64_t time_ns, uint16_t cpu) {
  LiveThread& thread = threads_.Get(tid);
  if (thread.phase == Phase::kUnseen) {
    thread.phase = Phase::kRunning;
    thread.active = true;
    if (cpu != kNoCpu || thread.held.empty()) thread.cpu = cpu;
    const int64_t start_ns = sink_.dictionary().threads()[thread.id.value].start_ns;
    if (start_ns != trace::kNoTime) time_ns = std::max(time_ns, start_ns);
    thread.since_ns = time_ns;
    for (HeldStack& sample : thread.held) sample.time_ns = std::max(sample.time_ns, time_ns);
  }
  return thread;
}

void FusedAssembler::Tile(LiveThread& thread, EventKind kind, int64_t end_ns, ThreadId peer,
                          StackId stack, uint8_t flags, int64_t sum_of) {
  sink_.Emit({.time_ns = thread.since_ns,
              .dur_ns = end_ns - thread.since_ns,
              .thread = thread.id,
              .peer = peer,
              .stack = stack,
              .cpu = thread.cpu,
              .kind = kind,
              .flags = flags,
              .arg0 = sum_of});
  thread.since_ns = end_ns;
}

// The first `count` held samples share [since, end_ns): each owns the time up to
// itself, the last one the rest.
void FusedAssembler::RunHeld(LiveThread& thread, size_t count, int64_t end_ns, uint8_t flags) {
  for (size_t i = 0; i < count; ++i) {
    const int64_t cut_ns = i + 1 == count ? end_ns : thread.held[i].time_ns;
    Tile(thread, EventKind::kRunning, std::clamp(cut_ns, thread.since_ns, end_ns), {},
         thread.held[i].stack, flags);
  }
  thread.held.erase(thread.held.begin(), thread.held.begin() + static_cast<ptrdiff_t>(count));
}

void FusedAssembler::RunUntil(LiveThread& thread, int64_t time_ns) {
  size_t count = 0;
  while (count < thread.held.size() && thread.held[count].time_ns <= time_ns) ++count;
  if (count > 0) {
    RunHeld(thread, count, time_ns, 0);
  } else if (time_ns > thread.since_ns) {
    Tile(thread, EventKind::kRunning, time_ns, {}, {}, kNotSampled);
  }
}

// Running time whose place is not known: in equal parts to the samples.
void FusedAssembler::SpreadRun(LiveThread& thread, int64_t run_ns) {
  const size_t count = thread.held.size();
  const int64_t end_ns = thread.since_ns + run_ns;
  thread.cpu = kNoCpu;
  if (count == 0) {
    if (run_ns > 0) Tile(thread, EventKind::kRunning, end_ns, {}, {}, kNotSampled | kInferred);
    return;
  }
  const int64_t begin_ns = thread.since_ns;
  for (size_t i = 0; i < count; ++i) {
    thread.held[i].time_ns =
        begin_ns + run_ns / static_cast<int64_t>(count) * static_cast<int64_t>(i + 1);
  }
  RunHeld(thread, count, end_ns, kInferred);
}

// Samples can come before the record of the wait that ended before them.
std::vector<HeldStack> FusedAssembler::TakeSamplesAfter(LiveThread& thread, int64_t time_ns) {
  if (thread.held.empty() || thread.held.back().time_ns <= time_ns) return {};
  const auto first = std::find_if(thread.held.begin(), thread.held.end(),
                                  [&](const HeldStack& held) { return held.time_ns > time_ns; });
  std::vector<HeldStack> later(first, thread.held.end());
  thread.held.erase(first, thread.held.end());
  return later;
}

void FusedAssembler::Hold(LiveThread& thread, std::span<const HeldStack> samples) {
  for (const HeldStack& sample : samples) {
    thread.held.push_back(
        {.time_ns = std::max(sample.time_ns, thread.since_ns), .stack = sample.stack});
  }
}

Status FusedAssembler::LeftOut(const LeftOutFact& fact) {
  if (fact.tid <= 0 || fact.run_ns < 0 || fact.wait_ns < 0 || fact.ready_ns < 0) return {};
  const int64_t total_ns = fact.run_ns + fact.wait_ns + fact.ready_ns;
  LiveThread& thread = Begin(fact.tid, std::max(begin_ns_, fact.end_ns - total_ns), kNoCpu);
  const std::vector<HeldStack> later = TakeSamplesAfter(thread, fact.end_ns);
  const int64_t end_ns = std::max(fact.end_ns, thread.since_ns);
  const int64_t span_ns = end_ns - thread.since_ns;
  if (span_ns != total_ns) sink_.Count(Oddity::kBrokenRecord);
  sink_.Count(Oddity::kLeftOut, fact.count);
  // What does not add up is a wait that nobody saw.
  const int64_t run_ns = std::min(fact.run_ns, span_ns);
  const int64_t ready_ns = std::min(fact.ready_ns, span_ns - run_ns);
  SpreadRun(thread, run_ns);
  trace::Dictionary& dictionary = sink_.dictionary();
  const StackId none = dictionary.InternStack({}, dictionary.InternFrame("", kLeftOutFunction));
  if (end_ns - ready_ns > thread.since_ns) {
    Tile(thread, EventKind::kWait, end_ns - ready_ns, {}, fact.stack.valid() ? fact.stack : none,
         kInferred | kWakerUnknown, std::max<int64_t>(1, static_cast<int64_t>(fact.waits)));
  }
  if (end_ns > thread.since_ns) {
    Tile(thread, EventKind::kReady, end_ns, {}, none, kInferred);
  }
  Hold(thread, later);
  Sit(thread, fact.cpu, thread.since_ns);
  return sink_.status();
}

Status FusedAssembler::Sample(int64_t time_ns, uint16_t cpu, int64_t tid, StackId stack) {
  if (tid <= 0) return {};
  SeenCpu(cpu);
  LiveThread& thread = threads_.Get(tid);
  thread.active = true;
  // Since when it runs the next record tells.
  if (thread.phase == Phase::kUnseen) {
    thread.cpu = cpu;
    thread.since_ns = begin_ns_;
  }
  if (thread.held.size() >= kMaxHeldStacks) {
    BeginSampled(thread);
    RunUntil(thread, thread.held.back().time_ns);
  }
  const HeldStack sample = {.time_ns = time_ns, .stack = stack};
  Hold(thread, {&sample, 1});
  return sink_.status();
}

// Of a thread that was only sampled so far: it has run since the recording began.
void FusedAssembler::BeginSampled(LiveThread& thread) {
  if (!thread.held.empty()) Begin(thread.tid, begin_ns_, thread.cpu);
}

// Brings the thread to the moment it lost the CPU, which is returned.
int64_t FusedAssembler::Prepare(LiveThread& thread, const OffCpuFact& fact) {
  if (fact.out_lost) {
    int64_t left_ns = thread.held.empty() ? thread.since_ns : thread.held.back().time_ns;
    if (thread.displaced_ns != 0) left_ns = std::max(thread.displaced_ns, thread.since_ns);
    RunUntil(thread, std::min(left_ns, std::max(fact.in_ns, thread.since_ns)));
    thread.held.clear();
    sink_.Count(Oddity::kBrokenRecord);
    return thread.since_ns;
  }
  if (fact.out_ns < thread.since_ns) {
    sink_.Count(Oddity::kBrokenRecord);
    thread.held.clear();
    return thread.since_ns;
  }
  if (!fact.since_begin && !fact.is_new) RunUntil(thread, fact.out_ns);
  thread.held.clear();
  if (thread.since_ns < fact.out_ns) {
    Tile(thread, EventKind::kWait, fact.out_ns, {}, {}, kInferred | kWakerLost);
  }
  return fact.out_ns;
}

WakeUp FusedAssembler::Waker(const WakeFact& fact, int64_t time_ns) {
  has_wakers_ = true;
  WakeUp wake_up = {.time_ns = time_ns, .waker = {}, .stack = fact.stack, .cpu = fact.cpu};
  if (!fact.device.empty()) {
    wake_up.waker = threads_.Device(fact.device);
  } else if (fact.context == WakeContext::kInterrupt || fact.waker_tid == 0) {
    wake_up.waker = threads_.Device("interrupt");
  } else {
    wake_up.waker = ThreadAt(fact.waker_tid, fact.time_ns);
  }
  SeenCpu(fact.cpu);
  return wake_up;
}

// The tiles from since_ns to in_ns.
void FusedAssembler::Pause(LiveThread& thread, const OffCpuFact& fact, uint8_t open_flags) {
  const int64_t in_ns = std::max(fact.in_ns, thread.since_ns);
  const uint8_t inferred = fact.out_lost ? kInferred : 0;
  if (fact.runnable) {
    if (in_ns > thread.since_ns) {
      Tile(thread, EventKind::kReady, in_ns, ThreadAt(fact.holder_tid, fact.out_ns), fact.stack,
           kPreempted | inferred);
    }
    return;
  }
  if (!fact.wake) {
    ++waits_;
    Tile(thread, EventKind::kWait, in_ns, {}, fact.stack, open_flags | inferred);
    return;
  }
  const WakeUp wake_up = Waker(*fact.wake, std::clamp(fact.wake->time_ns, thread.since_ns, in_ns));
  if (!fact.is_new) {
    ++waits_;
    const uint8_t unknown = wake_up.waker.valid() ? 0 : kWakerUnknown;
    Tile(thread, EventKind::kWait, wake_up.time_ns, wake_up.waker, fact.stack, unknown | inferred);
  }
  if (wake_up.waker.valid()) {
    sink_.Emit({.time_ns = wake_up.time_ns,
                .thread = wake_up.waker,
                .peer = thread.id,
                .stack = wake_up.stack,
                .cpu = wake_up.cpu,
                .kind = EventKind::kUnwait});
  }
  if (in_ns > thread.since_ns) {
    Tile(thread, EventKind::kReady, in_ns, ThreadAt(fact.holder_tid, in_ns), fact.stack, inferred);
  }
}

Status FusedAssembler::OffCpu(const OffCpuFact& fact) {
  if (fact.tid <= 0) return {};
  LiveThread& thread =
      Begin(fact.tid, fact.is_new || fact.since_begin ? fact.out_ns : begin_ns_, fact.out_cpu);
  const std::vector<HeldStack> later = TakeSamplesAfter(thread, fact.in_ns);
  Prepare(thread, fact);
  Pause(thread, fact, kWakerLost);
  thread.phase = Phase::kRunning;
  Hold(thread, later);
  Sit(thread, fact.in_cpu, thread.since_ns);
  return sink_.status();
}

Status FusedAssembler::Gone(int64_t time_ns, int64_t tid) {
  LiveThread* thread = threads_.Find(tid);
  if (thread == nullptr) return {};
  BeginSampled(*thread);
  if (thread->phase == Phase::kRunning) RunUntil(*thread, std::max(time_ns, thread->since_ns));
  End(*thread, std::max(time_ns, thread->since_ns));
  return sink_.status();
}

Status FusedAssembler::Syscall(int64_t enter_ns, int64_t exit_ns, uint16_t cpu, int64_t tid,
                               int64_t number, int64_t result, StackId stack, uint8_t flags) {
  if (tid <= 0 || enter_ns > exit_ns) return {};
  LiveThread& thread = threads_.Get(tid);
  thread.active = true;
  sink_.Emit({.time_ns = enter_ns,
              .dur_ns = exit_ns - enter_ns,
              .thread = thread.id,
              .stack = stack,
              .cpu = cpu,
              .kind = EventKind::kSyscall,
              .flags = flags,
              .arg0 = number,
              .arg1 = result});
  return sink_.status();
}

Status FusedAssembler::Call(int64_t enter_ns, int64_t exit_ns, int64_t tid, StackId stack,
                            uint8_t flags) {
  if (tid <= 0 || enter_ns > exit_ns) return {};
  sink_.Emit({.time_ns = enter_ns,
              .dur_ns = exit_ns - enter_ns,
              .thread = ThreadAt(tid, enter_ns),
              .stack = stack,
              .kind = EventKind::kCall,
              .flags = flags});
  return sink_.status();
}

Status FusedAssembler::Request(const RequestFact& fact) {
  sink_.Emit({.time_ns = fact.issue_ns,
              .dur_ns = std::max<int64_t>(fact.dur_ns, 0),
              .thread = threads_.Device(fact.device),
              .peer = ThreadAt(fact.tid, fact.issue_ns),
              .stack = fact.stack,
              .kind = EventKind::kHardware,
              .arg0 = fact.bytes,
              .arg1 = fact.operation});
  return sink_.status();
}

Status FusedAssembler::SliceBegin(int64_t time_ns, int64_t tid, std::string_view name) {
  open_work_.SliceBegin(threads_.Get(tid), time_ns, name);
  return sink_.status();
}

Status FusedAssembler::SliceEnd(int64_t time_ns, int64_t tid, std::string_view name) {
  open_work_.SliceEnd(threads_.Get(tid), time_ns, name);
  return sink_.status();
}

void FusedAssembler::Instance(std::string_view scenario, int64_t tid, int64_t t0_ns,
                              int64_t t1_ns) {
  sink_.target().AddInstance({.scenario = sink_.dictionary().Intern(scenario),
                              .thread = ThreadAt(tid, t0_ns),
                              .t0_ns = t0_ns,
                              .t1_ns = std::max(t0_ns, t1_ns)});
}

Status FusedAssembler::Note(int64_t time_ns, std::string_view name) {
  sink_.Emit({.time_ns = time_ns,
              .thread = threads_.Device(kRecorderName),
              .kind = EventKind::kMarker,
              .arg0 = sink_.dictionary().Intern(name).value});
  return sink_.status();
}

Status FusedAssembler::Open(const OffCpuFact& fact) {
  if (fact.tid <= 0) return {};
  LiveThread& thread =
      Begin(fact.tid, fact.is_new || fact.since_begin ? fact.out_ns : begin_ns_, fact.out_cpu);
  Prepare(thread, fact);
  Pause(thread, fact, kWakerUnknown);
  thread.phase = Phase::kWaiting;
  return sink_.status();
}

Status FusedAssembler::OpenRunning(int64_t tid, int64_t since_ns, uint16_t cpu) {
  if (tid > 0) Begin(tid, since_ns, cpu);
  return sink_.status();
}

void FusedAssembler::PeekRunning(int64_t tid, int64_t since_ns, int64_t end_ns,
                                 std::vector<trace::Event>& tiles) {
  if (tid <= 0) return;
  const LiveThread& thread = threads_.Get(tid);
  if (thread.phase == Phase::kRunning) since_ns = thread.since_ns;
  if (since_ns >= end_ns) return;
  const bool sampled = !thread.held.empty();
  tiles.push_back({.time_ns = since_ns,
                   .dur_ns = end_ns - since_ns,
                   .thread = thread.id,
                   .stack = sampled ? thread.held.back().stack : StackId(),
                   .cpu = thread.cpu,
                   .kind = EventKind::kRunning,
                   .flags = sampled ? uint8_t{0} : uint8_t{kNotSampled}});
}

void FusedAssembler::Peek(const OffCpuFact& fact, std::vector<trace::Event>& tiles) {
  if (fact.tid <= 0) return;
  const LiveThread& thread = threads_.Get(fact.tid);
  int64_t time_ns = fact.out_ns;
  if (thread.phase == Phase::kRunning) {
    // A record that came later tells more.
    if (fact.out_ns < thread.since_ns) return;
    PeekRunning(fact.tid, thread.since_ns, std::min(fact.out_ns, fact.in_ns), tiles);
  }
  if (time_ns >= fact.in_ns) return;
  const auto add = [&](EventKind kind, int64_t end_ns, ThreadId peer, uint8_t flags) {
    if (end_ns <= time_ns) return;
    tiles.push_back({.time_ns = time_ns,
                     .dur_ns = end_ns - time_ns,
                     .thread = thread.id,
                     .peer = peer,
                     .stack = fact.stack,
                     .cpu = thread.cpu,
                     .kind = kind,
                     .flags = flags});
    time_ns = end_ns;
  };
  if (fact.runnable) {
    return add(EventKind::kReady, fact.in_ns, ThreadAt(fact.holder_tid, fact.out_ns), kPreempted);
  }
  if (!fact.wake) return add(EventKind::kWait, fact.in_ns, {}, kWakerUnknown);
  const WakeUp wake_up = Waker(*fact.wake, std::clamp(fact.wake->time_ns, time_ns, fact.in_ns));
  if (!fact.is_new) add(EventKind::kWait, wake_up.time_ns, wake_up.waker, 0);
  add(EventKind::kReady, fact.in_ns, {}, 0);
}

void FusedAssembler::CloseRunning(LiveThread& thread, int64_t end_ns) {
  if (thread.displaced_ns != 0 && thread.displaced_ns < end_ns) {
    sink_.Count(Oddity::kBrokenRecord);
    RunUntil(thread, std::max(thread.displaced_ns, thread.since_ns));
    Tile(thread, EventKind::kWait, end_ns, {}, {}, kInferred | kWakerUnknown);
  } else {
    RunUntil(thread, end_ns);
  }
}

Status FusedAssembler::Finish(int64_t end_ns) {
  sink_.Cover(end_ns, end_ns);
  for (LiveThread* thread : threads_.Sorted()) {
    BeginSampled(*thread);
    // An exit without its last switch: it ran until then.
    const int64_t last_ns = thread->exiting ? std::min(thread->exit_ns, end_ns) : end_ns;
    if (thread->phase == Phase::kRunning)
      CloseRunning(*thread, std::max(last_ns, thread->since_ns));
    open_work_.Close(*thread, std::max(end_ns, thread->since_ns));
  }
  threads_.CompleteProcesses();
  trace::Metadata& metadata = sink_.target().metadata();
  metadata.begin_ns = sink_.begin_ns();
  metadata.end_ns = sink_.end_ns();
  metadata.cpus = std::max(metadata.cpus, static_cast<uint32_t>(seats_.size()));
  metadata.has_switches = true;
  metadata.has_wakers = has_wakers_;
  sink_.ReportTo(diagnostics_);
  return sink_.status();
}

}  // namespace culprit::assemble
