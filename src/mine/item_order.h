// SPDX-License-Identifier: Apache-2.0
//
// OrderItems: looks for one order of items that all views agree on. The items
// of `feedback` stand in the way: they repeat within a view, or lie on circles
// of "comes immediately before". All others get a rank, such that every view,
// without the feedback items, is strictly ascending; a set of them is then a
// sequence. The feedback set is small but not the smallest (that is NP-hard):
// greedy, by degrees and cost, deterministic. O(views + items^2 / 64) a round.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "mine/views.h"

namespace culprit::mine {

inline constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

struct ItemOrder {
  std::vector<Item> feedback;
  std::vector<uint32_t> ranks;  // kNoRank: feedback, or left out
  uint32_t ranked = 0;
};

ItemOrder OrderItems(const Views& data, std::span<const uint8_t> left_out);

}  // namespace culprit::mine
