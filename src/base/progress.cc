// SPDX-License-Identifier: Apache-2.0
#include "base/progress.h"

namespace culprit {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);

}  // namespace

void Progress::Start(std::string what, std::string unit, uint64_t total) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  unit_ = std::move(unit);
  total_ = total;
  done_ = 0;
  start_ = Clock::now();
  next_report_ = (start_ + kInterval).time_since_epoch().count();
}

void Progress::Advance(uint64_t steps) {
  done_.fetch_add(steps, std::memory_order_relaxed);
  if (!listener_) return;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  Clock::rep due = next_report_.load(std::memory_order_relaxed);
  if (now < due) return;
  const Clock::rep next = now + std::chrono::duration_cast<Clock::duration>(kInterval).count();
  // Only the thread that moves the deadline reports.
  if (!next_report_.compare_exchange_strong(due, next)) return;
  const std::lock_guard lock(mutex_);
  listener_(MakeReport(false));
}

void Progress::Finish() {
  if (!listener_) return;
  const std::lock_guard lock(mutex_);
  listener_(MakeReport(true));
}

Progress::Report Progress::MakeReport(bool finished) const {
  Report report{
      .what = what_, .unit = unit_, .done = done(), .total = total_, .finished = finished};
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (seconds > 0) report.per_second = static_cast<double>(report.done) / seconds;
  if (report.total > report.done && report.per_second > 0) {
    report.seconds_left = static_cast<double>(report.total - report.done) / report.per_second;
  }
  return report;
}

}  // namespace culprit
