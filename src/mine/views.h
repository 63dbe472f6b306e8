// SPDX-License-Identifier: Apache-2.0
//
// Views: the conditional data of a pattern P. Every sequence that contains P is
// a group; it has one view for each way to place P in it. A view is what is
// left of the sequence around that placement, as items: an item stands for one
// symbol in one gap of P, so that the order against P needs no bookkeeping. A
// group supports an extension of P when one of its views contains it, and
// counts once. Passive data, used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mine/sequence_list.h"

namespace culprit::mine {

struct Views {
  SequenceList views;
  std::vector<size_t> group_begins = {0};  // group g is views [begins[g], begins[g + 1])
  std::vector<int64_t> costs;              // of the groups
  std::vector<int64_t> item_costs;         // of the items
  std::vector<Item> origins;               // item: its label in what it was made from

  size_t groups() const { return costs.size(); }
  size_t item_count() const { return item_costs.size(); }
  std::span<const Item> GroupItems(size_t group) const {
    const size_t begin = views.begins[group_begins[group]];
    return std::span(views.items).subspan(begin, views.begins[group_begins[group + 1]] - begin);
  }
  void EndGroup(int64_t cost) {
    group_begins.push_back(views.size());
    costs.push_back(cost);
  }
  void Clear();
  size_t Bytes() const;
};

// Ends groups: drops views that another view of the group contains, and merges
// the group with an equal one.
class GroupMerger {
 public:
  void Reserve(size_t groups);
  // Ends the group of the views added to `out` since the last.
  void EndGroup(int64_t cost, Views& out);
  // Adds a group of one view.
  void AddGroup(std::span<const Item> view, int64_t cost, Views& out);

 private:
  template <typename Same>
  bool AddToEqual(uint64_t hash, int64_t cost, Views& out, const Same& same);

  std::vector<uint32_t> table_;  // open addressing: group + 1
};

// Makes the conditional data of a pattern extended by an item `chosen`, in two
// passes over the data it comes from: Count and Keep, then Add and EndGroup.
// Labels tell an item of the old data before `chosen` (2 * item) from the same
// behind it (2 * item + 1); labels that reach lambda become the items of the
// new data, in order. `chosen` stands for the first item of its kind in its gap,
// so it never appears before itself.
class Conditioner {
 public:
  Conditioner(Item chosen, size_t item_count, std::span<const uint8_t> left_out, Views& out);

  // Counts a view of the given group, without the items left out; all views of
  // a group one after the other.
  void Count(std::span<const Item> view, size_t group, int64_t cost);
  // Counts a group of one view, in which no item stands twice and `chosen` at
  // `place`.
  template <typename Stored>
  void CountPlain(std::span<const Stored> view, size_t place, int64_t cost) {
    for (const Item item : view.first(place)) costs_[2 * item] += cost;
    for (const Item item : view.subspan(place + 1)) costs_[2 * item + 1] += cost;
  }
  void Keep(int64_t lambda, size_t groups);

  // Adds the views that a view becomes: one for each place of `chosen`. False:
  // there would be more than `most_items` items, and the group is not whole.
  bool Add(std::span<const Item> view, size_t most_items);
  // Ends the group of the views added since the last, if there are any.
  void EndGroup(int64_t cost);
  // Adds the group that a view as of CountPlain becomes.
  template <typename Stored>
  void AddPlain(std::span<const Stored> view, size_t place, int64_t cost) {
    around_.clear();
    AddAround(view, place, around_);
    merger_.AddGroup(around_, cost, out_);
  }

  // What stands around the first `chosen` of a known pattern, and around the
  // last, in new items; nothing if it holds none.
  void AddKnown(std::span<const Item> pattern, SequenceList& known) const;

 private:
  void CountLabel(Item label, size_t group, int64_t cost) {
    if (seen_in_[label] == group + 1) return;
    seen_in_[label] = group + 1;
    costs_[label] += cost;
  }
  // No `chosen` before the chosen one. Without this a run of n equal items would
  // be grown in 2^n ways.
  template <typename Stored>
  void AddAround(std::span<const Stored> sequence, size_t place, std::vector<Item>& items) const {
    const size_t begin = items.size();
    items.resize(begin + sequence.size());
    Item* to = items.data() + begin;
    for (const Item item : sequence.first(place)) {
      *to = numbers_[2 * item];
      to += *to == kDropped ? 0 : 1;
    }
    for (const Item item : sequence.subspan(place + 1)) {
      *to = numbers_[2 * item + 1];
      to += *to == kDropped ? 0 : 1;
    }
    items.resize(static_cast<size_t>(to - items.data()));
  }

  Item chosen_;
  std::span<const uint8_t> left_out_;
  Views& out_;
  GroupMerger merger_;
  std::vector<int64_t> costs_;   // of the labels
  std::vector<size_t> seen_in_;  // label: the last group, plus 1
  std::vector<Item> numbers_;    // label: the new item
  std::vector<Item> around_;
};

// The way back: a sequence of items of `child`, made under the condition of
// `chosen`, with `chosen` in its place and in the items `child` was made from.
void AddWithChosen(std::span<const Item> sequence, const Views& child, Item chosen,
                   SequenceList& out);

}  // namespace culprit::mine
