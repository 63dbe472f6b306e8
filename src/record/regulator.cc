// SPDX-License-Identifier: Apache-2.0
#include "record/regulator.h"

#include <algorithm>
#include <utility>

#include "record/machine.h"

namespace culprit::record {

Regulator::Regulator(RegulatorOptions options)
    : own_cpu_ns_(options.own_cpu_ns ? std::move(options.own_cpu_ns)
                                     : [] { return ThreadCpuNs(); }),
      syscall_stacks_(options.syscall_stacks),
      has_budget_(options.budget > 0),
      governor_(options.budget, options.min_wait_ns, options.sample_period_ns) {}

Cost Regulator::CostNow(BpfRecording& recording) const {
  BpfEngine& engine = recording.engine();
  return {.wall_ns = MonotonicNs(),
          .kernel_ns = static_cast<int64_t>(engine.KernelTimeNs()),
          .own_ns = own_cpu_ns_(),
          .busy_ns = static_cast<int64_t>(engine.ReadCounters().total.busy_ns)};
}

Cost Regulator::Total(BpfRecording& recording) const {
  Cost now = CostNow(recording);
  now.own_ns = OwnCpuNs();
  return now - first_cost_;
}

Status Regulator::Prepare(BpfRecording& recording) { return Apply(recording); }

void Regulator::Begin(BpfRecording& recording) {
  first_cost_ = last_cost_ = CostNow(recording);
  first_cost_.own_ns = OwnCpuNs();
  turn_begin_ns_ = cycle_begin_ns_ = first_cost_.wall_ns;
}

Status Regulator::Apply(BpfRecording& recording) {
  const Level level = governor_.current();
  Policy policy = recording.engine().policy();
  policy.min_wait_ns = static_cast<uint64_t>(level.min_wait_ns);
  policy.min_syscall_ns = static_cast<uint64_t>(level.min_syscall_ns);
  policy.waker_stacks = level.waker_stacks ? 1 : 0;
  policy.syscall_stacks = syscall_stacks_ && level.syscall_stacks ? 1 : 0;
  CULPRIT_TRY(recording.engine().SetPolicy(policy));
  if (level.sample_period_ns == 0) return {};
  return recording.engine().SetSamplePeriod(level.sample_period_ns);
}

int64_t Regulator::OnNs() const {
  return static_cast<int64_t>(governor_.current().duty * static_cast<double>(kCycleNs));
}

Status Regulator::KeepCycle(BpfRecording& recording, int64_t now_ns) {
  const bool pause = (now_ns - cycle_begin_ns_) % kCycleNs >= OnNs();
  if (pause && !paused_) {
    CULPRIT_TRY(recording.Pause());
  } else if (!pause && paused_) {
    CULPRIT_TRY(recording.Resume());
  }
  paused_ = pause;
  return {};
}

// A turn of a level with pauses is a whole cycle: any other would be dear or
// cheap by chance.
int64_t Regulator::TurnNs() const {
  if (!has_budget_) return kFreeTurnNs;
  if (governor_.current().duty < 1) return kCycleNs;
  return turns_ < kFirstTurns ? kFirstTurnNs : kTurnNs;
}

Result<bool> Regulator::Turn(BpfRecording& recording) {
  const int64_t now_ns = MonotonicNs();
  bool changed = false;
  if (now_ns - turn_begin_ns_ >= TurnNs()) {
    ++turns_;
    // What threads used in it is known only then.
    if (paused_) CULPRIT_TRY(recording.engine().TellPause());
    const Cost now = CostNow(recording);
    const uint64_t lost = recording.engine().ReadCounters().total.lost_records;
    last_turn_ = now - last_cost_;
    changed = governor_.Turn(last_turn_, lost != last_lost_);
    last_cost_ = now;
    last_lost_ = lost;
    turn_begin_ns_ = now_ns;
    if (changed) {
      cycle_begin_ns_ = now_ns;
      CULPRIT_TRY(Apply(recording));
    }
  }
  CULPRIT_TRY(KeepCycle(recording, now_ns));
  return changed;
}

int64_t Regulator::SleepNs() const {
  const int64_t now_ns = MonotonicNs();
  const int64_t phase_ns = (now_ns - cycle_begin_ns_) % kCycleNs;
  const int64_t on_ns = OnNs();
  const int64_t left_ns = phase_ns < on_ns ? on_ns - phase_ns : kCycleNs - phase_ns;
  return std::clamp<int64_t>(turn_begin_ns_ + TurnNs() - now_ns, 0, left_ns);
}

}  // namespace culprit::record
