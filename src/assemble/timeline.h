// SPDX-License-Identifier: Apache-2.0
//
// Timeline: what every thread and every CPU does, as tiles. Invariants, for any
// facts whatsoever: the tiles of a thread abut, from its first evidence on; the
// running tiles of a CPU do not overlap. All facts come with times that never
// go back.
//
// A thread that must be running but is not believed to be switched in unseen:
// if it was ready, at the later of its waking and the moment its CPU became
// free or its occupant was last seen; otherwise now. The occupant it displaces
// is taken to wait from that moment on.
#pragma once

#include <cstdint>
#include <vector>

#include "assemble/assembler.h"
#include "assemble/event_sink.h"
#include "assemble/thread_table.h"

namespace culprit::assemble {

class Timeline {
 public:
  Timeline(EventSink& sink, ThreadTable& threads) : sink_(sink), threads_(threads) {}

  void Switch(const SwitchFact& fact);
  // `tiles` is false while it is not known whether the trace has switches.
  void Waking(const WakingFact& fact, const WakeUp& wake_up, bool tiles);
  void Sample(LiveThread& thread, const SampleFact& fact);
  // The thread is running on `cpu` now: true of whoever makes a system call,
  // wakes another, is sampled.
  void Touch(LiveThread& thread, uint16_t cpu, int64_t time_ns);
  // Writes the open tile up to `time_ns`, or to the thread's exit.
  void Close(LiveThread& thread, int64_t time_ns);
  // A thread that ended leaves its CPU.
  void Leave(const LiveThread& thread, int64_t time_ns);

  uint32_t cpus() const { return static_cast<uint32_t>(cpus_.size()); }
  void SeenCpu(uint16_t cpu);
  bool has_wakers() const { return has_wakers_; }

 private:
  struct Cpu {
    int64_t tid = kNoTid;         // who runs; 0: idle; kNoTid: not known
    int64_t free_ns = INT64_MIN;  // no running tile may begin before
  };

  Cpu* CpuOf(uint16_t cpu);
  LiveThread* Occupant(uint16_t cpu);
  trace::ThreadId Holder(uint16_t cpu, int64_t except_tid);
  void Vacate(uint16_t cpu, int64_t time_ns);
  void SwitchOut(LiveThread& thread, const SwitchFact& fact);
  void SwitchIn(LiveThread& thread, uint16_t cpu, int64_t time_ns);
  void InferSwitchIn(LiveThread& thread, uint16_t cpu, int64_t time_ns);
  void InferSwitchOut(LiveThread& thread, int64_t time_ns);
  void StartRunning(LiveThread& thread, uint16_t cpu, int64_t time_ns, uint8_t flags);
  // Ends a wait or ready at `time_ns`, whether or not its wake-up was seen.
  void EndPause(LiveThread& thread, int64_t time_ns, uint8_t flags);
  void EndWait(LiveThread& thread, const WakeUp& wake_up);
  void ConfirmEarly(LiveThread& thread);
  void EndRunning(LiveThread& thread, int64_t time_ns);
  void EmitTile(const LiveThread& thread, trace::EventKind kind, int64_t end_ns,
                trace::ThreadId peer, uint8_t flags);
  void EmitUnwait(const LiveThread& wakee, const WakeUp& wake_up);

  EventSink& sink_;
  ThreadTable& threads_;
  std::vector<Cpu> cpus_;
  bool has_wakers_ = false;
};

}  // namespace culprit::assemble
