// SPDX-License-Identifier: Apache-2.0
#include "mine/branch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mine/database.h"
#include "mine/insertion_miner.h"
#include "mine/prefix_miner.h"
#include "mine/views.h"

namespace culprit::mine {
namespace {

// How many items the views of a branch may have, given those of its sequences.
constexpr size_t kViewGrowth = 4;
constexpr size_t kFreeViews = 65536;

// Holders whose sequences are fetched ahead: they are not neighbours in memory.
constexpr size_t kAhead = 8;

// How many known patterns the prefix miner's sequences are held against.
constexpr size_t kKnownTried = 64;

// Hands each sequence that holds the branch's item to one of two, with the
// holder's number, its items, the item's place and its cost: those in which no
// item stands twice, which are most, to `plain`.
template <typename Plain, typename Other>
bool ForEachHolder(const BranchInput& input, const Plain& plain, const Other& other) {
  const Batch& batch = input.batch;
  const std::span<const Holder> holders = batch.HoldersOf(input.item);
  std::vector<Item> unpacked;
  for (size_t h = 0; h < holders.size(); ++h) {
    if (h + 2 * kAhead < holders.size()) {
      __builtin_prefetch(&batch.sequences[holders[h + 2 * kAhead].sequence]);
      const Word* soon = batch.sequences[holders[h + kAhead].sequence].items;
      __builtin_prefetch(soon);
      __builtin_prefetch(soon + 32);
    }
    const auto [i, place] = holders[h];
    const int64_t cost = batch.sequences[i].cost;
    if (batch.sequences[i].repeats != 0) {
      if (!other(batch.At(i, unpacked), h, cost)) return false;
    } else if (batch.width.narrow()) {
      plain(batch.Narrow(i), place, cost);
    } else {
      plain(batch.At(i, unpacked), place, cost);
    }
  }
  return true;
}

// The views of the branch's item: one for every place it has. False if that is
// out of proportion to the sequences, as it is in deep recursion.
bool MakeViews(const BranchInput& input, int64_t lambda, Conditioner& conditioner) {
  ForEachHolder(
      input,
      [&](const auto& items, size_t place, int64_t cost) {
        conditioner.CountPlain(items, place, cost);
      },
      [&](std::span<const Item> items, size_t h, int64_t cost) {
        conditioner.Count(items, h, cost);
        return true;
      });
  conditioner.Keep(lambda, input.batch.HoldersOf(input.item).size());
  size_t length = 0;
  return ForEachHolder(
      input,
      [&](const auto& items, size_t place, int64_t cost) {
        length += items.size();
        conditioner.AddPlain(items, place, cost);
      },
      [&](std::span<const Item> items, size_t /*h*/, int64_t cost) {
        length += items.size();
        if (!conditioner.Add(items, kViewGrowth * length + kFreeViews)) return false;
        conditioner.EndGroup(cost);
        return true;
      });
}

class CostCounter {
 public:
  explicit CostCounter(const Views& data) : data_(data), signatures_(data.views.size()) {
    for (size_t v = 0; v < signatures_.size(); ++v) signatures_[v] = Signature(data.views.at(v));
  }

  int64_t CostOf(std::span<const Item> sequence) const {
    const uint64_t signature = Signature(sequence);
    int64_t cost = 0;
    for (size_t g = 0; g < data_.groups(); ++g) {
      for (size_t v = data_.group_begins[g]; v < data_.group_begins[g + 1]; ++v) {
        if ((signature & ~signatures_[v]) != 0) continue;
        if (!IsSubsequence(sequence, data_.views.at(v))) continue;
        cost += data_.costs[g];
        break;
      }
    }
    return cost;
  }

