// SPDX-License-Identifier: Apache-2.0
//
// SymbolPass: names for a trace that was recorded without them. While recording,
// a user frame is only its module and the place in its file (of a return
// address, the byte before: the call); looking names up then would take the CPU
// from whoever is measured. Afterwards this pass copies the trace with every
// frame replaced by its symbols, inlined callers included, code that a process made
// itself named by its perf map, and user stacks that do not begin where threads
// begin marked as [truncated].
//
// Strings, processes and threads keep their ids; modules, frames and stacks get
// new ones. Memory: both dictionaries and one block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "symbol/symbolizer.h"
#include "trace/trace.h"

namespace culprit::record {

struct SymbolCounts {
  uint64_t frames = 0;  // distinct user frames with a place in a file
  uint64_t named = 0;
  uint64_t user_stacks = 0;      // distinct
  uint64_t complete_stacks = 0;  // of these, down to the thread's start
  uint64_t waits = 0;
  uint64_t bytes = 0;  // of the file that was written
};

class SymbolPass {
 public:
  // Fills `to`, which is empty. With `symbols` false frames stay as they are.
  SymbolPass(const trace::Dictionary& from, bool symbols, trace::Dictionary& to);

  // The same stack in the new dictionary.
  trace::StackId Map(trace::StackId stack) const {
    return stack.valid() ? stacks_[stack.value] : stack;
  }
  const SymbolCounts& counts() const { return counts_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  void CopyTables();
  void MapFrames(bool symbols);
  void MapStacks();
  std::vector<trace::FrameId> FramesOf(const trace::Frame& frame, symbol::Symbolizer& symbolizer);
  bool ReachesStart(trace::StackId stack) const;

  const trace::Dictionary& from_;
  trace::Dictionary& to_;
  std::vector<trace::ModuleId> modules_;             // by old id
  std::vector<std::vector<trace::FrameId>> frames_;  // by old id, caller first
  std::vector<trace::StackId> stacks_;               // by old id
  SymbolCounts counts_;
  Diagnostics diagnostics_;
};

// The trace at `path` replaced by one with names.
Result<SymbolCounts> SymbolizeFile(const std::string& path, bool symbols, Diagnostics& diagnostics);
// The same in memory.
SymbolCounts SymbolizeTrace(trace::Trace& trace, bool symbols);

}  // namespace culprit::record
