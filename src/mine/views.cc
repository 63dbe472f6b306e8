// SPDX-License-Identifier: Apache-2.0
#include "mine/views.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "mine/hash.h"

namespace culprit::mine {
namespace {

// Comparing all views of a group with each other is quadratic; groups beyond
// this keep what they have, which costs time but never correctness.
constexpr size_t kMostViewsCompared = 24;

uint64_t HashGroup(const Views& views, size_t first_view, size_t end_view) {
  uint64_t hash = 0;
  for (size_t v = first_view; v < end_view; ++v) hash = MixHash(hash, HashItems(views.views.at(v)));
  return hash;
}

bool SameGroup(const Views& views, size_t group, size_t first_view, size_t end_view) {
  const size_t begin = views.group_begins[group];
  if (views.group_begins[group + 1] - begin != end_view - first_view) return false;
  for (size_t v = first_view; v < end_view; ++v) {
    if (!std::ranges::equal(views.views.at(v), views.views.at(begin + v - first_view))) {
      return false;
    }
  }
  return true;
}

// Keeps of the views from `first_view` on those that no other of them contains.
void DropContainedViews(size_t first_view, SequenceList& views) {
  const size_t count = views.size() - first_view;
  if (count < 2 || count > kMostViewsCompared) return;
  uint32_t contained = 0;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      if (i == j || (contained >> j & 1U) != 0) continue;
      if (IsSubsequence(views.at(first_view + i), views.at(first_view + j))) {
        contained |= 1U << i;
        break;
      }
    }
  }
  size_t end = views.begins[first_view];
  size_t kept = first_view;
  for (size_t i = 0; i < count; ++i) {
    if ((contained >> i & 1U) != 0) continue;
    const size_t begin = views.begins[first_view + i];
    const size_t size = views.begins[first_view + i + 1] - begin;
    std::copy_n(views.items.begin() + static_cast<ptrdiff_t>(begin), size,
                views.items.begin() + static_cast<ptrdiff_t>(end));
    views.begins[kept++] = end;
    end += size;
  }
  views.begins[kept] = end;
  views.begins.resize(kept + 1);
  views.items.resize(end);
}

}  // namespace

void Views::Clear() {
  views.Clear();
  group_begins.assign(1, 0);
  costs.clear();
  item_costs.clear();
  origins.clear();
}

size_t Views::Bytes() const {
  return views.Bytes() + group_begins.size() * sizeof(size_t) + costs.size() * sizeof(int64_t) +
         item_costs.size() * (sizeof(int64_t) + sizeof(Item));
}

void GroupMerger::Reserve(size_t groups) { table_.assign(std::bit_ceil(2 * groups + 2), 0); }

// Where there is no equal group, the next one to be ended gets its place.
template <typename Same>
bool GroupMerger::AddToEqual(uint64_t hash, int64_t cost, Views& out, const Same& same) {
  const size_t slots = table_.size();
  size_t slot = hash & (slots - 1);
  for (; table_[slot] != 0; slot = (slot + 1) & (slots - 1)) {
    const size_t group = table_[slot] - 1;
    if (!same(group)) continue;
    out.costs[group] += cost;
    return true;
  }
  table_[slot] = static_cast<uint32_t>(out.groups() + 1);
  return false;
}

void GroupMerger::EndGroup(int64_t cost, Views& out) {
  const size_t first_view = out.group_begins.back();
  DropContainedViews(first_view, out.views);
  const size_t end_view = out.views.size();
  const bool merged =
      AddToEqual(HashGroup(out, first_view, end_view), cost, out,
                 [&](size_t group) { return SameGroup(out, group, first_view, end_view); });
  if (merged) {
    out.views.items.resize(out.views.begins[first_view]);
    out.views.begins.resize(first_view + 1);
  } else {
    out.EndGroup(cost);
  }
}

void GroupMerger::AddGroup(std::span<const Item> view, int64_t cost, Views& out) {
  const bool merged = AddToEqual(MixHash(0, HashItems(view)), cost, out, [&](size_t group) {
    const size_t first_view = out.group_begins[group];
    return out.group_begins[group + 1] == first_view + 1 &&
           std::ranges::equal(out.views.at(first_view), view);
  });
  if (merged) return;
  out.views.Add(view);
  out.EndGroup(cost);
}

Conditioner::Conditioner(Item chosen, size_t item_count, std::span<const uint8_t> left_out,
                         Views& out)
    : chosen_(chosen),
      left_out_(left_out),
      out_(out),
      costs_(2 * item_count),
      seen_in_(2 * item_count) {}

void Conditioner::Count(std::span<const Item> view, size_t group, int64_t cost) {
  const auto found = std::ranges::find(view, chosen_);
  if (found == view.end()) return;
  const auto first = static_cast<size_t>(found - view.begin());
  for (size_t i = 0; i < first; ++i) CountLabel(2 * view[i], group, cost);
  size_t last = first;
  for (size_t i = first + 1; i < view.size(); ++i) {
    CountLabel(2 * view[i] + 1, group, cost);
    if (view[i] == chosen_) last = i;
  }
  for (size_t i = first + 1; i < last; ++i) {
    if (view[i] != chosen_) CountLabel(2 * view[i], group, cost);
  }
}

void Conditioner::Keep(int64_t lambda, size_t groups) {
  out_.Clear();
  numbers_.assign(costs_.size(), kDropped);
  for (Item label = 0; label < costs_.size(); ++label) {
    if (costs_[label] < lambda || left_out_[label / 2] != 0) continue;
    numbers_[label] = static_cast<Item>(out_.item_costs.size());
    out_.item_costs.push_back(costs_[label]);
    out_.origins.push_back(label);
  }
  merger_.Reserve(groups);
}

bool Conditioner::Add(std::span<const Item> view, size_t most_items) {
  for (size_t at = 0; at < view.size(); ++at) {
    if (view[at] != chosen_) continue;
    if (out_.views.items.size() > most_items) return false;
    AddAround(view, at, out_.views.items);
    out_.views.End();
  }
  return true;
}

void Conditioner::EndGroup(int64_t cost) {
  if (out_.views.size() > out_.group_begins.back()) merger_.EndGroup(cost, out_);
}

void Conditioner::AddKnown(std::span<const Item> pattern, SequenceList& known) const {
  const auto found = std::ranges::find(pattern, chosen_);
  if (found == pattern.end()) return;
  const auto first = static_cast<size_t>(found - pattern.begin());
  size_t last = pattern.size() - 1;
  while (pattern[last] != chosen_) --last;
  AddAround(pattern, first, known.items);
  known.End();
  if (last == first) return;
  AddAround(pattern, last, known.items);
  known.End();
}

void AddWithChosen(std::span<const Item> sequence, const Views& child, Item chosen,
                   SequenceList& out) {
  bool placed = false;
  for (const Item item : sequence) {
    const Item label = child.origins[item];
    if (!placed && label % 2 == 1) {
      out.items.push_back(chosen);
      placed = true;
    }
    out.items.push_back(label / 2);
  }
  if (!placed) out.items.push_back(chosen);
  out.End();
}

}  // namespace culprit::mine
