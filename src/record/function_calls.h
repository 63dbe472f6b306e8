// SPDX-License-Identifier: Apache-2.0
//
// FunctionCalls: from entries and exits of functions to calls with their callers,
// thread by thread. An exit closes the call of that name that was entered last, and
// what was entered within and never left with it. A function that is left without
// having been entered was running since the recording began. Calls that are open at
// the end are unfinished.
//
// Only threads that are recorded get events; of the others what is open is known, in
// case they will be. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "assemble/fused_assembler.h"
#include "base/diagnostics.h"
#include "record/function_probes.h"

namespace culprit::record {

class FunctionCalls {
 public:
  using IsRecorded = std::function<bool(int64_t tid)>;

  // All outlive it. Frames are of the module "[jit]", as those of perf maps.
  FunctionCalls(assemble::FusedAssembler& assembler, trace::Dictionary& dictionary,
                int64_t begin_ns, IsRecorded is_recorded, Diagnostics& diagnostics);

  // By time.
  Status Take(const FunctionHit& hit);
  Status Finish(int64_t end_ns);

 private:
  static constexpr size_t kMaxDepth = 10'000;

  struct Open {
    int64_t time_ns = 0;
    trace::StackId stack;
    trace::FrameId frame;
  };
  struct Thread {
    std::vector<Open> open;
    uint64_t too_deep = 0;
  };

  trace::FrameId FrameOf(const std::string& function);
  Status Leave(int64_t tid, Thread& thread, trace::FrameId frame, int64_t time_ns);
  Status Close(int64_t tid, Thread& thread, int64_t end_ns, uint8_t flags);

  assemble::FusedAssembler& assembler_;
  trace::Dictionary& dictionary_;
  int64_t begin_ns_;
  IsRecorded is_recorded_;
  Diagnostics& diagnostics_;
  std::unordered_map<std::string, trace::FrameId> frames_;
  std::map<int64_t, Thread> threads_;  // by tid
};

}  // namespace culprit::record
