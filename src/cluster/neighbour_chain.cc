// SPDX-License-Identifier: Apache-2.0
#include "cluster/neighbour_chain.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace culprit::cluster {
namespace {

constexpr uint32_t kNoLink = UINT32_MAX;

}  // namespace

// The sums of large clusters times the counts of others do not fit 64 bits; the
// remainders of a division do.
int CompareMeans(const Mean& x, const Mean& y) {
  const uint64_t x_whole = x.sum / x.count;
  const uint64_t y_whole = y.sum / y.count;
  if (x_whole != y_whole) return x_whole < y_whole ? -1 : 1;
  const uint64_t x_rest = x.sum % x.count * y.count;
  const uint64_t y_rest = y.sum % y.count * x.count;
  if (x_rest != y_rest) return x_rest < y_rest ? -1 : 1;
  return 0;
}

NeighbourChain::NeighbourChain(const std::vector<SimilarPair>& edges, Linkage linkage, Fixed least,
                               PairSource& source)
    : linkage_(linkage), least_(least), source_(&source) {
  std::vector<Rank> ranks;
  for (const SimilarPair& edge : edges) {
    ranks.push_back(edge.a);
    ranks.push_back(edge.b);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  leaves_ = ranks.size();
  clusters_.reserve(2 * leaves_);
  for (const Rank rank : ranks) clusters_.push_back({.lowest = rank});
  const auto leaf_of = [&](Rank rank) {
    return static_cast<Node>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
  };
  for (const SimilarPair& edge : edges) {
    const auto link = static_cast<uint32_t>(links_.size());
    const Node a = leaf_of(edge.a);
    const Node b = leaf_of(edge.b);
    links_.push_back({.known = edge.similarity});
    clusters_[a].neighbours.push_back({b, link});
    clusters_[b].neighbours.push_back({a, link});
  }
  for (Cluster& cluster : clusters_) {
    std::sort(cluster.neighbours.begin(), cluster.neighbours.end(),
              [](const Neighbour& x, const Neighbour& y) { return x.node < y.node; });
  }
}

std::vector<Joined> NeighbourChain::Run() {
  std::vector<Joined> joined;
  std::vector<Node> chain;
  for (Node start = 0; start < clusters_.size(); ++start) {
    if (!clusters_[start].alive) continue;
    chain.push_back(start);
    while (!chain.empty()) {
      const Node top = chain.back();
      Neighbour nearest;
      if (!Nearest(top, nearest)) {
        // Similarities are symmetric: what is below it in the chain would not
        // have led here. It will never be joined, as later clusters are unions.
        CULPRIT_CHECK(chain.size() == 1);
        chain.pop_back();
      } else if (chain.size() > 1 && chain[chain.size() - 2] == nearest.node) {
        const Cluster& a = clusters_[top];
        const Cluster& b = clusters_[nearest.node];
        const Mean mean = MeanOf(a, b, links_[nearest.link]);
        joined.push_back(
            {std::min(a.lowest, b.lowest), std::max(a.lowest, b.lowest), mean.sum, mean.count});
        chain.resize(chain.size() - 2);
        // A new cluster comes behind all others and is a start of its own.
        Join(top, nearest.node);
      } else {
        chain.push_back(nearest.node);
      }
    }
  }
  return joined;
}

Mean NeighbourChain::MeanOf(const Cluster& a, const Cluster& b, const Link& link) const {
  const uint64_t pairs = linkage_ == Linkage::kAverage ? uint64_t{a.size} * b.size : 1;
  return {link.known + link.bound, pairs};
}

void NeighbourChain::DropDead(Cluster& cluster) {
  std::erase_if(cluster.neighbours, [&](const Neighbour& n) { return !clusters_[n.node].alive; });
}

// The best by upper bounds, until the best is exact.
bool NeighbourChain::Nearest(Node node, Neighbour& nearest) {
  Cluster& cluster = clusters_[node];
  DropDead(cluster);
  while (true) {
    const Neighbour* best = nullptr;
    Mean best_mean;
    std::pair<Rank, Rank> best_ranks;
    for (const Neighbour& neighbour : cluster.neighbours) {
      const Cluster& other = clusters_[neighbour.node];
      const Mean mean = MeanOf(cluster, other, links_[neighbour.link]);
      if (mean.sum < least_ * mean.count) continue;
      const int order = best == nullptr ? 1 : CompareMeans(mean, best_mean);
      if (order < 0) continue;
      const auto ranks = std::minmax(cluster.lowest, other.lowest);
      if (order == 0 && best_ranks < std::pair<Rank, Rank>(ranks)) continue;
      best = &neighbour;
      best_mean = mean;
      best_ranks = ranks;
    }
    if (best == nullptr) return false;
    nearest = *best;
    Link& link = links_[nearest.link];
    if (link.blocks.empty()) return true;
    LookInto(link, cluster, clusters_[nearest.node]);
  }
}

// First all blocks by the bounds of their pairs; when that has been done, block
// by block exactly, for as long as the link may still reach the least.
void NeighbourChain::LookInto(Link& link, const Cluster& a, const Cluster& b) {
  bool by_pairs = true;
  for (const Block& block : link.blocks) by_pairs = by_pairs && block.by_pairs;
  if (!by_pairs) {
    for (size_t i = 0; i < link.blocks.size(); ++i) {
      if (!link.blocks[i].by_pairs) LookIntoBlock(link, i);
    }
    return;
  }
  while (!link.blocks.empty()) {
    const Mean mean = MeanOf(a, b, link);
    if (mean.sum < least_ * mean.count) return;
    LookIntoBlock(link, link.blocks.size() - 1);
  }
}

void NeighbourChain::LookIntoBlock(Link& link, size_t block_number) {
  Block& block = link.blocks[block_number];
  const std::vector<Rank> of_x = Members(block.x);
  const std::vector<Rank> of_y = Members(block.y);
  uint64_t sum = 0;
  for (const Rank x : of_x) {
    for (const Rank y : of_y) {
      sum += block.by_pairs ? source_->Similarity(x, y)
                            : std::min(source_->UpperBound(x, y), least_ - 1);
    }
  }
  link.bound -= block.bound;
  if (!block.by_pairs) {
    link.bound += sum;
    block.bound = sum;
    block.by_pairs = true;
  } else {
    link.known += sum;
    link.blocks.erase(link.blocks.begin() + static_cast<ptrdiff_t>(block_number));
  }
}

std::vector<Rank> NeighbourChain::Members(Node node) const {
  std::vector<Rank> members;
  std::vector<Node> open = {node};
  while (!open.empty()) {
    const Node next = open.back();
    open.pop_back();
    if (next < leaves_) {
      members.push_back(clusters_[next].lowest);
    } else {
      open.push_back(clusters_[next].right);
      open.push_back(clusters_[next].left);
    }
  }
  return members;
}

NeighbourChain::Node NeighbourChain::Join(Node a, Node b) {
  const auto made = static_cast<Node>(clusters_.size());
  clusters_.push_back({.lowest = std::min(clusters_[a].lowest, clusters_[b].lowest),
                       .size = clusters_[a].size + clusters_[b].size,
                       .left = a,
                       .right = b});
  clusters_[a].alive = false;
  clusters_[b].alive = false;
  DropDead(clusters_[a]);
  DropDead(clusters_[b]);
  const std::vector<Neighbour> of_a = std::exchange(clusters_[a].neighbours, {});
  const std::vector<Neighbour> of_b = std::exchange(clusters_[b].neighbours, {});
  for (size_t i = 0, j = 0; i < of_a.size() || j < of_b.size();) {
    const Node next_a = i < of_a.size() ? of_a[i].node : kNoLink;
    const Node next_b = j < of_b.size() ? of_b[j].node : kNoLink;
    const Node node = std::min(next_a, next_b);
    const Neighbour* from_a = next_a == node ? &of_a[i++] : nullptr;
    const Neighbour* from_b = next_b == node ? &of_b[j++] : nullptr;
    const uint32_t link = Combine(from_a, from_b, a, b);
    if (link == kNoLink) continue;
    clusters_[made].neighbours.push_back({node, link});
    // The highest node yet, so the order is kept.
    clusters_[node].neighbours.push_back({made, link});
  }
  return made;
}

uint32_t NeighbourChain::Combine(const Neighbour* from_a, const Neighbour* from_b, Node a, Node b) {
  if (from_a != nullptr && from_b != nullptr) {
    Link& link = links_[from_a->link];
    Link& other = links_[from_b->link];
    if (linkage_ == Linkage::kComplete) {
      link.known = std::min(link.known, other.known);
      return from_a->link;
    }
    link.known += other.known;
    link.bound += other.bound;
    link.blocks.insert(link.blocks.end(), other.blocks.begin(), other.blocks.end());
    other.blocks = {};
    return from_a->link;
  }
  // A pair of one of the two with that neighbour is below the least.
  if (linkage_ == Linkage::kComplete) return kNoLink;
  const Neighbour& from = from_a != nullptr ? *from_a : *from_b;
  const Node apart = from_a != nullptr ? b : a;
  const uint64_t pairs = uint64_t{clusters_[apart].size} * clusters_[from.node].size;
  const uint64_t bound = pairs * (least_ - 1);
  Link& link = links_[from.link];
  link.bound += bound;
  link.blocks.push_back({apart, from.node, bound, false});
  return from.link;
}

}  // namespace culprit::cluster
