// SPDX-License-Identifier: Apache-2.0
//
// PerfRing: the memory that the kernel fills with records of a perf event, and
// that we empty. Owns the descriptor and the mapping. Records that wrap around
// the end are handed out whole. The kernel stops when the ring is full and says
// how many records it lost. One thread at a time.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::record {

// perf_event_open, close-on-exec; -1 and errno on failure.
int OpenPerfEvent(perf_event_attr& attr, int pid, int cpu, int group = -1);
// CPUs that are online, ascending.
std::vector<int> OnlineCpus();

class PerfRing {
 public:
  using Visitor = std::function<void(std::string_view record)>;

  // Takes the descriptor. `pages` is a power of two; fewer if there is no more room.
  static Result<PerfRing> Map(int fd, size_t pages);
  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  // Visits what is there now, each record with its perf_event_header.
  void Drain(const Visitor& visitor);
  int fd() const { return fd_; }

 private:
  PerfRing(int fd, void* memory, size_t bytes) : fd_(fd), memory_(memory), bytes_(bytes) {}

  int fd_;
  void* memory_;
  size_t bytes_;  // of the data, without the first page
  std::string wrapped_;
};

}  // namespace culprit::record
