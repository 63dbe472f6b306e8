// SPDX-License-Identifier: Apache-2.0
#include "mine/mask_miner.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"
#include "mine/mask.h"

namespace culprit::mine {
namespace {

// After deletions counts fall and more can be deleted; the gain of repeating
// that dries up fast.
constexpr int kMostRounds = 4;

template <size_t W>
class MaskMiner {
 public:
  MaskMiner(size_t bits, int64_t lambda, Allowance& allowance)
      : bits_(bits), lambda_(lambda), allowance_(allowance), counts_(bits) {}

  // Of the data; groups of one view are sets, the others choices.
  void AddGroup(const std::vector<Mask<W>>& views, int64_t cost) {
    Level& root = LevelAt(0);
    if (views.size() == 1) {
      root.sets.push_back({views[0], cost});
    } else {
      root.choices.insert(root.choices.end(), views.begin(), views.end());
      root.choice_begins.push_back(root.choices.size());
      root.choice_costs.push_back(cost);
    }
  }
  void AddKnown(const Mask<W>& known) { LevelAt(0).known.push_back(known); }

  const std::vector<Mask<W>>& Mine() {
    const Level& root = LevelAt(0);
    const MemoryClaim memory(allowance_.budget(),
                             2 * (root.sets.size() * sizeof(Set) +
                                  (root.choices.size() + root.known.size()) * sizeof(Mask<W>)));
    Grow(0, {});
    return found_;
  }

 private:
  struct Set {
    Mask<W> mask;
    int64_t cost;
  };
  struct Level {
    std::vector<Set> sets;
    std::vector<Mask<W>> choices;
    std::vector<size_t> choice_begins = {0};
    std::vector<int64_t> choice_costs;
    std::vector<Mask<W>> known;  // what of a known pattern lies in the tail
    std::vector<std::pair<int64_t, uint32_t>> order;

    void Clear() {
      sets.clear();
      choices.clear();
      choice_begins.assign(1, 0);
      choice_costs.clear();
      known.clear();
    }
  };

  Level& LevelAt(size_t depth) {
    while (levels_.size() <= depth) levels_.emplace_back();
    return levels_[depth];
  }

  void Found(const Mask<W>& mask) {
    found_.push_back(mask);
    allowance_.Found();
  }

  // Counts each item's cost and returns the cost of all.
  int64_t Count(const Level& level) {
    std::ranges::fill(counts_, 0);
    int64_t total = 0;
    for (const Set& set : level.sets) {
      total += set.cost;
      set.mask.ForEach([&](size_t bit) { counts_[bit] += set.cost; });
    }
    for (size_t c = 0; c < level.choice_costs.size(); ++c) {
      total += level.choice_costs[c];
      Mask<W> any;
      for (size_t i = level.choice_begins[c]; i < level.choice_begins[c + 1]; ++i) {
        any = any | level.choices[i];
      }
      any.ForEach([&](size_t bit) { counts_[bit] += level.choice_costs[c]; });
    }
    return total;
  }

  // The items of every set and every choice.
  static Mask<W> InAll(const Level& level) {
    Mask<W> all;
    all.words.fill(~uint64_t{0});
    for (const Set& set : level.sets) all = all & set.mask;
    for (const Mask<W>& choice : level.choices) all = all & choice;
    return all;
  }

  static void MergeEqual(std::vector<Set>& sets) {
    if (sets.size() < 2) return;
    std::ranges::sort(sets, {}, &Set::mask);
    size_t last = 0;
    for (size_t i = 1; i < sets.size(); ++i) {
      if (sets[i].mask == sets[last].mask) {
        sets[last].cost += sets[i].cost;
      } else {
        sets[++last] = sets[i];
      }
    }
    sets.resize(last + 1);
  }

  // Keeps of the data only the items of `kept`; false if a known pattern has
  // all of them, so that nothing new can come.
  static bool Restrict(const Mask<W>& kept, Level& level) {
    for (Mask<W>& known : level.known) {
      known = known & kept;
      if (known == kept) return false;
    }
    for (Set& set : level.sets) set.mask = set.mask & kept;
    for (Mask<W>& choice : level.choices) choice = choice & kept;
    MergeEqual(level.sets);
    if (level.known.size() > 8) {
      std::ranges::sort(level.known);
      level.known.erase(std::unique(level.known.begin(), level.known.end()), level.known.end());
    }
    return true;
  }

  static bool IsKnown(const Level& level, const Mask<W>& mask) {
    return std::ranges::any_of(level.known, [&](const Mask<W>& known) { return mask.IsIn(known); });
  }

  // A new pattern is in no set that lies within a known pattern: such sets add
  // nothing to any new pattern's cost.
  static bool DeleteKnown(Level& level) {
    if (level.known.empty()) return false;
    const size_t before = level.sets.size() + level.choices.size();
    std::erase_if(level.sets, [&](const Set& set) { return IsKnown(level, set.mask); });
    size_t choices = 0;
    size_t groups = 0;
    size_t begin = 0;
    for (size_t c = 0; c < level.choice_costs.size(); ++c) {
      const size_t end = level.choice_begins[c + 1];
      const size_t first = choices;
      for (size_t i = begin; i < end; ++i) {
        if (!IsKnown(level, level.choices[i])) level.choices[choices++] = level.choices[i];
      }
      begin = end;
      if (choices == first) continue;
      level.choice_costs[groups++] = level.choice_costs[c];
      level.choice_begins[groups] = choices;
    }
    level.choices.resize(choices);
    level.choice_costs.resize(groups);
    level.choice_begins.resize(groups + 1);
    return level.sets.size() + level.choices.size() != before;
  }

