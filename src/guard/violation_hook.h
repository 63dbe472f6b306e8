// SPDX-License-Identifier: Apache-2.0
//
// ViolationHook: starts something for a slow unit, in a child process that nobody
// waits for: a shell command with the report in its environment, or a function of
// this program. At most one at a time and one every `pause_ns`; what is left out is
// counted. The collector goes on meanwhile. One thread at a time.
//
//   CULPRIT_TYPE CULPRIT_STATE CULPRIT_PROCESS CULPRIT_PID CULPRIT_TID
//   CULPRIT_WALL_NS CULPRIT_THRESHOLD_NS CULPRIT_WHERE CULPRIT_REPORT (JSON)
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "guard/unit_report.h"

namespace culprit::guard {

class ViolationHook {
 public:
  // Runs in the child; its result is the exit code.
  using Action = std::function<int(const UnitReport&)>;

  ViolationHook(Action action, uint64_t pause_ns)
      : action_(std::move(action)), pause_ns_(pause_ns) {}
  static ViolationHook OfCommand(std::string command, uint64_t pause_ns);
  ViolationHook(const ViolationHook&) = delete;
  ViolationHook& operator=(const ViolationHook&) = delete;
  ViolationHook(ViolationHook&& other) noexcept;
  // A child that still runs goes on by itself.
  ~ViolationHook() = default;

  void Offer(const UnitReport& report);
  // For the one that runs, so long at most, so that failed() is complete.
  void WaitForLast(uint64_t patience_ns);
  uint64_t started() const { return started_; }
  uint64_t left_out() const { return left_out_; }
  uint64_t failed() const { return failed_; }

 private:
  bool IsBusy();

  Action action_;
  uint64_t pause_ns_;
  pid_t child_ = -1;
  uint64_t last_ns_ = 0;
  uint64_t started_ = 0;
  uint64_t left_out_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace culprit::guard
