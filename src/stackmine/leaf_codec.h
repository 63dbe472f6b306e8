// SPDX-License-Identifier: Apache-2.0
//
// LeafCodec: the leaf frames of stacks as small numbers, for both directions of the
// evidence codec. The same call stands under many callers, so a leaf is told by its
// place among the frames that the frame above it has called before, the last one
// first; a frame that was never met by the next free number; any other by its own.
//
//   code := 0 the next free frame | 1 another one, spelled apart | 2 + place
//
// The writer asks CodeOf and the reader FrameOf for the same stacks in the same
// order. Places beyond kMostPlaces are spelled, so a step costs at most that many.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stackmine/stack_table.h"

namespace culprit::stackmine {

class LeafCodec {
 public:
  explicit LeafCodec(size_t frames) : last_call_(frames + 1, kNoCall) {}

  // `caller` is the leaf of the caller's stack, UINT32_MAX for none.
  struct Code {
    uint64_t code = 0;
    int64_t spelled = 0;  // with code 1
  };
  Code CodeOf(uint32_t caller, FrameSymbol frame);
  // `spelled()` gives what was spelled apart. None for what is no code.
  template <class Spelled>
  std::optional<FrameSymbol> FrameOf(uint32_t caller, uint64_t code, const Spelled& spelled);

 private:
  static constexpr uint32_t kNoCall = UINT32_MAX;
  static constexpr uint32_t kMostPlaces = 64;
  static constexpr uint64_t kFirstPlace = 2;

  // Of one caller, a list from the last used on.
  struct Call {
    FrameSymbol frame = 0;
    uint32_t next = kNoCall;
  };

  uint32_t& ListOf(uint32_t caller) {
    return last_call_[caller == UINT32_MAX ? last_call_.size() - 1 : caller];
  }
  void Add(uint32_t& list, FrameSymbol frame) {
    calls_.push_back({frame, list});
    list = static_cast<uint32_t>(calls_.size() - 1);
    if (frame >= free_) free_ = frame + 1;
  }
  // Takes `call` out from behind `before` and puts it first.
  void MoveUp(uint32_t& list, uint32_t before, uint32_t call) {
    if (before == kNoCall) return;
    calls_[before].next = calls_[call].next;
    calls_[call].next = list;
    list = call;
  }

  std::vector<uint32_t> last_call_;  // by caller; those without one last
  std::vector<Call> calls_;
  FrameSymbol free_ = 0;
};

inline LeafCodec::Code LeafCodec::CodeOf(uint32_t caller, FrameSymbol frame) {
  uint32_t& list = ListOf(caller);
  uint32_t before = kNoCall;
  uint32_t at = list;
  for (uint32_t place = 0; at != kNoCall && place < kMostPlaces; ++place) {
    if (calls_[at].frame == frame) {
      MoveUp(list, before, at);
      return {.code = kFirstPlace + place};
    }
    before = at;
    at = calls_[at].next;
  }
  const int64_t back = int64_t{free_} - frame;
  Add(list, frame);
  return back == 0 ? Code{} : Code{.code = 1, .spelled = back};
}

template <class Spelled>
std::optional<FrameSymbol> LeafCodec::FrameOf(uint32_t caller, uint64_t code,
                                              const Spelled& spelled) {
  uint32_t& list = ListOf(caller);
  const auto frames = static_cast<int64_t>(last_call_.size() - 1);
  if (code < kFirstPlace) {
    const int64_t back = code == 0 ? 0 : spelled();
    if (back > frames || back < -frames) return std::nullopt;
    const int64_t frame = int64_t{free_} - back;
    if (frame < 0 || frame >= frames) return std::nullopt;
    Add(list, static_cast<FrameSymbol>(frame));
    return static_cast<FrameSymbol>(frame);
  }
  if (code - kFirstPlace >= kMostPlaces) return std::nullopt;
  uint32_t before = kNoCall;
  uint32_t at = list;
  for (uint64_t place = code - kFirstPlace; place > 0 && at != kNoCall; --place) {
    before = at;
    at = calls_[at].next;
  }
  if (at == kNoCall) return std::nullopt;
  const FrameSymbol frame = calls_[at].frame;
  MoveUp(list, before, at);
  return frame;
}

}  // namespace culprit::stackmine
