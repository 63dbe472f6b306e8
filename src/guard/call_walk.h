// SPDX-License-Identifier: Apache-2.0
//
// CallWalk: one training log with times (runtime/wire.h, PlanHeader::log_times) as
// function calls, of which those are kept in which at least one of the given
// moments lies: the system calls of the thread. Entries alone are logged: a call has
// ended when something is entered at its stack pointer or above, or by a function
// further out; until then it is taken to go on. A caller whose own entry was not seen
// (before the log began, or not patched) is known by the return address.
//
// Deterministic. One pass over the log, some 50 ns an entry; memory is the calls that
// are kept. One thread a walk; CallPaths is shared by walks one after the other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/diagnostics.h"
#include "base/flat_map.h"
#include "base/result.h"
#include "guard/session_code.h"
#include "guard/training_log_reader.h"

namespace culprit::guard {

// Functions with their callers, each combination once.
class CallPaths {
 public:
  struct Node {
    uint32_t caller = kNoIndex;  // a node before this one
    uint32_t function = 0;       // of SessionCode
  };
  uint32_t Intern(uint32_t caller, uint32_t function);
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  std::vector<Node> nodes_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> index_;
};

struct WalkedCall {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t path = 0;          // of CallPaths
  uint32_t first_moment = 0;  // the first one inside
};

struct TimeRange {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

struct WalkedLog {
  std::vector<WalkedCall> calls;    // in the order of their ends
  std::vector<TimeRange> own_work;  // of the runtime; by time
  int64_t first_ns = INT64_MAX;     // of what was logged
  uint64_t entries = 0;
};

class CallWalk {
 public:
  // `moments` ascend. All outlive it.
  CallWalk(const SessionCode& code, const LogFile& log, std::span<const int64_t> moments,
           CallPaths& paths);

  Result<WalkedLog> Run(Diagnostics& diagnostics);

 private:
  static constexpr size_t kMaxDepth = 4096;

  struct Open {
    uint64_t sp16 = 0;
    uint32_t function = 0;
    uint32_t path = kNoIndex;
    uint32_t first_moment = 0;
    int64_t begin_ns = 0;
  };

  void Take(const LogRecord& record);
  // Ends what is over when `return_address`'s function calls something at `sp16`.
  void ReturnTo(uint64_t sp16, uint64_t return_address);
  void Push(uint32_t function, uint64_t sp16);
  void Pop();
  uint32_t PathOf(size_t depth);
  uint32_t CallerAt(uint64_t return_address);

  const SessionCode& code_;
  const LogFile& log_;
  std::span<const int64_t> moments_;
  CallPaths& paths_;
  const std::vector<uint32_t>& ids_;
  std::vector<Open> open_;
  std::map<uint64_t, uint32_t> callers_;  // by return address
  uint64_t last_return_ = 0;
  uint32_t last_caller_ = kNoIndex;
  int64_t now_ns_ = 0;
  uint32_t moment_ = 0;  // the first one that is not before now_ns_
  uint64_t too_deep_ = 0;
  WalkedLog walked_;
};

}  // namespace culprit::guard
