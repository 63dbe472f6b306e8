// SPDX-License-Identifier: Apache-2.0
//
// LookPace: how long to sleep between two rounds of looks at guarded programs, so
// that looking stays within a share of the CPU time that they take (of half a CPU
// where they take less: who mostly waits is looked at all the same). What quiet
// rounds leave over is saved, up to kMostSavedNs, for the time when units are slow
// and rounds dear; of more than half of that, which there is at the begin, rounds come more
// often, so that shorter units are looked at. Who owes pays bit by bit, by pauses that are
// somewhat longer: a slow unit is mostly followed by others, which nobody would see in a long
// pause. Only what is owed beyond half of kMostOwedNs is paid at once, by a pause of kLongestNs
// at most. Of a dear moment no more than kMostOwedNs is held against the time after it. What it
// takes to name what was seen, and to take in processes that come and go, is not held
// against rounds: the next slow unit must not be missed for it. Pure arithmetic.
#pragma once

#include <cstdint>

namespace culprit::guard {

class LookPace {
 public:
  static constexpr uint64_t kShortestNs = 3'000'000;
  static constexpr uint64_t kUsualNs = 5'000'000;
  static constexpr uint64_t kLongestNs = 100'000'000;
  static constexpr uint64_t kMostSavedNs = 20'000'000;
  static constexpr uint64_t kMostOwedNs = 5'000'000;

  // ppm of CPU time; 0: no bound, every sleep is the shortest.
  explicit LookPace(uint64_t budget_ppm) : budget_ppm_(budget_ppm) {}

  // After each round: a clock, the CPU time of the looking thread and what of that was not for
  // looks, all since whenever, and how many CPUs the programs use. Returns how long to
  // sleep.
  uint64_t Next(uint64_t now_ns, uint64_t own_cpu_ns, uint64_t other_cpu_ns, double program_cpus);

  // What was taken since the first round, in ppm of what the budget is about.
  uint64_t spent_ppm() const;

 private:
  uint64_t budget_ppm_;
  bool began_ = false;
  uint64_t last_ns_ = 0;
  uint64_t last_own_ns_ = 0;
  uint64_t last_other_ns_ = 0;
  double saved_ns_ = kMostSavedNs / 2;
  double base_ns_ = 0;  // CPU time that the share is of
  double spent_ns_ = 0;
};

}  // namespace culprit::guard
