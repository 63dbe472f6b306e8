// SPDX-License-Identifier: Apache-2.0
//
// JitNames: names for code that a process made itself, from the /tmp/perf-PID.map
// that its compiler wrote (symbol/jit_maps.h). Such a frame is an address without
// a file, and the same address is other code in another process, so a stack is
// named for whoever it belongs to. Named frames are of the module "[jit]"; what no
// map names stays as it is.
//
// Works on one dictionary, into which it adds the named stacks; it outlives this
// object. Costs one hash probe a stack; maps are read when first needed, and kept.
// One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbol/jit_maps.h"
#include "trace/dictionary.h"
#include "trace/event.h"

namespace culprit::record {

class JitNames {
 public:
  explicit JitNames(trace::Dictionary& dictionary, std::string folder = "/tmp");

  // The stack of an event, named.
  trace::StackId Map(const trace::Event& event);
  // Reads maps again when they are next needed: compilers go on.
  void Forget();
  // Stacks that were given a name.
  uint64_t named() const { return named_; }
  const Diagnostics& diagnostics() const { return maps_.diagnostics(); }

 private:
  bool HasMadeCode(trace::StackId stack);
  bool IsMadeCode(trace::FrameId frame) const;
  trace::StackId Name(trace::StackId stack, int64_t pid);

  trace::Dictionary& dictionary_;
  std::string folder_;
  symbol::JitMaps maps_;
  std::vector<uint8_t> made_code_;  // by stack, as far as known: 1 none, 2 some
  std::unordered_map<uint64_t, trace::StackId> named_stacks_;  // by stack and process
  uint64_t named_ = 0;
};

}  // namespace culprit::record
