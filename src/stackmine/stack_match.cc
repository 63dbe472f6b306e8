// SPDX-License-Identifier: Apache-2.0
#include "stackmine/stack_match.h"

#include <algorithm>

#include "base/parallel.h"

namespace culprit::stackmine {
namespace {

// Enough stacks for a task that the scheduling does not show.
constexpr size_t kStacksAtOnce = 1024;

// The patterns of one kind, each under its rarest frame.
class PatternIndex {
 public:
  PatternIndex(const std::vector<LabelledPattern>& patterns, StackKind kind,
               const std::vector<uint64_t>& frame_counts)
      : by_frame_(frame_counts.size()) {
    for (const LabelledPattern& pattern : patterns) {
      if (pattern.kind != kind || pattern.frames.empty()) continue;
      const auto rarest = std::min_element(
          pattern.frames.begin(), pattern.frames.end(),
          [&](FrameSymbol a, FrameSymbol b) { return frame_counts[a] < frame_counts[b]; });
      by_frame_[*rarest].push_back(&pattern);
    }
  }

  // `distinct` is room to work in.
  void Match(std::span<const FrameSymbol> stack, std::vector<FrameSymbol>& distinct,
             std::vector<uint32_t>& labels) const {
    // Deep recursion must not look for a pattern once per repeat.
    distinct.assign(stack.begin(), stack.end());
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const FrameSymbol frame : distinct) {
      for (const LabelledPattern* pattern : by_frame_[frame]) {
        const bool known = std::find(labels.begin(), labels.end(), pattern->label) != labels.end();
        if (!known && IsSubsequence(pattern->frames, stack)) labels.push_back(pattern->label);
      }
    }
    std::sort(labels.begin(), labels.end());
  }

 private:
  std::vector<std::vector<const LabelledPattern*>> by_frame_;
};

std::vector<StackIndex> StacksToMatch(const Evidence& evidence, const StackCosts& costs,
                                      StackKind kind) {
  std::vector<bool> wanted(evidence.stacks.stacks());
  for (const StackCost& cost : costs.stacks) {
    if (cost.kind == kind) wanted[cost.stack] = true;
  }
  for (const PathNode& node : evidence.forest.nodes()) {
    // Waits of length zero cost nothing and still are events.
    const bool counts = CountsAs(node, kind, costs.runs_by_thread) ||
                        (kind == StackKind::kWait && node.kind == PathKind::kReady);
    if (counts && node.stack != kNoStack) wanted[node.stack] = true;
  }
  std::vector<StackIndex> stacks;
  for (StackIndex s = 0; s < wanted.size(); ++s) {
    if (wanted[s]) stacks.push_back(s);
  }
  return stacks;
}

LabelsByStack MatchKind(const Evidence& evidence, const StackCosts& costs,
                        const std::vector<LabelledPattern>& patterns, StackKind kind, size_t jobs) {
  const std::vector<StackIndex> stacks = StacksToMatch(evidence, costs, kind);
  std::vector<uint64_t> frame_counts(evidence.stacks.frames());
  for (const StackIndex stack : stacks) {
    for (StackIndex s = stack; s != kNoStack; s = evidence.stacks.Parent(s)) {
      ++frame_counts[evidence.stacks.Leaf(s)];
    }
  }
  const PatternIndex index(patterns, kind, frame_counts);
  LabelsByStack labels(evidence.stacks.stacks());
  ParallelFor((stacks.size() + kStacksAtOnce - 1) / kStacksAtOnce, jobs, [&](size_t chunk) {
    std::vector<FrameSymbol> own;
    std::vector<FrameSymbol> distinct;
    const size_t end = std::min(stacks.size(), (chunk + 1) * kStacksAtOnce);
    for (size_t i = chunk * kStacksAtOnce; i < end; ++i) {
      evidence.stacks.Frames(stacks[i], own);
      index.Match(own, distinct, labels[stacks[i]]);
    }
  });
  return labels;
}

}  // namespace

bool IsSubsequence(std::span<const FrameSymbol> pattern, std::span<const FrameSymbol> stack) {
  if (pattern.size() > stack.size()) return false;
  size_t found = 0;
  for (const FrameSymbol frame : stack) {
    if (found < pattern.size() && frame == pattern[found]) ++found;
  }
  return found == pattern.size();
}

StackLabels MatchStacks(const Evidence& evidence, const StackCosts& costs,
                        const std::vector<LabelledPattern>& patterns, size_t jobs) {
  return {.wait = MatchKind(evidence, costs, patterns, StackKind::kWait, jobs),
          .run = MatchKind(evidence, costs, patterns, StackKind::kRun, jobs)};
}

}  // namespace culprit::stackmine
