// SPDX-License-Identifier: Apache-2.0
//
// PerfettoSchedule: from the tiles of threads back to the switches of CPUs.
// Threads add their on-CPU spans one after the other; Write() sorts them by
// CPU and time and writes a sched_switch for each change of the thread on a
// CPU, the idle task filling the gaps. What a thread did next gives prev_state:
// S for a wait, R for being ready, X for its end. 32 bytes a span.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "export/perfetto_packets.h"
#include "trace/event.h"

namespace culprit::export_ {

// prev_state of sched_switch, the same bits in every kernel.
enum class SwitchState : uint8_t { kRunnable = 0, kSleeping = 1, kDead = 16 };

class PerfettoSchedule {
 public:
  // A thread as the kernel names it.
  struct Task {
    int32_t tid = 0;
    std::string name = "swapper";
  };

  struct Span {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    trace::ThreadId thread;
    uint16_t cpu = 0;
    SwitchState state = SwitchState::kRunnable;
  };

  void Add(const Span& span) { spans_.push_back(span); }
  Status Write(const std::function<Task(trace::ThreadId)>& task_of, FtraceBundles& ftrace);

 private:
  std::vector<Span> spans_;
};

}  // namespace culprit::export_
