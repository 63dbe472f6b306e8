// SPDX-License-Identifier: Apache-2.0
//
// UnwindMaps: the kernel's maps that the walker reads, as the recorder writes them:
// chunks of tables, rules, ranges of processes; and the requests of the walker. The
// descriptors belong to the engine, which must outlive this object. One thread at a
// time, which need not be the engine's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "record/bpf/unwind_layout.h"

namespace culprit::record {

struct UnwindMapFds {
  int chunks = -1;
  int rules = -1;
  int ranges = -1;
  int processes = -1;
  int requests = -1;
};

class UnwindMaps {
 public:
  static Result<std::unique_ptr<UnwindMaps>> Open(const UnwindMapFds& fds);
  ~UnwindMaps();

  // Waits for requests, for a call of Wake(), or for the time to pass, and visits
  // the requests.
  using Visitor = std::function<void(const UnwindRequest&)>;
  void Wait(int timeout_ms, const Visitor& visitor);
  // From any thread.
  void Wake() const;

  // False: the kernel has no room.
  bool SetChunk(size_t number, std::span<const uint32_t> words);
  bool SetRules(size_t first, std::span<const UnwindRule> rules);
  bool SetRanges(uint32_t first, std::span<const UnwindRange> ranges);
  bool SetProcess(int64_t pid, const UnwindProcess& process);
  void ForgetProcess(int64_t pid);

 private:
  struct State;
  explicit UnwindMaps(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace culprit::record
