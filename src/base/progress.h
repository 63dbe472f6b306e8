// SPDX-License-Identifier: Apache-2.0
//
// Progress: how far a long operation is. Work reports steps through Advance(),
// from any thread; a listener, set by the command, is told at most ten times a
// second with the rate and the time left. Without a listener it costs one
// atomic add. The library never prints: cli/ owns the terminal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace culprit {

class Progress {
 public:
  struct Report {
    std::string what;  // "simulating"
    std::string unit;  // "traces"
    uint64_t done = 0;
    uint64_t total = 0;  // 0: unknown
    double per_second = 0;
    std::optional<double> seconds_left;
    bool finished = false;
  };
  using Listener = std::function<void(const Report&)>;

  Progress() = default;
  explicit Progress(Listener listener) : listener_(std::move(listener)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Start(std::string what, std::string unit, uint64_t total);
  void Advance(uint64_t steps = 1);
  void Finish();
  uint64_t done() const { return done_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  Report MakeReport(bool finished) const;

  Listener listener_;
  std::mutex mutex_;
  std::string what_;
  std::string unit_;
  uint64_t total_ = 0;
  std::atomic<uint64_t> done_{0};
  Clock::time_point start_;
  std::atomic<Clock::rep> next_report_{0};
};

}  // namespace culprit
