// SPDX-License-Identifier: Apache-2.0
//
// Anchors: functions that stand for one behaviour. Wherever such a function is
// on a stack, much of the rest of the stack is the same, and not because every
// stack has it: what all its stacks share (its closure) is rare elsewhere. So
// `GetShortPathName` is an anchor if it is always reached from the same start-up
// code and always ends in the same page fault, however different the ways
// between; `DispatchMessage` is none, for its stacks share only what all do.
//
// This goes beyond StackMine: its similarity compares whole patterns, and where
// the ways between differ by more frames than the behaviour has, variants of one
// bug stay apart (docs/mine.md, with figures). Patterns with one anchor are one
// cluster.
//
// The closure is found by common subsequences of the costliest stacks until they
// are kCoveredShare of the function's cost, so a few odd ones do not spoil it.
// Rarity is in bits: log2(all cost / cost of the stacks with the frame), summed
// over the closure without the function itself; kLeastBits are asked for. Exact
// integer arithmetic; in parallel over functions.
#pragma once

#include <cstdint>
#include <vector>

#include "stackmine/patterns.h"

namespace culprit::stackmine {

// Bits are fixed-point numbers with eight fractional ones.
inline constexpr uint32_t kBit = 256;
inline constexpr uint32_t kLeastBits = 8 * kBit;

struct Anchor {
  FrameSymbol frame = 0;
  int64_t cost_ns = 0;  // of the stacks with the frame
  uint32_t bits = 0;    // of the closure; 0: it is no anchor
  std::vector<FrameSymbol> closure;

  // Prefers what covers much, as long as it is specific enough.
  int64_t Score() const;
};

// log2(whole / part), rounded down to 1/256; 0 if part >= whole.
uint32_t Bits(int64_t part, int64_t whole);

// By place in `frames`: the frames asked about, and whether they are anchors
// among the stacks of this kind.
std::vector<Anchor> FindAnchors(const Evidence& evidence, const StackCosts& costs, StackKind kind,
                                const std::vector<FrameSymbol>& frames, size_t jobs);

}  // namespace culprit::stackmine