  // Shrinks the data to what can still matter. False: this node is done.
  bool Reduce(Level& level, Mask<W>& head, Mask<W>& tail) {
    for (int round = 1;; ++round) {
      const int64_t total = Count(level);
      if (total < lambda_) return false;
      const Mask<W> all = InAll(level);
      tail = {};
      for (size_t bit = 0; bit < bits_; ++bit) {
        if (counts_[bit] >= lambda_ && !all.Has(bit)) tail.Set(bit);
      }
      if (!all.Empty()) {
        head = head | all;
        std::erase_if(level.known, [&](const Mask<W>& known) { return !all.IsIn(known); });
      }
      if (tail.Empty()) {
        if (level.known.empty()) Found(head);
        return false;
      }
      if (!Restrict(tail, level)) return false;
      if (!DeleteKnown(level)) return true;
      if (round == kMostRounds) {
        Count(level);
        return true;
      }
    }
  }

  void Grow(size_t depth, Mask<W> head) {
    if (allowance_.Stopped()) return;
    Level& level = LevelAt(depth);
    Mask<W> tail;
    if (!Reduce(level, head, tail)) return;
    for (const Set& set : level.sets) {
      if (set.mask == tail && set.cost >= lambda_) return Found(head | tail);
    }
    level.order.clear();
    Mask<W> left;
    tail.ForEach([&](size_t bit) {
      if (counts_[bit] < lambda_) return;
      level.order.emplace_back(counts_[bit], static_cast<uint32_t>(bit));
      left.Set(bit);
    });
    std::ranges::sort(level.order);
    for (const auto& [cost, bit] : level.order) {
      if (IsKnown(level, left) || allowance_.Stopped()) return;
      left.Reset(bit);
      const size_t found_before = found_.size();
      Project(level, bit, left, LevelAt(depth + 1));
      Mask<W> longer = head;
      longer.Set(bit);
      Grow(depth + 1, longer);
      for (size_t f = found_before; f < found_.size(); ++f) level.known.push_back(found_[f] & left);
    }
  }

  static void Project(const Level& level, size_t bit, const Mask<W>& left, Level& next) {
    next.Clear();
    for (const Set& set : level.sets) {
      if (set.mask.Has(bit)) next.sets.push_back({set.mask & left, set.cost});
    }
    for (size_t c = 0; c < level.choice_costs.size(); ++c) {
      for (size_t i = level.choice_begins[c]; i < level.choice_begins[c + 1]; ++i) {
        if (level.choices[i].Has(bit)) next.choices.push_back(level.choices[i] & left);
      }
      const size_t added = next.choices.size() - next.choice_begins.back();
      if (added == 1) {
        next.sets.push_back({next.choices.back(), level.choice_costs[c]});
        next.choices.pop_back();
      } else if (added > 1) {
        next.choice_begins.push_back(next.choices.size());
        next.choice_costs.push_back(level.choice_costs[c]);
      }
    }
    for (const Mask<W>& known : level.known) {
      if (known.Has(bit)) next.known.push_back(known & left);
    }
  }

  size_t bits_;
  int64_t lambda_;
  Allowance& allowance_;
  std::deque<Level> levels_;  // references stay valid as it grows
  std::vector<int64_t> counts_;
  std::vector<Mask<W>> found_;
};

template <size_t W>
Mask<W> MaskOf(std::span<const Item> sequence, const ItemOrder& order) {
  Mask<W> mask;
  for (const Item item : sequence) {
    if (order.ranks[item] != kNoRank) mask.Set(order.ranks[item]);
  }
  return mask;
}

// Known patterns need not follow the order (the views that did may be gone);
// what ascends of one is still contained in it.
template <size_t W>
Mask<W> AscendingMaskOf(std::span<const Item> sequence, const ItemOrder& order) {
  Mask<W> mask;
  uint32_t next = 0;
  for (const Item item : sequence) {
    const uint32_t rank = order.ranks[item];
    if (rank == kNoRank || rank < next) continue;
    mask.Set(rank);
    next = rank + 1;
  }
  return mask;
}

template <size_t W>
void MineWith(const Views& data, const ItemOrder& order, const SequenceList& known, int64_t lambda,
              Allowance& allowance, SequenceList& found) {
  MaskMiner<W> miner(order.ranked, lambda, allowance);
  std::vector<Mask<W>> masks;
  for (size_t g = 0; g < data.groups(); ++g) {
    masks.clear();
    for (size_t v = data.group_begins[g]; v < data.group_begins[g + 1]; ++v) {
      masks.push_back(MaskOf<W>(data.views.at(v), order));
    }
    miner.AddGroup(masks, data.costs[g]);
  }
  for (size_t k = 0; k < known.size(); ++k) miner.AddKnown(AscendingMaskOf<W>(known.at(k), order));
  std::vector<Item> item_at(order.ranked);
  for (Item item = 0; item < order.ranks.size(); ++item) {
    if (order.ranks[item] != kNoRank) item_at[order.ranks[item]] = item;
  }
  for (const Mask<W>& mask : miner.Mine()) {
    mask.ForEach([&](size_t bit) { found.items.push_back(item_at[bit]); });
    found.End();
  }
}

}  // namespace

void MineMasks(const Views& data, const ItemOrder& order, const SequenceList& known, int64_t lambda,
               Allowance& allowance, SequenceList& found) {
  CULPRIT_CHECK(order.ranked <= kMostMaskItems);
  const auto mine = order.ranked <= 64     ? MineWith<1>
                    : order.ranked <= 128  ? MineWith<2>
                    : order.ranked <= 256  ? MineWith<4>
                    : order.ranked <= 512  ? MineWith<8>
                    : order.ranked <= 1024 ? MineWith<16>
                                           : MineWith<32>;
  mine(data, order, known, lambda, allowance, found);
}

}  // namespace culprit::mine
