// SPDX-License-Identifier: Apache-2.0
//
// CtfInterrupts: in what context a CPU is, from the entry and exit events of
// interrupt handlers, softirqs and timers: the first trap of scheduler traces,
// a wake-up that an interrupt did on a bystander's back. A network softirq that
// the running thread raised itself (loopback sends do) counts as the thread.
// Only a trace that records all three kinds of interrupt can say that a wake-up
// came from none; else the answer is kUnknown. A switch ends all of them: lost
// exits do no lasting harm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assemble/assembler.h"
#include "import/ctf_event_table.h"

namespace culprit::import_ {

class CtfInterrupts {
 public:
  explicit CtfInterrupts(bool all_are_recorded) : all_are_recorded_(all_are_recorded) {}

  // An event of one of the kinds kIrqEntry to kTimerExit.
  void Event(uint16_t cpu, CtfEventKind kind, std::string_view name, int64_t vector);
  void Switch(uint16_t cpu);

  struct Verdict {
    assemble::WakeContext context = assemble::WakeContext::kUnknown;
    std::string_view device = {};
  };
  // `thread_name`: of who runs on this CPU.
  Verdict Judge(uint16_t cpu, std::string_view thread_name) const;

 private:
  struct Cpu {
    uint32_t handlers = 0;  // open, nested
    std::string handler;    // the innermost's name
    int64_t softirq = -1;
    bool own_softirq = false;
    bool timer = false;
    uint32_t raised_by_thread = 0;  // softirqs, a bit each
  };

  bool all_are_recorded_;
  std::vector<Cpu> cpus_;
};

}  // namespace culprit::import_
