// SPDX-License-Identifier: Apache-2.0
//
// OwnCost: which share of guarded programs' CPU time is the guards' own: their code and the
// system calls that it makes, by samples of all CPUs. What the program itself pays for finding its
// caches used is not in it. Sampling goes on for a while from the moment that all processes
// have their guards, and is there a tenth of the time from then on. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "guard/collector.h"
#include "record/cpu_samples.h"

namespace culprit::cli {

struct OwnCostShare {
  uint64_t samples = 0;  // of the programs
  uint64_t own = 0;      // of these
  std::string why_not;   // not empty: this machine cannot be sampled

  double Share() const;
  // The share is that much more or less, in 19 of 20 cases.
  double Error() const;
};

class OwnCost {
 public:
  // Of the processes of the collector, which have this plan.
  explicit OwnCost(uint32_t plan);

  // Now and then, several times a second.
  void Turn(const guard::Collector& collector, uint64_t now_ns);
  const OwnCostShare& share() const { return share_; }

 private:
  uint32_t plan_;
  std::optional<record::CpuSamples> samples_;
  OwnCostShare share_;
  uint64_t begin_ns_ = 0;  // 0: not all have the plan yet
  uint64_t turned_ns_ = 0;
};

}  // namespace culprit::cli
