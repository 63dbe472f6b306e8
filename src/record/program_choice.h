// SPDX-License-Identifier: Apache-2.0
//
// Which of the kernel programs that do the same thing in different ways are loaded.
// Some ways are cheaper, but not every kernel permits them, and whether it does is known
// only when it is tried: so there is a list, the best choice first, and the last one is
// what every supported kernel takes.
#pragma once

#include <vector>

namespace culprit::record {

// Which program sees writes to trace_marker.
enum class MarkProgram { kNone, kFunction, kSystemCall };

struct ProgramChoice {
  MarkProgram marks = MarkProgram::kNone;
  // The kernel's stacks are read by loads (bpf/remembered_kernel.h), not by calls.
  bool direct_reads = false;
  // A thread's user stack is taken when it has got a CPU again, not when it loses it.
  bool resumes = false;
};

// What is made use of if the running kernel has it.
struct ProgramWishes {
  bool marks = false;
  bool direct_reads = true;  // Linux 6.2
  bool resumes = true;       // the tracepoint sched_exit_tp
};

std::vector<ProgramChoice> ProgramChoices(const ProgramWishes& wishes);

}  // namespace culprit::record
