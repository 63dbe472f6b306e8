// SPDX-License-Identifier: Apache-2.0
//
// StackLabels: which groups of patterns each distinct stack belongs to. A group
// (a cluster, a signature) has a stack if the stack contains any of its patterns
// as a not necessarily contiguous subsequence; an event is so counted once,
// however many patterns match. Each pattern is looked for only in stacks that
// hold its rarest frame. Deterministic, in parallel over stacks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stackmine/patterns.h"

namespace culprit::stackmine {

bool IsSubsequence(std::span<const FrameSymbol> pattern, std::span<const FrameSymbol> stack);

struct LabelledPattern {
  uint32_t label = 0;
  StackKind kind = StackKind::kWait;
  std::vector<FrameSymbol> frames;
};

using LabelsByStack = LargeVector<std::vector<uint32_t>>;

// By kind and stack: the labels, ascending; empty for stacks without one.
struct StackLabels {
  LabelsByStack wait;
  LabelsByStack run;

  const std::vector<uint32_t>& of(StackKind kind, StackIndex stack) const {
    return kind == StackKind::kWait ? wait[stack] : run[stack];
  }
};

// Ready delays carry the stack of the wait before them, so the stacks of ready
// nodes are matched against the patterns of waits too.
StackLabels MatchStacks(const Evidence& evidence, const StackCosts& costs,
                        const std::vector<LabelledPattern>& patterns, size_t jobs);

}  // namespace culprit::stackmine
