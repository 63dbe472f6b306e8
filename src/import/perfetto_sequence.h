// SPDX-License-Identifier: Apache-2.0
//
// PerfettoSequence: the incremental state of one packet sequence: interned
// names, frames and callstacks, defaults, the thread that old writers declare
// once. It holds from a packet that clears it until the next such packet; after
// lost packets it is not valid until then, and packets that need it are
// skipped. Callstacks become stacks of the trace on first use.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbol/symbolizer.h"
#include "trace/dictionary.h"

namespace culprit::import_ {

// What made the profiler take a sample.
struct PerfTimebase {
  uint64_t frequency = 0;
  uint64_t period = 0;
  uint32_t counter = 0;
  std::string tracepoint;  // "sched:sched_switch"
};

class PerfettoSequence {
 public:
  void Clear();
  void Invalidate() { valid_ = false; }
  bool valid() const { return valid_; }

  // The bytes of an InternedData and of a TracePacketDefaults message.
  void AddInterned(std::string_view message);
  void SetDefaults(std::string_view message);

  std::string_view EventName(uint64_t iid) const;
  // None if the callstack is not known. A truncated one says so in its outermost
  // frame. `symbolizer` may be nullptr.
  trace::StackId Stack(uint64_t iid, bool truncated, trace::Dictionary& dictionary,
                       symbol::Symbolizer* symbolizer);

  uint32_t clock = 0;  // 0: the trace's
  uint64_t track = 0;
  PerfTimebase timebase;
  int64_t pid = -1;  // of a ThreadDescriptor on this sequence
  int64_t tid = -1;
  int64_t reference_us = 0;

 private:
  struct Mapping {
    std::vector<uint64_t> path;
    uint64_t build_id = 0;
    uint64_t load_bias = 0;
  };
  struct Frame {
    uint64_t function = 0;
    uint64_t mapping = 0;
    uint64_t rel_pc = 0;
    uint32_t line = 0;
    bool kernel = false;
  };
  using Strings = std::unordered_map<uint64_t, std::string>;

  void AddMapping(std::string_view message);
  void AddFrame(std::string_view message);
  trace::FrameId FrameOf(const Frame& frame, trace::Dictionary& dictionary,
                         symbol::Symbolizer* symbolizer) const;

  bool valid_ = false;
  Strings event_names_;
  Strings functions_;
  Strings paths_;
  Strings build_ids_;
  std::unordered_map<uint64_t, Mapping> mappings_;
  std::unordered_map<uint64_t, Frame> frames_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> callstacks_;
  std::unordered_map<uint64_t, trace::FrameId> frame_ids_;              // of frames used so far
  std::array<std::unordered_map<uint64_t, trace::StackId>, 2> stacks_;  // whole, truncated
};

}  // namespace culprit::import_
