// SPDX-License-Identifier: Apache-2.0
//
// Breather: long work in short pieces. What the recorder does at once is added to the answers
// of a server whose CPU it takes, the more so while it runs before all others (haste.h). After
// a tenth of a millisecond it sleeps for twice as long, unless the work has become urgent.
// Each piece begins with cold caches, though, and where CPUs are never free nobody is served
// by that: when sleeps end late, because others have the CPUs, it works without for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace culprit::record {

// Of this machine, unless a test has its own.
struct BreatherClock {
  std::function<int64_t()> now_ns;
  std::function<void(int64_t)> sleep_ns;
};
BreatherClock RealClock();

class Breather {
 public:
  static constexpr int64_t kWorkNs = 100'000;
  static constexpr int64_t kSleepNs = 2 * kWorkNs;
  // So late are half of the last sleeps where CPUs are never free; else a tenth of them, and
  // most by what a timer takes, some 60 µs.
  static constexpr int64_t kLateNs = 200'000;
  static constexpr int64_t kCrowdedNs = 4'000'000'000;
  static constexpr uint32_t kStepsToLook = 8;

  // Asked before each sleep.
  explicit Breather(std::function<bool()> is_urgent, BreatherClock clock = RealClock())
      : is_urgent_(std::move(is_urgent)), clock_(std::move(clock)) {}

  // The work begins, after a sleep of some other reason.
  void Begin() { begin_ns_ = clock_.now_ns(); }
  // A small part of it, below some microseconds, was done.
  void Step() {
    if (++steps_ % kStepsToLook == 0) Look();
  }

 private:
  void Look();
  void NoteLate(int64_t now_ns, int64_t late_ns);

  std::function<bool()> is_urgent_;
  BreatherClock clock_;
  int64_t begin_ns_ = 0;
  int64_t crowded_until_ns_ = INT64_MIN;
  uint32_t steps_ = 0;
  uint16_t late_ = 0;  // the last sixteen sleeps, a bit each
};

}  // namespace culprit::record