 private:
  const Views& data_;
  std::vector<uint64_t> signatures_;
};

void AddCandidates(const Views& data, const SequenceList& found, Item item,
                   Candidates& candidates) {
  if (found.empty()) return;
  const CostCounter counter(data);
  for (size_t f = 0; f < found.size(); ++f) {
    AddWithChosen(found.at(f), data, item, candidates.sequences);
    candidates.costs.push_back(counter.CostOf(found.at(f)));
  }
}

int64_t CostIn(const Database& data, std::span<const Item> sequence) {
  int64_t cost = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    if (IsSubsequence(sequence, data.sequences.at(i))) cost += data.costs[i];
  }
  return cost;
}

// The sequences of the branch with the items that matter in it, renumbered.
struct BranchDatabase {
  Database data;
  std::vector<Item> items;
};
BranchDatabase RestrictToBranch(const BranchInput& input, int64_t lambda) {
  const Batch& batch = input.batch;
  const std::span<const Holder> holders = batch.HoldersOf(input.item);
  std::vector<int64_t> costs(input.item_count);
  std::vector<size_t> seen_in(input.item_count, batch.sequences.size());
  std::vector<Item> unpacked;
  for (const auto [i, place] : holders) {
    for (const Item item : batch.At(i, unpacked)) {
      if (std::exchange(seen_in[item], i) != i) costs[item] += batch.sequences[i].cost;
    }
  }
  Views merged;
  std::vector<Item> numbers(input.item_count);
  for (Item item = input.item; item < input.item_count; ++item) {
    if (costs[item] < lambda) continue;
    numbers[item] = static_cast<Item>(merged.origins.size()) + 1;
    merged.origins.push_back(item);
  }
  GroupMerger merger;
  merger.Reserve(holders.size());
  for (const auto [i, place] : holders) {
    for (const Item item : batch.At(i, unpacked)) {
      if (numbers[item] != 0) merged.views.items.push_back(numbers[item] - 1);
    }
    merged.views.End();
    merger.EndGroup(batch.sequences[i].cost, merged);
  }
  return {{std::move(merged.views), std::move(merged.costs)}, std::move(merged.origins)};
}

// Without the sequences that lie within a known pattern: they support nothing
// new. The latest patterns are the likeliest.
Database WithoutKnown(const BranchDatabase& branch, const SequenceList& known) {
  Database rest;
  std::vector<Item> sequence;
  for (size_t i = 0; i < branch.data.size(); ++i) {
    sequence.clear();
    for (const Item item : branch.data.sequences.at(i)) sequence.push_back(branch.items[item]);
    bool contained = false;
    for (size_t k = known.size() - std::min(known.size(), kKnownTried); k < known.size(); ++k) {
      contained = contained || IsSubsequence(sequence, known.at(k));
    }
    if (contained) continue;
    rest.sequences.Add(branch.data.sequences.at(i));
    rest.costs.push_back(branch.data.costs[i]);
  }
  return rest;
}

// Appends to what the branch has so far. Patterns without its item belong to
// other branches.
void MineByPrefix(const BranchInput& input, SequenceList known, int64_t lambda,
                  Allowance& allowance, Candidates& candidates) {
  const BranchDatabase branch = RestrictToBranch(input, lambda);
  const auto add = [&](std::span<const Item> sequence) {
    std::vector<Item> items;
    for (const Item item : sequence) items.push_back(branch.items[item]);
    if (std::ranges::find(items, input.item) == items.end()) return;
    candidates.sequences.Add(items);
    candidates.costs.push_back(CostIn(branch.data, sequence));
    known.Add(items);
  };
  // What reaches lambda alone needs no search.
  for (size_t i = 0; i < branch.data.size(); ++i) {
    if (branch.data.costs[i] >= lambda) add(branch.data.sequences.at(i));
  }
  const Database rest = WithoutKnown(branch, known);
  SequenceList found;
  PrefixMiner(rest, branch.items.size(), lambda, allowance).Mine(found);
  for (size_t f = 0; f < found.size(); ++f) add(found.at(f));
}

}  // namespace

Candidates MineBranch(const BranchInput& input, const MaximalSet& known, int64_t lambda,
                      Allowance& allowance) {
  Candidates candidates;
  std::vector<uint8_t> left_out(input.item_count);
  std::fill_n(left_out.begin(), input.item, uint8_t{1});
  SequenceList patterns;
  for (const uint32_t pattern : known.With(input.item)) patterns.Add(known.at(pattern));
  Views data;
  Conditioner conditioner(input.item, input.item_count, left_out, data);
  if (!MakeViews(input, lambda, conditioner)) {
    MineByPrefix(input, patterns, lambda, allowance, candidates);
    return candidates;
  }
  SequenceList around;
  for (size_t p = 0; p < patterns.size(); ++p) conditioner.AddKnown(patterns.at(p), around);
  SequenceList found;
  bool complete = true;
  if (data.item_count() > 0) {
    complete = InsertionMiner(lambda, allowance).Mine(data, around, found);
  } else if (around.empty()) {
    found.End();
    allowance.Found();
  }
  AddCandidates(data, found, input.item, candidates);
  if (!complete) {
    for (size_t c = 0; c < candidates.sequences.size(); ++c) {
      patterns.Add(candidates.sequences.at(c));
    }
    MineByPrefix(input, std::move(patterns), lambda, allowance, candidates);
  }
  return candidates;
}

}  // namespace culprit::mine
