// SPDX-License-Identifier: Apache-2.0
#include "cli/own_cost.h"

#include <cmath>
#include <utility>

#include "base/text.h"

namespace culprit::cli {
namespace {

constexpr uint64_t kSamplesASecond = 97;  // of a CPU; beside every usual clock
constexpr uint64_t kTurnNs = kNsPerSecond / 10;
// All the time at first, then for a part of each cycle.
constexpr uint64_t kAtFirstNs = 20 * kNsPerSecond;
constexpr uint64_t kCycleNs = 10 * kNsPerSecond;
constexpr uint64_t kOnNs = kNsPerSecond;

}  // namespace

double OwnCostShare::Share() const {
  return samples == 0 ? 0 : static_cast<double>(own) / static_cast<double>(samples);
}

double OwnCostShare::Error() const {
  if (samples == 0) return 1;
  return 2 * std::sqrt(static_cast<double>(own + 1)) / static_cast<double>(samples);
}

OwnCost::OwnCost(uint32_t plan) : plan_(plan) {
  Result<record::CpuSamples> samples = record::CpuSamples::Open(kSamplesASecond);
  if (samples.ok()) {
    samples_.emplace(std::move(samples).value());
  } else {
    const Error& error = samples.error();
    share_.why_not = error.ToString() + (error.hint.empty() ? "" : " (" + error.hint + ")");
  }
}

void OwnCost::Turn(const guard::Collector& collector, uint64_t now_ns) {
  if (!samples_ || now_ns - turned_ns_ < kTurnNs) return;
  turned_ns_ = now_ns;
  if (begin_ns_ == 0) {
    if (!collector.AllHavePlan(plan_)) return;
    begin_ns_ = now_ns;
  }
  samples_->Take([&](int64_t pid, uint64_t program_counter) {
    const std::optional<bool> own = collector.IsOwnCode(pid, program_counter);
    if (!own) return;
    ++share_.samples;
    if (*own) ++share_.own;
  });
  const uint64_t past_ns = now_ns - begin_ns_;
  samples_->Sample(past_ns < kAtFirstNs || past_ns % kCycleNs < kOnNs);
}

}  // namespace culprit::cli
