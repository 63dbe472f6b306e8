// SPDX-License-Identifier: Apache-2.0
//
// Haste: the priority of a recorder's thread. What it does can mostly wait, and a server whose
// CPU it takes answers later; but on a machine with more to do than CPUs it would not get one
// in time: the ring would overflow, and the governor come late. So it runs behind others, and
// before all of them while it is behind with its work: a second thread, which always runs
// before others, looks ten times a second. Who may not raise a priority has the usual one.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace culprit::record {

class Haste {
 public:
  static constexpr double kBehindFill = 0.3;
  static constexpr int64_t kLateNs = 300'000'000;
  static constexpr int64_t kCalmNs = 1'000'000'000;  // then it is no longer behind

  // For the thread that makes it, which is taken to be behind at first. `ring_fill`, asked by
  // the other thread, outlives this object.
  explicit Haste(std::function<double()> ring_fill);
  // The thread has the usual priority again.
  ~Haste();
  Haste(const Haste&) = delete;
  Haste& operator=(const Haste&) = delete;

  // The thread is at its work.
  void Seen();

 private:
  void Watch();
  bool IsBehind() const;

  const std::function<double()> ring_fill_;
  const pid_t tid_;
  std::atomic<int64_t> seen_ns_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread watch_;
};

// Of a process that was forked from it, too.
void UseUsualPriority();

}  // namespace culprit::record
