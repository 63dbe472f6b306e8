// SPDX-License-Identifier: Apache-2.0
#include "mine/insertion_miner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mine/item_order.h"
#include "mine/mask_miner.h"

namespace culprit::mine {
namespace {

// When to give up. Stacks without much recursion stay far below: their
// conditional data only shrinks as a pattern grows.
constexpr size_t kMostDepth = 64;
constexpr size_t kGrowth = 8;
constexpr size_t kWorkPerItem = 400;
constexpr size_t kFreeWork = 200'000;

bool IsKnown(std::span<const Item> view, const SequenceList& known) {
  for (size_t k = 0; k < known.size(); ++k) {
    if (IsSubsequence(view, known.at(k))) return true;
  }
  return false;
}

// Without the views that lie within a known pattern: they support nothing new.
Views WithoutKnown(const Views& data, const SequenceList& known) {
  Views rest;
  rest.origins = data.origins;
  rest.item_costs.assign(data.item_count(), 0);
  std::vector<size_t> seen_in(data.item_count(), data.groups());
  for (size_t g = 0; g < data.groups(); ++g) {
    const size_t views_before = rest.views.size();
    for (size_t v = data.group_begins[g]; v < data.group_begins[g + 1]; ++v) {
      const std::span<const Item> view = data.views.at(v);
      if (IsKnown(view, known)) continue;
      rest.views.Add(view);
      for (const Item item : view) {
        if (seen_in[item] == g) continue;
        seen_in[item] = g;
        rest.item_costs[item] += data.costs[g];
      }
    }
    if (rest.views.size() != views_before) rest.EndGroup(data.costs[g]);
  }
  return rest;
}

}  // namespace

bool InsertionMiner::Mine(const Views& data, const SequenceList& known, SequenceList& found) {
  most_items_ = kGrowth * data.views.items.size() + 4096;
  most_work_ = kWorkPerItem * data.views.items.size() + kFreeWork;
  work_ = 0;
  gave_up_ = false;
  SequenceList own_known = known;
  Grow(data, own_known, 0, found);
  return !gave_up_;
}

bool InsertionMiner::TooMuch(size_t depth, size_t items) {
  work_ += items + 64;
  if (depth > kMostDepth || items > most_items_ || work_ > most_work_) gave_up_ = true;
  return gave_up_;
}

void InsertionMiner::Grow(const Views& data, SequenceList& known, size_t depth,
                          SequenceList& found) {
  if (data.item_count() > 2 * kMostMaskItems) gave_up_ = true;
  if (allowance_.Stopped() || TooMuch(depth, data.views.items.size())) return;
  const MemoryClaim memory(allowance_.budget(), data.Bytes());
  std::vector<uint8_t> left_out(data.item_count());
  ItemOrder order = OrderItems(data, left_out);
  if (order.ranked > kMostMaskItems) {
    gave_up_ = true;
    return;
  }
  if (order.feedback.empty()) {
    MineMasks(data, order, known, lambda_, allowance_, found);
    return;
  }
  Views rest = known.empty() ? data : WithoutKnown(data, known);
  for (Item item = 0; item < rest.item_count(); ++item) {
    if (rest.item_costs[item] < lambda_) left_out[item] = 1;
  }
  order = OrderItems(rest, left_out);
  std::ranges::sort(order.feedback, {},
                    [&](Item item) { return std::pair(rest.item_costs[item], item); });
  for (const Item chosen : order.feedback) {
    if (allowance_.Stopped() || gave_up_) return;
    const size_t found_before = found.size();
    GrowWith(rest, chosen, left_out, known, depth, found);
    left_out[chosen] = 1;
    for (size_t f = found_before; f < found.size(); ++f) known.Add(found.at(f));
  }
  if (!gave_up_) MineMasks(rest, order, known, lambda_, allowance_, found);
}

void InsertionMiner::GrowWith(const Views& data, Item chosen, std::span<const uint8_t> left_out,
                              const SequenceList& known, size_t depth, SequenceList& found) {
  Views child;
  Conditioner conditioner(chosen, data.item_count(), left_out, child);
  for (size_t g = 0; g < data.groups(); ++g) {
    for (size_t v = data.group_begins[g]; v < data.group_begins[g + 1]; ++v) {
      conditioner.Count(data.views.at(v), g, data.costs[g]);
    }
  }
  conditioner.Keep(lambda_, data.groups());
  for (size_t g = 0; g < data.groups(); ++g) {
    for (size_t v = data.group_begins[g]; v < data.group_begins[g + 1]; ++v) {
      if (conditioner.Add(data.views.at(v), most_items_)) continue;
      gave_up_ = true;
      return;
    }
    conditioner.EndGroup(data.costs[g]);
  }
  SequenceList child_known;
  for (size_t k = 0; k < known.size(); ++k) conditioner.AddKnown(known.at(k), child_known);
  SequenceList child_found;
  if (child.item_count() > 0) {
    Grow(child, child_known, depth + 1, child_found);
  } else if (child_known.empty()) {
    child_found.End();
    allowance_.Found();
  }
  for (size_t f = 0; f < child_found.size(); ++f) {
    AddWithChosen(child_found.at(f), child, chosen, found);
  }
}

}  // namespace culprit::mine
