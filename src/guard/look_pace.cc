// SPDX-License-Identifier: Apache-2.0
#include "guard/look_pace.h"

#include <algorithm>

namespace culprit::guard {
namespace {

constexpr double kLeastCpus = 0.5;
constexpr double kMillion = 1e6;
constexpr double kMostSaved = LookPace::kMostSavedNs;
constexpr double kMostOwed = LookPace::kMostOwedNs;
constexpr double kUsual = LookPace::kUsualNs;
constexpr double kOwedForTwice = 1e6;  // makes a pause twice as long as the usual one

double Since(uint64_t now, uint64_t before) {
  return now > before ? static_cast<double>(now - before) : 0;
}

}  // namespace

uint64_t LookPace::Next(uint64_t now_ns, uint64_t own_cpu_ns, uint64_t other_cpu_ns,
                        double program_cpus) {
  const double own = Since(own_cpu_ns, last_own_ns_);
  const double looking = std::max(own - Since(other_cpu_ns, last_other_ns_), 0.0);
  const double wall = Since(now_ns, last_ns_);
  last_ns_ = now_ns;
  last_own_ns_ = own_cpu_ns;
  last_other_ns_ = other_cpu_ns;
  if (!began_) {
    began_ = true;
    return kUsualNs;
  }
  const double cpus = std::max(program_cpus, kLeastCpus);
  base_ns_ += wall * cpus;
  spent_ns_ += own;
  if (budget_ppm_ == 0) return kShortestNs;
  const double earned_a_ns = cpus * static_cast<double>(budget_ppm_) / kMillion;
  saved_ns_ = std::clamp(saved_ns_ + wall * earned_a_ns - looking, -kMostOwed, kMostSaved);
  if (saved_ns_ > kMostSaved / 2) return kShortestNs;
  const double owed = std::max(-saved_ns_, 0.0);
  const double at_once = std::max(owed - kMostOwed / 2, 0.0);
  const double pause_ns = kUsual * (1 + owed / kOwedForTwice) + at_once / earned_a_ns;
  return static_cast<uint64_t>(std::min(pause_ns, static_cast<double>(kLongestNs)));
}

uint64_t LookPace::spent_ppm() const {
  return base_ns_ <= 0 ? 0 : static_cast<uint64_t>(spent_ns_ / base_ns_ * kMillion);
}

}  // namespace culprit::guard
