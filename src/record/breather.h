// SPDX-License-Identifier: Apache-2.0
//
// Breather: long work in short pieces. What the recorder does at once is added to the answers
// of a server whose CPU it takes, the more so while it runs before all others (haste.h). After
// a quarter of a millisecond it sleeps for twice as long, unless the work has become urgent.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace culprit::record {

class Breather {
 public:
  static constexpr int64_t kWorkNs = 250'000;
  static constexpr int64_t kSleepNs = 2 * kWorkNs;

  // Asked before each sleep.
  explicit Breather(std::function<bool()> is_urgent) : is_urgent_(std::move(is_urgent)) {}

  // The work begins, after a sleep of some other reason.
  void Begin();
  // A small part of it, below some microseconds, was done.
  void Step() {
    if (++steps_ % kStepsToLook == 0) Look();
  }

 private:
  static constexpr uint32_t kStepsToLook = 16;
  void Look();

  std::function<bool()> is_urgent_;
  int64_t begin_ns_ = 0;
  uint32_t steps_ = 0;
};

}  // namespace culprit::record
