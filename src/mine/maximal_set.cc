// SPDX-License-Identifier: Apache-2.0
#include "mine/maximal_set.h"

#include <algorithm>
#include <utility>

namespace culprit::mine {
bool MaximalSet::Contained(std::span<const Item> sequence, uint64_t signature) const {
  const Item rarest =
      *std::ranges::min_element(sequence, {}, [&](Item item) { return with_item_[item].size(); });
  return std::ranges::any_of(with_item_[rarest], [&](uint32_t pattern) {
    return (signature & ~signatures_[pattern]) == 0 && IsSubsequence(sequence, at(pattern));
  });
}

void MaximalSet::AddBatch(std::span<const Candidates> batch) {
  std::vector<std::pair<std::span<const Item>, int64_t>> all;
  for (const Candidates& candidates : batch) {
    for (size_t c = 0; c < candidates.sequences.size(); ++c) {
      all.emplace_back(candidates.sequences.at(c), candidates.costs[c]);
    }
  }
  // The longest first: what contains a pattern is then there before it.
  std::ranges::sort(all, [](const auto& a, const auto& b) {
    if (a.first.size() != b.first.size()) return a.first.size() > b.first.size();
    return std::ranges::lexicographical_compare(a.first, b.first);
  });
  std::vector<Item> distinct;
  for (const auto& [sequence, cost] : all) {
    const uint64_t signature = Signature(sequence);
    if (Contained(sequence, signature)) continue;
    const auto number = static_cast<uint32_t>(size());
    patterns_.Add(sequence);
    costs_.push_back(cost);
    signatures_.push_back(signature);
    distinct.assign(sequence.begin(), sequence.end());
    std::ranges::sort(distinct);
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const Item item : distinct) with_item_[item].push_back(number);
  }
}

}  // namespace culprit::mine
