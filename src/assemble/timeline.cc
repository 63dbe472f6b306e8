// SPDX-License-Identifier: Apache-2.0
#include "assemble/timeline.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

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

}  // namespace

void Timeline::SeenCpu(uint16_t cpu) {
  if (cpu != kNoCpu && cpu >= cpus_.size()) cpus_.resize(size_t{cpu} + 1);
}

Timeline::Cpu* Timeline::CpuOf(uint16_t cpu) {
  if (cpu == kNoCpu) return nullptr;
  SeenCpu(cpu);
  return &cpus_[cpu];
}

LiveThread* Timeline::Occupant(uint16_t cpu) {
  const Cpu* c = CpuOf(cpu);
  if (c == nullptr || c->tid <= 0) return nullptr;
  LiveThread* thread = threads_.Find(c->tid);
  CULPRIT_CHECK(thread != nullptr && thread->phase == Phase::kRunning && thread->cpu == cpu);
  return thread;
}

ThreadId Timeline::Holder(uint16_t cpu, int64_t except_tid) {
  const LiveThread* thread = Occupant(cpu);
  return thread == nullptr || thread->tid == except_tid ? ThreadId() : thread->id;
}

void Timeline::Vacate(uint16_t cpu, int64_t time_ns) {
  if (Cpu* c = CpuOf(cpu)) *c = {.tid = kNoTid, .free_ns = std::max(c->free_ns, time_ns)};
}

void Timeline::EmitTile(const LiveThread& thread, EventKind kind, int64_t end_ns, ThreadId peer,
                        uint8_t flags) {
  CULPRIT_CHECK(end_ns >= thread.since_ns);
  sink_.Emit({.time_ns = thread.since_ns,
              .dur_ns = end_ns - thread.since_ns,
              .thread = thread.id,
              .peer = peer,
              .stack = thread.stack,
              .cpu = thread.cpu,
              .kind = kind,
              .flags = flags});
}

void Timeline::EmitUnwait(const LiveThread& wakee, const WakeUp& wake_up) {
  if (!wake_up.waker.valid()) return;
  sink_.Emit({.time_ns = wake_up.time_ns,
              .thread = wake_up.waker,
              .peer = wakee.id,
              .stack = wake_up.stack,
              .cpu = wake_up.cpu,
              .kind = EventKind::kUnwait});
}

// The last sample of a span owns the rest of it. A span of no length that
// nobody sampled is not worth an event.
void Timeline::EndRunning(LiveThread& thread, int64_t time_ns) {
  const bool sampled = thread.sample.has_value();
  if (sampled || time_ns > thread.since_ns) {
    thread.stack = sampled ? *thread.sample : StackId();
    const uint8_t flags = sampled ? thread.flags : thread.flags | kNotSampled;
    EmitTile(thread, EventKind::kRunning, time_ns, {}, flags);
  }
  thread.sample.reset();
  thread.since_ns = time_ns;
  thread.flags = 0;
  if (Cpu* c = CpuOf(thread.cpu)) c->free_ns = std::max(c->free_ns, time_ns);
}

void Timeline::EndWait(LiveThread& thread, const WakeUp& wake_up) {
  const uint8_t unknown = wake_up.waker.valid() ? 0 : kWakerUnknown;
  EmitTile(thread, EventKind::kWait, wake_up.time_ns, wake_up.waker, thread.flags | unknown);
  EmitUnwait(thread, wake_up);
  thread.phase = Phase::kReady;
  thread.since_ns = wake_up.time_ns;
  thread.flags = 0;
}

// The wake-up that came before the switch-out was the one that ended the wait:
// nothing else did before the thread ran again.
void Timeline::ConfirmEarly(LiveThread& thread) {
  WakeUp wake_up = *std::exchange(thread.early, std::nullopt);
  wake_up.time_ns = thread.since_ns;
  EndWait(thread, wake_up);
}

void Timeline::EndPause(LiveThread& thread, int64_t time_ns, uint8_t flags) {
  if (thread.phase == Phase::kWaiting && thread.early) ConfirmEarly(thread);
  if (thread.phase == Phase::kWaiting) {
    const uint8_t lost = has_wakers_ ? kWakerLost : kWakerUnknown;
    EmitTile(thread, EventKind::kWait, time_ns, {}, thread.flags | lost | flags);
  } else if (thread.phase == Phase::kReady && time_ns > thread.since_ns) {
    EmitTile(thread, EventKind::kReady, time_ns, thread.holder, thread.flags | flags);
  }
  thread.since_ns = time_ns;
}

