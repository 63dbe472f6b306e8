// SPDX-License-Identifier: Apache-2.0
//
// Budget: what one call of a miner may spend, shared by its threads; Allowance:
// one branch's view of it, used by one thread. Time and memory are watched
// while the work goes on and stop every thread; patterns are counted per branch
// and summed between batches of branches, so that what a pattern budget cuts
// does not depend on threads. Memory is what the miner's own large arrays hold,
// as they report it; the caller's input is not counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace culprit::mine {

enum class Limit : uint8_t { kNone, kTime, kMemory, kPatterns };

class Budget {
 public:
  // Each 0: no bound.
  Budget(int64_t max_time_ns, uint64_t max_memory_bytes, uint64_t max_patterns);

  // Looks at the clock; from any thread. Once spent, always spent.
  bool Spent();
  void Take(uint64_t bytes);
  void Return(uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  uint64_t max_patterns() const { return max_patterns_; }
  void SpendPatterns() { Spend(Limit::kPatterns); }
  Limit limit() const { return limit_.load(std::memory_order_relaxed); }
  std::string Why() const;  // empty while nothing is spent

 private:
  void Spend(Limit limit);

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const int64_t max_time_ns_;
  const uint64_t max_memory_bytes_;
  const uint64_t max_patterns_;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<Limit> limit_ = Limit::kNone;
};

// Bytes held while it lives.
class MemoryClaim {
 public:
  MemoryClaim(Budget& budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {
    budget_.Take(bytes_);
  }
  ~MemoryClaim() { budget_.Return(bytes_); }
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;

  void Resize(uint64_t bytes) {
    budget_.Take(bytes);
    budget_.Return(bytes_);
    bytes_ = bytes;
  }

 private:
  Budget& budget_;
  uint64_t bytes_;
};

class Allowance {
 public:
  explicit Allowance(Budget& budget) : budget_(budget) {}

  // Whether the branch has to end; cheap enough to be asked at every node.
  bool Stopped() {
    if (!stopped_ && (++asked_ & 63U) == 0) stopped_ = budget_.Spent();
    return stopped_;
  }
  // A pattern was found; false when it was the last one allowed.
  void Found() {
    if (++found_ > budget_.max_patterns() && budget_.max_patterns() != 0) {
      stopped_ = true;
      too_many_ = true;
    }
  }
  bool too_many() const { return too_many_; }
  Budget& budget() { return budget_; }

 private:
  Budget& budget_;
  uint64_t asked_ = 0;
  uint64_t found_ = 0;
  bool stopped_ = false;
  bool too_many_ = false;
};

}  // namespace culprit::mine
