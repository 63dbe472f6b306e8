// SPDX-License-Identifier: Apache-2.0
#include "mine/budget.h"

#include <fmt/format.h>

#include "base/text.h"

namespace culprit::mine {

Budget::Budget(int64_t max_time_ns, uint64_t max_memory_bytes, uint64_t max_patterns)
    : max_time_ns_(max_time_ns), max_memory_bytes_(max_memory_bytes), max_patterns_(max_patterns) {}

bool Budget::Spent() {
  if (limit() != Limit::kNone) return true;
  if (max_time_ns_ <= 0) return false;
  const auto elapsed = std::chrono::steady_clock::now() - begin_;
  if (elapsed < std::chrono::nanoseconds(max_time_ns_)) return false;
  Spend(Limit::kTime);
  return true;
}

void Budget::Take(uint64_t bytes) {
  const uint64_t held = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (max_memory_bytes_ != 0 && held > max_memory_bytes_) Spend(Limit::kMemory);
}

void Budget::Spend(Limit limit) {
  // The first reason stands: the others follow from stopping in the middle.
  Limit none = Limit::kNone;
  limit_.compare_exchange_strong(none, limit, std::memory_order_relaxed);
}

std::string Budget::Why() const {
  switch (limit()) {
    case Limit::kTime:
      return fmt::format("the time budget of {} was spent", FormatDuration(max_time_ns_));
    case Limit::kMemory:
      return fmt::format("the memory budget of {} was spent", FormatBytes(max_memory_bytes_));
    case Limit::kPatterns:
      return fmt::format("there are more than the {} patterns asked for", max_patterns_);
    case Limit::kNone:
      break;
  }
  return {};
}

}  // namespace culprit::mine
