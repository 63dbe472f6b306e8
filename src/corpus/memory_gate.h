// SPDX-License-Identifier: Apache-2.0
//
// MemoryGate: lets threads hold traces in memory as long as they fit a bound
// together. One that does not fit beside the others waits; one that does not fit at
// all waits until it is alone. A MemoryTicket is the right to hold so many bytes,
// for as long as it lives. Safe from several threads; tickets are not taken in the
// order of asking.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace culprit::corpus {

class MemoryGate {
 public:
  explicit MemoryGate(uint64_t bytes) : bytes_(bytes) {}  // 0: no bound

  void Enter(uint64_t bytes) {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] { return held_ == 0 || bytes_ == 0 || held_ + bytes <= bytes_; });
    held_ += bytes;
  }
  void Leave(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    held_ -= bytes;
    left_.notify_all();
  }

 private:
  const uint64_t bytes_;
  std::mutex mutex_;
  std::condition_variable left_;
  uint64_t held_ = 0;
};

class MemoryTicket {
 public:
  MemoryTicket(MemoryGate& gate, uint64_t bytes) : gate_(gate), bytes_(bytes) {
    gate_.Enter(bytes_);
  }
  MemoryTicket(const MemoryTicket&) = delete;
  MemoryTicket& operator=(const MemoryTicket&) = delete;
  ~MemoryTicket() { gate_.Leave(bytes_); }

 private:
  MemoryGate& gate_;
  const uint64_t bytes_;
};

}  // namespace culprit::corpus
