// SPDX-License-Identifier: Apache-2.0
#include "stackmine/anchors.h"

#include <algorithm>

#include "base/parallel.h"

namespace culprit::stackmine {
namespace {

constexpr uint64_t kCoveredShare = kShareOne / 100 * 95;
constexpr size_t kMostStacks = 512;   // looked at for one function
constexpr size_t kMostFrames = 1000;  // of a stack; deeper recursion has no anchors
constexpr uint32_t kEnoughBits = 2 * kLeastBits;

// The longest common subsequence; of several, always the same one.
std::vector<FrameSymbol> CommonSubsequence(const std::vector<FrameSymbol>& a,
                                           const std::vector<FrameSymbol>& b) {
  const size_t columns = b.size() + 1;
  std::vector<uint16_t> length((a.size() + 1) * columns);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      length[i * columns + j] =
          a[i] == b[j] ? static_cast<uint16_t>(length[(i + 1) * columns + j + 1] + 1)
                       : std::max(length[(i + 1) * columns + j], length[i * columns + j + 1]);
    }
  }
  std::vector<FrameSymbol> common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      common.push_back(a[i]);
      ++i;
      ++j;
    } else if (length[(i + 1) * columns + j] >= length[i * columns + j + 1]) {
      ++i;
    } else {
      ++j;
    }
  }
  return common;
}

// The stacks of one kind, costliest first, and where each frame occurs.
class StacksByFrame {
 public:
  StacksByFrame(const Evidence& evidence, const StackCosts& costs, StackKind kind)
      : evidence_(evidence), frame_cost_ns_(evidence.stacks.frames()) {
    for (const StackCost& cost : costs.stacks) {
      if (cost.kind == kind) stacks_.push_back(cost);
    }
    std::stable_sort(stacks_.begin(), stacks_.end(),
                     [](const StackCost& a, const StackCost& b) { return a.cost_ns > b.cost_ns; });
    by_frame_.resize(evidence.stacks.frames());
    std::vector<FrameSymbol> frames;
    for (uint32_t s = 0; s < stacks_.size(); ++s) {
      evidence.stacks.Frames(stacks_[s].stack, frames);
      std::sort(frames.begin(), frames.end());
      frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
      for (const FrameSymbol frame : frames) {
        by_frame_[frame].push_back(s);
        frame_cost_ns_[frame] += stacks_[s].cost_ns;
      }
      total_ns_ += stacks_[s].cost_ns;
    }
  }

  Anchor Find(FrameSymbol frame) const {
    Anchor anchor{.frame = frame, .cost_ns = frame_cost_ns_[frame]};
    const int64_t enough_ns = ShareOf(kCoveredShare, anchor.cost_ns);
    int64_t covered_ns = 0;
    std::vector<FrameSymbol> frames;
    const std::vector<uint32_t>& own = by_frame_[frame];
    for (size_t i = 0; i < own.size() && i < kMostStacks && covered_ns < enough_ns; ++i) {
      evidence_.stacks.Frames(stacks_[own[i]].stack, frames);
      if (frames.size() > kMostFrames) return anchor;
      anchor.closure = i == 0 ? frames : CommonSubsequence(anchor.closure, frames);
      covered_ns += stacks_[own[i]].cost_ns;
      if (BitsOf(anchor.closure, frame) < kLeastBits) return anchor;
    }
    const bool kept =
        std::find(anchor.closure.begin(), anchor.closure.end(), frame) != anchor.closure.end();
    if (kept) anchor.bits = BitsOf(anchor.closure, frame);
    return anchor;
  }

 private:
  uint32_t BitsOf(std::vector<FrameSymbol> frames, FrameSymbol without) const {
    std::sort(frames.begin(), frames.end());
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
    uint32_t bits = 0;
    for (const FrameSymbol frame : frames) {
      if (frame != without) bits += Bits(frame_cost_ns_[frame], total_ns_);
    }
    return bits;
  }

  const Evidence& evidence_;
  std::vector<StackCost> stacks_;
  std::vector<std::vector<uint32_t>> by_frame_;
  std::vector<int64_t> frame_cost_ns_;
  int64_t total_ns_ = 0;
};

}  // namespace

int64_t Anchor::Score() const {
  // A closure that is a whole stack has many bits and covers one variant.
  return cost_ns / kEnoughBits * std::min(bits, kEnoughBits);
}

uint32_t Bits(int64_t part, int64_t whole) {
  if (part <= 0 || part >= whole) return 0;
  auto ratio_high = static_cast<uint64_t>(whole);
  auto ratio_low = static_cast<uint64_t>(part);
  uint32_t bits = 0;
  while (ratio_high / 2 >= ratio_low) {
    ratio_low *= 2;  // stays at most `whole`
    bits += kBit;
  }
  // Now 1 <= high / low < 2: eight binary digits of the logarithm, by squaring.
  while ((ratio_high >> 32) != 0) {
    ratio_high /= 2;
    ratio_low /= 2;
  }
  uint64_t x = (ratio_high << 31) / ratio_low;
  constexpr uint64_t kOne31 = uint64_t{1} << 31;
  for (uint32_t digit = kBit / 2; digit > 0; digit /= 2) {
    x = (x * x) >> 31;
    if (x < 2 * kOne31) continue;
    x /= 2;
    bits += digit;
  }
  return bits;
}

std::vector<Anchor> FindAnchors(const Evidence& evidence, const StackCosts& costs, StackKind kind,
                                const std::vector<FrameSymbol>& frames, size_t jobs) {
  const StacksByFrame stacks(evidence, costs, kind);
  std::vector<Anchor> anchors(frames.size());
  ParallelFor(frames.size(), jobs, [&](size_t i) { anchors[i] = stacks.Find(frames[i]); });
  return anchors;
}

}  // namespace culprit::stackmine