void Timeline::StartRunning(LiveThread& thread, uint16_t cpu, int64_t time_ns, uint8_t flags) {
  thread.active = true;
  thread.phase = Phase::kRunning;
  thread.cpu = cpu;
  thread.flags = flags;
  thread.since_ns = time_ns;
  thread.evidence_ns = time_ns;
  thread.sample.reset();
  if (Cpu* c = CpuOf(cpu)) {
    CULPRIT_CHECK(time_ns >= c->free_ns);
    *c = {.tid = thread.tid, .free_ns = time_ns};
  }
}

// It lost the CPU and nobody saw how; that it waits is the guess that a later
// waking or switch-in will correct.
void Timeline::InferSwitchOut(LiveThread& thread, int64_t time_ns) {
  sink_.Count(Oddity::kInferredSwitch);
  thread.flags |= kInferred;
  EndRunning(thread, time_ns);
  Vacate(thread.cpu, time_ns);
  thread.phase = Phase::kWaiting;
  thread.flags = kInferred;
  thread.stack = {};
}

void Timeline::InferSwitchIn(LiveThread& thread, uint16_t cpu, int64_t time_ns) {
  LiveThread* occupant = Occupant(cpu);
  if (occupant == &thread) occupant = nullptr;
  int64_t earliest_ns = sink_.begin_ns();
  if (const Cpu* c = CpuOf(cpu)) earliest_ns = std::max(earliest_ns, c->free_ns);
  if (occupant != nullptr) earliest_ns = std::max(earliest_ns, occupant->evidence_ns);
  if (thread.phase == Phase::kWaiting && thread.early) ConfirmEarly(thread);
  int64_t in_ns = time_ns;
  if (thread.phase == Phase::kReady) in_ns = std::max(thread.since_ns, earliest_ns);
  if (thread.phase == Phase::kRunning) in_ns = std::max(thread.evidence_ns, earliest_ns);
  in_ns = std::min(in_ns, time_ns);
  if (occupant != nullptr) InferSwitchOut(*occupant, in_ns);
  if (thread.phase == Phase::kRunning) {
    EndRunning(thread, in_ns);
    Vacate(thread.cpu, in_ns);
  } else {
    EndPause(thread, in_ns, kInferred);
  }
  // The first sight of a thread is no hole: it ran before the recording began.
  const bool hole = thread.phase != Phase::kUnseen;
  if (hole) sink_.Count(Oddity::kInferredSwitch);
  StartRunning(thread, cpu, in_ns, hole ? kInferred : 0);
}

void Timeline::Touch(LiveThread& thread, uint16_t cpu, int64_t time_ns) {
  const bool here = cpu == kNoCpu || thread.cpu == cpu;
  if (thread.phase != Phase::kRunning || !here) InferSwitchIn(thread, cpu, time_ns);
  thread.evidence_ns = time_ns;
}

void Timeline::SwitchIn(LiveThread& thread, uint16_t cpu, int64_t time_ns) {
  if (thread.phase == Phase::kRunning) {
    if (cpu == kNoCpu || thread.cpu == cpu) return;
    // It left its other CPU unseen; an early waking says when at the latest.
    const int64_t out_ns =
        thread.early ? std::max(thread.evidence_ns, thread.early->time_ns) : time_ns;
    InferSwitchOut(thread, out_ns);
  }
  EndPause(thread, time_ns, 0);
  StartRunning(thread, cpu, time_ns, 0);
}

void Timeline::SwitchOut(LiveThread& thread, const SwitchFact& fact) {
  EndRunning(thread, fact.time_ns);
  Vacate(thread.cpu, fact.time_ns);
  thread.stack = fact.prev_stack;
  thread.phase = fact.prev_runnable ? Phase::kReady : Phase::kWaiting;
  if (!fact.prev_runnable) return;
  thread.flags = kPreempted;
  // What woke it before this did not end a wait.
  if (thread.early) {
    sink_.Count(Oddity::kNeedlessWaking);
    EmitUnwait(thread, *thread.early);
    thread.early.reset();
  }
}

