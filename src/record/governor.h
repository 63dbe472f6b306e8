// SPDX-License-Identifier: Apache-2.0
//
// Governor: keeps what a recording costs within its budget. It is told at every
// turn what the recorder used up (CPU time of its kernel programs and of its own
// process) and what the recorded threads used, and answers with a level: 0
// records everything; each next level leaves out more, in the order in which it
// is least missed; the last ones look at switches only part of the time, or not at
// all. Leaving out is accounted for elsewhere (bpf/records.h, bpf/pauses.h), so no
// level loses time.
//
// Cost is set against the CPU time of the recorded threads, but at least against
// kFloorShare of one CPU: a program that sleeps must not make the recorder
// blind. It rises as soon as a turn is too dear, falls only after several turns
// far below the budget, and waits ever longer before it tries again a level that
// was too dear. It aims at four fifths of the budget, so that the whole of a
// recording stays within it. Pure: no clocks, no I/O.
#pragma once

#include <cstdint>
#include <string>

#include "record/bpf/records.h"

namespace culprit::record {

struct Cost {
  int64_t wall_ns = 0;
  int64_t kernel_ns = 0;  // of the kernel programs
  int64_t own_ns = 0;     // of the recorder's process
  int64_t busy_ns = 0;    // of the recorded threads

  Cost operator-(const Cost& other) const {
    return {wall_ns - other.wall_ns, kernel_ns - other.kernel_ns, own_ns - other.own_ns,
            busy_ns - other.busy_ns};
  }
};

// What one level records.
struct Level {
  int64_t min_wait_ns = 0;
  bool waker_stacks = true;
  bool syscall_stacks = true;
  int64_t min_syscall_ns = 0;
  int64_t sample_period_ns = 0;
  double duty = 1;  // the part of the time in which switches are looked at
};

class Governor {
 public:
  static constexpr double kFloorShare = 0.5;
  static constexpr int kLevels = 11;

  // budget: 0.03 is three hundredths; 0: no bound. The user's own threshold and
  // period are the least that any level leaves out.
  Governor(double budget, int64_t min_wait_ns, int64_t sample_period_ns);

  // The share of a turn.
  static double Share(const Cost& cost);
  // True if the level changed; `ring_full` is whether records were lost.
  bool Turn(const Cost& turn, bool ring_full);

  int level() const { return level_; }
  int highest_level() const { return highest_; }
  Level current() const { return At(level_); }
  Level At(int level) const;
  // "level 3: waits from 200.0 us, samples every 1.0 ms".
  std::string Describe() const;

 private:
  double budget_;  // what may be spent
  int64_t min_wait_ns_;
  int64_t sample_period_ns_;
  int level_ = 0;
  int highest_ = 0;
  int64_t cheap_ns_ = 0;
  int64_t patience_ns_;
};

}  // namespace culprit::record
