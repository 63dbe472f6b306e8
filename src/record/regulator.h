// SPDX-License-Identifier: Apache-2.0
//
// Regulator: the governor at work on a recording by the kernel programs. It
// measures what the recording costs, asks the governor at every turn, hands what
// it decides to the engine, and keeps the pauses of levels that look only part of
// the time: kCycleNs are one time on, one time off. Called from the recording's
// own loop, at least when SleepNs() is over. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "record/bpf_recording.h"
#include "record/governor.h"

namespace culprit::record {

struct RegulatorOptions {
  double budget = 0.03;
  int64_t min_wait_ns = 0;
  int64_t sample_period_ns = 1'000'000;
  bool syscall_stacks = true;
  // CPU time of the recorder that leaving out can save; nothing: that of the
  // calling thread.
  std::function<int64_t()> own_cpu_ns = {};
};

class Regulator {
 public:
  static constexpr int64_t kTurnNs = 50'000'000;
  // At first, when it is not known yet what the load costs.
  static constexpr int64_t kFirstTurnNs = 20'000'000;
  static constexpr int kFirstTurns = 10;
  // Without a budget, where nothing is decided.
  static constexpr int64_t kFreeTurnNs = 1'000'000'000;
  static constexpr int64_t kCycleNs = 400'000'000;

  explicit Regulator(RegulatorOptions options);

  // Before the recording begins.
  Status Prepare(BpfRecording& recording);
  // The recording has begun.
  void Begin(BpfRecording& recording);
  // True if the level changed.
  Result<bool> Turn(BpfRecording& recording);
  // How long nothing is to be done, at most.
  int64_t SleepNs() const;

  // Since Begin(), with the CPU time of the whole process.
  Cost Total(BpfRecording& recording) const;
  // Of the last turn that is over.
  const Cost& last_turn() const { return last_turn_; }
  const Governor& governor() const { return governor_; }

 private:
  Cost CostNow(BpfRecording& recording) const;
  Status Apply(BpfRecording& recording);
  Status KeepCycle(BpfRecording& recording, int64_t now_ns);
  int64_t OnNs() const;
  int64_t TurnNs() const;

  std::function<int64_t()> own_cpu_ns_;
  bool syscall_stacks_;
  bool has_budget_;
  Governor governor_;
  Cost first_cost_;  // own_ns is of the whole process
  Cost last_cost_;
  Cost last_turn_;
  uint64_t last_lost_ = 0;
  int64_t turn_begin_ns_ = 0;
  int turns_ = 0;
  int64_t cycle_begin_ns_ = 0;
  bool paused_ = false;
};

}  // namespace culprit::record
