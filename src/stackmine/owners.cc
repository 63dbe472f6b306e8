// SPDX-License-Identifier: Apache-2.0
#include "stackmine/owners.h"

#include <algorithm>
#include <utility>

#include "base/parallel.h"

namespace culprit::stackmine {
namespace {

constexpr size_t kStacksATask = 1024;

// A pattern and how much it tells: the sum of Uni over its frames.
struct Told {
  const LabelledPattern* pattern = nullptr;
  uint64_t weight = 0;
};

// The patterns of each label, those that tell most first.
std::vector<std::vector<Told>> ByLabel(const std::vector<LabelledPattern>& patterns, size_t labels,
                                       const FunctionSymbols& symbols,
                                       const cluster::NgramCounts& counts) {
  std::vector<std::vector<Told>> by_label(labels);
  for (const LabelledPattern& pattern : patterns) {
    uint64_t weight = 0;
    for (const FrameSymbol frame : pattern.frames) weight += counts.Uni(symbols.Of(frame));
    by_label[pattern.label].push_back({&pattern, weight});
  }
  for (std::vector<Told>& told : by_label) {
    std::stable_sort(told.begin(), told.end(),
                     [](const Told& a, const Told& b) { return a.weight > b.weight; });
  }
  return by_label;
}

// How much the best of a label's patterns that the stack contains tells.
uint64_t WeightIn(const std::vector<Told>& told, const std::vector<FrameSymbol>& stack) {
  for (const Told& t : told) {
    if (IsSubsequence(t.pattern->frames, stack)) return t.weight;
  }
  return 0;
}

std::vector<uint32_t> OwnersOf(const Evidence& evidence, const LabelsByStack& labels,
                               const std::vector<std::vector<Told>>& by_label,
                               const std::vector<uint32_t>& order,
                               const std::vector<int64_t>& anchor_score, size_t jobs) {
  std::vector<uint32_t> owners(labels.size(), kNoOwner);
  ParallelFor((labels.size() + kStacksATask - 1) / kStacksATask, jobs, [&](size_t chunk) {
    std::vector<FrameSymbol> frames;
    const size_t end = std::min(labels.size(), (chunk + 1) * kStacksATask);
    for (size_t s = chunk * kStacksATask; s < end; ++s) {
      if (labels[s].empty()) continue;
      evidence.stacks.Frames(static_cast<StackIndex>(s), frames);
      std::pair<int64_t, uint64_t> best;
      for (const uint32_t label : labels[s]) {
        const std::pair told(anchor_score[label], WeightIn(by_label[label], frames));
        const bool better = owners[s] == kNoOwner || told > best ||
                            (told == best && order[label] < order[owners[s]]);
        if (!better) continue;
        best = told;
        owners[s] = label;
      }
    }
  });
  return owners;
}

}  // namespace

Owners FindOwners(const Evidence& evidence, const StackLabels& labels,
                  const std::vector<LabelledPattern>& patterns, const std::vector<uint32_t>& order,
                  const std::vector<int64_t>& anchor_score, const FunctionSymbols& symbols,
                  const cluster::NgramCounts& counts, size_t jobs) {
  const std::vector<std::vector<Told>> by_label = ByLabel(patterns, order.size(), symbols, counts);
  return {.wait = OwnersOf(evidence, labels.wait, by_label, order, anchor_score, jobs),
          .run = OwnersOf(evidence, labels.run, by_label, order, anchor_score, jobs)};
}

}  // namespace culprit::stackmine
