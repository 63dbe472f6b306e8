// SPDX-License-Identifier: Apache-2.0
//
// CallCounter: the system calls of running processes, as counts: by process name,
// call, operation and error, with the time they took. Counted in the kernel
// (bpf/calls.h), so memory and the work of looking do not depend on how many
// there are, and none is lost while it looks.
//
// The budget is that of the recorder: what the kernel programs and this process
// use against what the counted threads use, at least half a CPU. Where that is
// too much, calls are looked at only part of the time, all of them: to leave out
// some kinds would change the picture. One thread at a time; everything is gone
// when this object is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/bpf_engine.h"
#include "record/governor.h"
#include "record/target.h"
#include "trace/syscall_table.h"

namespace culprit::record {

struct CallCounterOptions {
  RecordTarget target = {};
  double budget = 0.03;  // 0: none
};

struct CallSum {
  std::string process;  // name
  int64_t arg0 = 0;     // number and operation (trace/syscall_operation.h)
  uint16_t error = 0;   // 0: did not fail
  uint64_t calls = 0;
  int64_t dur_ns = 0;
};

struct CallSums {
  std::vector<CallSum> calls;  // ascending by process, call and error
  int64_t counted_ns = 0;      // so much of the time they were counted
};

// A call that has not returned.
struct OpenCall {
  std::string process;
  int64_t arg0 = 0;
  int64_t dur_ns = 0;  // so far
};

struct CallCounterCost {
  double share = 0;   // in the budget's terms, since the last Take()
  double duty = 1;    // the part of the time in which calls are counted
  uint64_t lost = 0;  // calls that found no room, so far
};

class CallCounter {
 public:
  // Needs the BPF engine; see docs/record.md.
  static Result<std::unique_ptr<CallCounter>> Start(const CallCounterOptions& options);

  // Lets so much time pass; returns early when `stop` says so.
  Status Run(int64_t dur_ns, const std::function<bool()>& stop);
  // What has returned since the last time.
  CallSums Take();
  // What goes on, in no order. Known only of calls that began while it counted.
  Result<std::vector<OpenCall>> Open();
  CallCounterCost cost() const;

 private:
  CallCounter() = default;
  int64_t ArgumentOf(uint32_t number, uint32_t operation) const;
  Cost CostNow() const;
  void CountTime(int64_t now_ns);
  Status Join(int64_t now_ns);
  Status KeepBudget(int64_t now_ns);
  Status KeepDuty(int64_t now_ns);

  CallCounterOptions options_;
  std::unique_ptr<BpfEngine> engine_;
  std::optional<trace::SyscallAbi> abi_;
  std::vector<CountedCalls> before_;  // ascending by key
  std::set<int64_t> members_;         // of the cgroups
  Cost turn_cost_;
  Cost take_cost_;
  int64_t cycle_begin_ns_ = 0;
  int64_t joined_ns_ = 0;
  int64_t counted_ns_ = 0;  // since the last Take(), up to counted_until_ns_
  int64_t counted_until_ns_ = 0;
  double share_ = 0;
  double duty_ = 1;
  int cheap_turns_ = 0;
  bool paused_ = false;
};

}  // namespace culprit::record
