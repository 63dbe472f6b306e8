// SPDX-License-Identifier: Apache-2.0
//
// LiveNames: names for a dictionary that is still growing. What symbol_pass.h does
// for a finished trace, a piece at a time: Update() names the frames and stacks
// that have come since the last call, in a dictionary of its own, and keeps the
// symbol tables it has read. Threads and processes keep their ids; stacks get new
// ones, by Map(). Memory: its dictionary, the symbol tables. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "symbol/symbolizer.h"
#include "trace/dictionary.h"

namespace culprit::record {

class LiveNames {
 public:
  // Both outlive this object; `to` is empty; others may add frames and stacks to it.
  LiveNames(const trace::Dictionary& from, trace::Dictionary& to) : from_(from), to_(to) {}

  void Update();
  trace::StackId Map(trace::StackId stack) const {
    return stack.valid() && stack.value < stacks_.size() ? stacks_[stack.value] : trace::StackId();
  }

 private:
  void CopyThreads();
  StringId CopyText(StringId text);
  void NameFrame(const trace::Frame& frame);

  const trace::Dictionary& from_;
  trace::Dictionary& to_;
  symbol::Symbolizer symbolizer_;
  std::vector<trace::ModuleId> modules_;             // by old id
  std::vector<std::vector<trace::FrameId>> frames_;  // by old id, caller first
  std::vector<trace::StackId> stacks_;               // by old id
};

}  // namespace culprit::record