void Timeline::Switch(const SwitchFact& fact) {
  if (fact.prev_tid == fact.next_tid && fact.prev_tid != kNoTid) {
    if (fact.prev_tid > 0) Touch(threads_.Get(fact.prev_tid), fact.cpu, fact.time_ns);
    return;
  }
  LiveThread* prev = nullptr;
  LiveThread* occupant = Occupant(fact.cpu);
  if (fact.prev_tid > 0) {
    prev = &threads_.Get(fact.prev_tid);
    Touch(*prev, fact.cpu, fact.time_ns);
  } else if (occupant != nullptr && occupant->tid != fact.next_tid) {
    // Whoever was there is gone, be it unseen (the idle task follows itself) or
    // because the tracer names only who comes.
    InferSwitchOut(*occupant, fact.time_ns);
  }
  if (prev != nullptr) {
    SwitchOut(*prev, fact);
    prev->exiting = prev->exiting || fact.prev_exiting;
  }
  if (fact.next_tid > 0) {
    LiveThread& next = threads_.Get(fact.next_tid);
    SwitchIn(next, fact.cpu, fact.time_ns);
    if (prev != nullptr && fact.prev_runnable) prev->holder = next.id;
  } else if (Cpu* c = CpuOf(fact.cpu); c != nullptr && fact.next_tid == 0) {
    *c = {.tid = 0, .free_ns = std::max(c->free_ns, fact.time_ns)};
  }
}

void Timeline::Waking(const WakingFact& fact, const WakeUp& wake_up, bool tiles) {
  has_wakers_ = true;
  if (tiles && fact.waker_tid > 0) Touch(threads_.Get(fact.waker_tid), fact.cpu, fact.time_ns);
  LiveThread& wakee = threads_.Get(fact.wakee_tid);
  wakee.active = true;
  switch (wakee.phase) {
    case Phase::kUnseen:
      EmitUnwait(wakee, wake_up);
      wakee.phase = Phase::kReady;
      wakee.since_ns = wake_up.time_ns;
      break;
    case Phase::kWaiting:
      if (wakee.early) {
        sink_.Count(Oddity::kNeedlessWaking);
        EmitUnwait(wakee, *wakee.early);
        wakee.early.reset();
      }
      EndWait(wakee, wake_up);
      break;
    case Phase::kRunning:
      if (wakee.early) {
        sink_.Count(Oddity::kNeedlessWaking);
        EmitUnwait(wakee, *wakee.early);
      }
      wakee.early = wake_up;
      return;
    case Phase::kReady:
      if (tiles) sink_.Count(Oddity::kNeedlessWaking);
      EmitUnwait(wakee, wake_up);
      return;
  }
  wakee.holder = Holder(fact.target_cpu != kNoCpu ? fact.target_cpu : wakee.cpu, wakee.tid);
}

void Timeline::Sample(LiveThread& thread, const SampleFact& fact) {
  // Woken before the first switch was seen, but sampled even earlier (the sample
  // was held back): it ran, and the waking ended no wait.
  if (thread.phase == Phase::kReady && thread.since_ns > fact.time_ns) {
    thread.phase = Phase::kUnseen;
  }
  Touch(thread, fact.cpu, fact.time_ns);
  if (thread.sample) {
    thread.stack = *thread.sample;
    EmitTile(thread, EventKind::kRunning, thread.sample_ns, {}, thread.flags);
    thread.since_ns = thread.sample_ns;
  }
  thread.sample = fact.stack;
  thread.sample_ns = fact.time_ns;
}

void Timeline::Leave(const LiveThread& thread, int64_t time_ns) {
  if (thread.phase == Phase::kRunning) Vacate(thread.cpu, time_ns);
}

void Timeline::Close(LiveThread& thread, int64_t time_ns) {
  if (thread.exiting && thread.phase != Phase::kRunning) {
    time_ns = std::min(time_ns, std::max(thread.exit_ns, thread.since_ns));
  }
  if (thread.early && thread.phase != Phase::kReady) EmitUnwait(thread, *thread.early);
  thread.early.reset();
  switch (thread.phase) {
    case Phase::kRunning:
      EndRunning(thread, time_ns);
      break;
    case Phase::kWaiting:
      EmitTile(thread, EventKind::kWait, time_ns, {}, thread.flags | kWakerUnknown);
      break;
    case Phase::kReady:
      if (time_ns > thread.since_ns) {
        EmitTile(thread, EventKind::kReady, time_ns, thread.holder, thread.flags);
      }
      break;
    case Phase::kUnseen:
      break;
  }
  thread.since_ns = time_ns;
}

}  // namespace culprit::assemble
