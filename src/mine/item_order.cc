// SPDX-License-Identifier: Apache-2.0
#include "mine/item_order.h"

#include <bit>

namespace culprit::mine {
namespace {

// "Comes immediately before", once the items that are out of it are taken away.
class Precedence {
 public:
  Precedence(const Views& data, std::span<const uint8_t> out)
      : count_(data.item_count()),
        words_((count_ + 63) / 64),
        after_(count_ * words_),
        before_(count_ * words_),
        after_degree_(count_),
        before_degree_(count_),
        gone_(out.begin(), out.end()),
        repeats_(count_) {
    for (const uint8_t gone : gone_) left_ += gone == 0 ? 1 : 0;
    for (size_t v = 0; v < data.views.size(); ++v) AddView(data.views.at(v));
  }

  const std::vector<uint8_t>& repeats() const { return repeats_; }
  size_t left() const { return left_; }
  bool gone(Item item) const { return gone_[item] != 0; }
  double Degrees(Item item) const {
    return static_cast<double>(after_degree_[item]) * static_cast<double>(before_degree_[item]);
  }

  void Remove(Item item) {
    gone_[item] = 1;
    --left_;
    ForEach(&after_[item * words_], [&](Item next) {
      if (gone_[next] == 0 && --before_degree_[next] == 0) free_.push_back(next);
    });
    ForEach(&before_[item * words_], [&](Item previous) {
      if (gone_[previous] == 0 && --after_degree_[previous] == 0) free_.push_back(previous);
    });
  }

  // Takes away all that lies on no circle.
  void RemoveFree() {
    while (!free_.empty()) {
      const Item item = free_.back();
      free_.pop_back();
      if (gone_[item] == 0) Remove(item);
    }
  }
  void FindFree() {
    for (Item item = 0; item < count_; ++item) {
      if (gone_[item] == 0 && (before_degree_[item] == 0 || after_degree_[item] == 0)) {
        free_.push_back(item);
      }
    }
  }

  // Ranks what is left when it has no circles.
  uint32_t Rank(std::vector<uint32_t>& ranks) {
    std::vector<Item> queue;
    for (Item item = 0; item < count_; ++item) {
      if (gone_[item] == 0 && before_degree_[item] == 0) queue.push_back(item);
    }
    for (size_t i = 0; i < queue.size(); ++i) {
      ranks[queue[i]] = static_cast<uint32_t>(i);
      ForEach(&after_[queue[i] * words_], [&](Item next) {
        if (--before_degree_[next] == 0) queue.push_back(next);
      });
    }
    return static_cast<uint32_t>(queue.size());
  }

 private:
  template <typename Visit>
  void ForEach(const uint64_t* row, const Visit& visit) const {
    for (size_t w = 0; w < words_; ++w) {
      for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
        visit(static_cast<Item>(w * 64 + static_cast<size_t>(std::countr_zero(bits))));
      }
    }
  }

  void AddView(std::span<const Item> view) {
    Item previous = kNoRank;
    for (const Item item : view) {
      if (gone_[item] != 0) continue;
      if (item == previous) {
        repeats_[item] = 1;
      } else if (previous != kNoRank) {
        AddEdge(previous, item);
      }
      previous = item;
    }
  }

  void AddEdge(Item from, Item to) {
    uint64_t& word = after_[from * words_ + to / 64];
    const uint64_t bit = uint64_t{1} << (to % 64);
    if ((word & bit) != 0) return;
    word |= bit;
    before_[to * words_ + from / 64] |= uint64_t{1} << (from % 64);
    ++after_degree_[from];
    ++before_degree_[to];
  }

  size_t count_;
  size_t words_;
  std::vector<uint64_t> after_;
  std::vector<uint64_t> before_;
  std::vector<uint32_t> after_degree_;
  std::vector<uint32_t> before_degree_;
  std::vector<uint8_t> gone_;
  std::vector<uint8_t> repeats_;
  std::vector<Item> free_;
  size_t left_ = 0;
};

// One round: enough items to break every circle of this graph. Taking an item
// away makes its neighbours adjacent, so the graph must be built again after.
std::vector<Item> BreakCircles(const Views& data, Precedence& graph) {
  std::vector<Item> broken;
  for (Item item = 0; item < data.item_count(); ++item) {
    if (graph.repeats()[item] != 0) broken.push_back(item);
  }
  for (const Item item : broken) graph.Remove(item);
  graph.FindFree();
  graph.RemoveFree();
  while (graph.left() > 0) {
    // Cheap items first: their branches are small, and they would otherwise
    // multiply the masks of the rest.
    Item best = 0;
    double best_score = -1;
    for (Item item = 0; item < data.item_count(); ++item) {
      if (graph.gone(item)) continue;
      const double score = graph.Degrees(item) / static_cast<double>(data.item_costs[item]);
      if (score > best_score) {
        best_score = score;
        best = item;
      }
    }
    broken.push_back(best);
    graph.Remove(best);
    graph.RemoveFree();
  }
  return broken;
}

}  // namespace

ItemOrder OrderItems(const Views& data, std::span<const uint8_t> left_out) {
  ItemOrder order;
  order.ranks.assign(data.item_count(), kNoRank);
  std::vector<uint8_t> out(left_out.begin(), left_out.end());
  for (;;) {
    Precedence graph(data, out);
    Precedence eaten = graph;
    const std::vector<Item> broken = BreakCircles(data, eaten);
    if (broken.empty()) {
      order.ranked = graph.Rank(order.ranks);
      return order;
    }
    for (const Item item : broken) {
      out[item] = 1;
      order.feedback.push_back(item);
    }
  }
}

}  // namespace culprit::mine
