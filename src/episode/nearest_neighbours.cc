// SPDX-License-Identifier: Apache-2.0
#include "episode/nearest_neighbours.h"

#include <algorithm>
#include <numeric>

#include "base/parallel.h"

namespace culprit::episode {
namespace {

constexpr size_t kLeaf = 12;
constexpr size_t kChunk = 512;

class PointTree {
 public:
  explicit PointTree(const PointTable& points) : points_(points), order_(points.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    if (!order_.empty()) Build(0, order_.size());
  }

  uint64_t Nearest(uint32_t point) const {
    uint64_t best = UINT64_MAX;
    Search(0, Row(point), point, best);
    return best;
  }

 private:
  struct Node {
    uint32_t begin;
    uint32_t end;
    uint32_t low = 0;  // index of the two parts; 0: a leaf
    uint32_t high = 0;
    uint32_t dimension = 0;
    uint32_t at = 0;  // coordinates of the low part are at most this
  };

  const uint32_t* Row(uint32_t point) const {
    return &points_.coordinates[point * points_.dimensions];
  }

  uint32_t Build(size_t begin, size_t end) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    if (end - begin <= kLeaf) return index;
    size_t widest = 0;
    uint32_t width = 0;
    for (size_t d = 0; d < points_.dimensions; ++d) {
      uint32_t least = UINT32_MAX;
      uint32_t most = 0;
      for (size_t i = begin; i < end; ++i) {
        least = std::min(least, Row(order_[i])[d]);
        most = std::max(most, Row(order_[i])[d]);
      }
      if (most - least > width) {
        width = most - least;
        widest = d;
      }
    }
    if (width == 0) return index;  // all equal
    const auto first = order_.begin() + static_cast<ptrdiff_t>(begin);
    const auto last = order_.begin() + static_cast<ptrdiff_t>(end);
    const auto by = [&](uint32_t a, uint32_t b) { return Row(a)[widest] < Row(b)[widest]; };
    auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, by);
    // Equal coordinates stay together, so that both parts lose something.
    const uint32_t pivot = Row(*middle)[widest];
    middle = std::partition(first, last, [&](uint32_t p) { return Row(p)[widest] < pivot; });
    if (middle == first) {
      middle = std::partition(first, last, [&](uint32_t p) { return Row(p)[widest] <= pivot; });
    }
    const auto split = static_cast<size_t>(middle - order_.begin());
    nodes_[index].dimension = static_cast<uint32_t>(widest);
    nodes_[index].at = 0;
    for (size_t i = begin; i < split; ++i) {
      nodes_[index].at = std::max(nodes_[index].at, Row(order_[i])[widest]);
    }
    const uint32_t low = Build(begin, split);
    const uint32_t high = Build(split, end);
    nodes_[index].low = low;
    nodes_[index].high = high;
    return index;
  }

  void Search(uint32_t index, const uint32_t* query, uint32_t self, uint64_t& best) const {
    const Node& node = nodes_[index];
    if (node.low == 0) {
      for (size_t i = node.begin; i < node.end && best > 0; ++i) {
        if (order_[i] != self) best = std::min(best, Squared(query, Row(order_[i]), best));
      }
      return;
    }
    const uint32_t here = query[node.dimension];
    const bool is_low = here <= node.at;
    Search(is_low ? node.low : node.high, query, self, best);
    const uint64_t gap = is_low ? uint64_t{node.at} - here : uint64_t{here} - node.at;
    // From the low side the other part begins beyond `at`; from the high side
    // it ends there.
    if (gap * gap < best) Search(is_low ? node.high : node.low, query, self, best);
  }

  // Stops early once it cannot be the best any more.
  uint64_t Squared(const uint32_t* a, const uint32_t* b, uint64_t best) const {
    uint64_t sum = 0;
    for (size_t d = 0; d < points_.dimensions && sum < best; ++d) {
      const uint64_t difference = a[d] > b[d] ? a[d] - b[d] : b[d] - a[d];
      sum += difference * difference;
    }
    return sum;
  }

  const PointTable& points_;
  std::vector<uint32_t> order_;
  std::vector<Node> nodes_;
};

}  // namespace

std::vector<uint64_t> NearestNeighbours(const PointTable& points, size_t jobs) {
  std::vector<uint64_t> nearest(points.size(), UINT64_MAX);
  PointTable clamped = points;
  for (uint32_t& value : clamped.coordinates) value = std::min(value, kLargestCoordinate);
  const PointTree tree(clamped);
  const size_t chunks = (points.size() + kChunk - 1) / kChunk;
  ParallelFor(chunks, jobs, [&](size_t chunk) {
    const size_t end = std::min(points.size(), (chunk + 1) * kChunk);
    for (size_t i = chunk * kChunk; i < end; ++i) {
      nearest[i] = tree.Nearest(static_cast<uint32_t>(i));
    }
  });
  return nearest;
}

}  // namespace culprit::episode
