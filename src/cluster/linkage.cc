// SPDX-License-Identifier: Apache-2.0
#include "cluster/linkage.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/parallel.h"
#include "cluster/neighbour_chain.h"

namespace culprit::cluster {
namespace {

// Disjoint sets whose root is their lowest member.
class LowestRoots {
 public:
  explicit LowestRoots(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }
  Rank RootOf(Rank rank) {
    while (parent_[rank] != rank) rank = parent_[rank] = parent_[parent_[rank]];
    return rank;
  }
  void Join(Rank root, Rank other_root) {
    parent_[std::max(root, other_root)] = std::min(root, other_root);
  }

 private:
  std::vector<Rank> parent_;
};

// Joining the most similar pair that is still apart is single linkage.
std::vector<Joined> JoinSingle(size_t count, std::vector<SimilarPair> edges) {
  for (SimilarPair& edge : edges) {
    if (edge.a > edge.b) std::swap(edge.a, edge.b);
  }
  std::sort(edges.begin(), edges.end(), [](const SimilarPair& x, const SimilarPair& y) {
    return std::tie(y.similarity, x.a, x.b) < std::tie(x.similarity, y.a, y.b);
  });
  LowestRoots roots(count);
  std::vector<Joined> joined;
  for (const SimilarPair& edge : edges) {
    const Rank a = roots.RootOf(edge.a);
    const Rank b = roots.RootOf(edge.b);
    if (a == b) continue;
    roots.Join(a, b);
    joined.push_back({std::min(a, b), std::max(a, b), edge.similarity, 1});
  }
  return joined;
}

// The components of the graph, each with its edges, by lowest rank.
std::vector<std::vector<SimilarPair>> Components(size_t count,
                                                 const std::vector<SimilarPair>& edges) {
  LowestRoots roots(count);
  for (const SimilarPair& edge : edges) {
    const Rank a = roots.RootOf(edge.a);
    const Rank b = roots.RootOf(edge.b);
    if (a != b) roots.Join(a, b);
  }
  std::vector<uint32_t> number_of(count, UINT32_MAX);
  std::vector<std::vector<SimilarPair>> components;
  for (const SimilarPair& edge : edges) {
    uint32_t& number = number_of[roots.RootOf(edge.a)];
    if (number == UINT32_MAX) {
      number = static_cast<uint32_t>(components.size());
      components.emplace_back();
    }
    components[number].push_back(edge);
  }
  return components;
}

}  // namespace

bool JoinedBefore(const Joined& x, const Joined& y) {
  const int order = CompareMeans({x.sum, x.pairs}, {y.sum, y.pairs});
  if (order != 0) return order > 0;
  return std::tie(x.a, x.b) < std::tie(y.a, y.b);
}

std::vector<Joined> Agglomerate(size_t count, const std::vector<SimilarPair>& edges,
                                const LinkageOptions& options,
                                const std::function<std::unique_ptr<PairSource>()>& make_source) {
  if (options.linkage == Linkage::kSingle) return JoinSingle(count, edges);
  const std::vector<std::vector<SimilarPair>> components = Components(count, edges);
  std::vector<std::vector<Joined>> of_component(components.size());
  ParallelFor(components.size(), options.jobs, [&](size_t i) {
    const std::unique_ptr<PairSource> source = make_source();
    NeighbourChain chain(components[i], options.linkage, options.least, *source);
    of_component[i] = chain.Run();
  });
  std::vector<Joined> joined;
  for (const std::vector<Joined>& part : of_component) {
    joined.insert(joined.end(), part.begin(), part.end());
  }
  std::sort(joined.begin(), joined.end(), JoinedBefore);
  return joined;
}

}  // namespace culprit::cluster
