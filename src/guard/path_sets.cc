// SPDX-License-Identifier: Apache-2.0
#include "guard/path_sets.h"

#include <algorithm>
#include <map>

#include "base/ones.h"
#include "base/parallel.h"

namespace culprit::guard {
namespace {

constexpr size_t kMaxSquare = 4096;  // distinct leaf paths whose similarities are kept

class PathSetSource : public cluster::PairSource {
 public:
  explicit PathSetSource(const PathSets& sets) : sets_(sets) {}
  cluster::Fixed UpperBound(cluster::Rank a, cluster::Rank b) override {
    return sets_.UpperBound(a, b);
  }
  cluster::Fixed Similarity(cluster::Rank a, cluster::Rank b) override {
    return sets_.Similarity(a, b);
  }

 private:
  const PathSets& sets_;
};

}  // namespace

void PathSets::Add(const std::vector<uint32_t>& set) {
  sets_.push_back(set);
  sizes_.push_back(static_cast<uint32_t>(set.size()));
}

void PathSets::Finish() {
  if (distance_ == UnitDistance::kJaccard) {
    FinishBits();
  } else {
    FinishLeaves();
  }
}

void PathSets::FinishBits() {
  std::vector<uint32_t> number(paths_->size(), kNoIndex);
  uint32_t used = 0;
  for (const auto& set : sets_) {
    for (const uint32_t path : set) {
      if (number[path] == kNoIndex) number[path] = used++;
    }
  }
  words_ = (used + 63) / 64;
  bits_.assign(words_ * sets_.size(), 0);
  for (size_t i = 0; i < sets_.size(); ++i) {
    for (const uint32_t path : sets_[i]) {
      bits_[i * words_ + number[path] / 64] |= uint64_t{1} << (number[path] % 64);
    }
  }
}

// Paths of the set below which the set has none.
std::vector<uint32_t> PathSets::LeavesOf(const std::vector<uint32_t>& set) const {
  std::vector<uint32_t> parents;
  for (const uint32_t path : set) parents.push_back((*paths_)[path].parent);
  std::sort(parents.begin(), parents.end());
  std::vector<uint32_t> leaves;
  for (const uint32_t path : set) {
    if (!std::binary_search(parents.begin(), parents.end(), path)) leaves.push_back(path);
  }
  return leaves;
}

void PathSets::FinishLeaves() {
  std::map<uint32_t, uint32_t> number;
  for (const auto& set : sets_) {
    std::vector<uint32_t>& leaf_set = leaf_sets_.emplace_back();
    for (const uint32_t leaf : LeavesOf(set)) {
      const auto [found, made] = number.try_emplace(leaf, static_cast<uint32_t>(leaves_.size()));
      leaf_set.push_back(found->second);
      if (!made) continue;
      FunctionPath& functions = leaves_.emplace_back();
      for (uint32_t at = leaf; at != kNoIndex; at = (*paths_)[at].parent) {
        functions.push_back((*paths_)[at].function);
      }
      std::reverse(functions.begin(), functions.end());
    }
    std::sort(leaf_set.begin(), leaf_set.end());
  }
  if (leaves_.size() > kMaxSquare) return;
  leaf_similarities_.resize(leaves_.size() * leaves_.size());
  ParallelFor(leaves_.size(), 0, [&](size_t i) {
    for (size_t j = 0; j < leaves_.size(); ++j) {
      leaf_similarities_[i * leaves_.size() + j] = PathSimilarity(leaves_[i], leaves_[j]);
    }
  });
}

cluster::Fixed PathSets::LeafSimilarity(uint32_t a, uint32_t b) const {
  if (leaf_similarities_.empty()) return PathSimilarity(leaves_[a], leaves_[b]);
  return leaf_similarities_[size_t{a} * leaves_.size() + b];
}

cluster::Fixed PathSets::Similarity(uint32_t a, uint32_t b) const {
  if (distance_ == UnitDistance::kAlgorithm1) {
    const std::vector<uint32_t>& of_a = leaf_sets_[a];
    const std::vector<uint32_t>& of_b = leaf_sets_[b];
    if (of_a == of_b) return cluster::kOne;
    if (of_a.empty() || of_b.empty()) return 0;
    uint64_t sum = 0;
    for (const uint32_t x : of_a) {
      for (const uint32_t y : of_b) sum += LeafSimilarity(x, y);
    }
    return static_cast<cluster::Fixed>(sum / (of_a.size() * of_b.size()));
  }
  const uint64_t* x = bits_.data() + size_t{a} * words_;
  const uint64_t* y = bits_.data() + size_t{b} * words_;
  uint64_t shared = 0;
  for (size_t i = 0; i < words_; ++i) shared += CountOnes(x[i] & y[i]);
  const uint64_t united = uint64_t{sizes_[a]} + sizes_[b] - shared;
  if (united == 0) return cluster::kOne;
  return static_cast<cluster::Fixed>(shared * cluster::kOne / united);
}

cluster::Fixed PathSets::UpperBound(uint32_t a, uint32_t b) const {
  if (distance_ == UnitDistance::kAlgorithm1) return cluster::kOne;
  const uint64_t smaller = std::min(sizes_[a], sizes_[b]);
  const uint64_t larger = std::max(sizes_[a], sizes_[b]);
  if (larger == 0) return cluster::kOne;
  return static_cast<cluster::Fixed>(smaller * cluster::kOne / larger);
}

std::vector<cluster::SimilarPair> PathSets::SimilarPairs(cluster::Fixed least) const {
  std::vector<std::vector<cluster::SimilarPair>> rows(size());
  ParallelFor(size(), 0, [&](size_t row) {
    const auto b = static_cast<uint32_t>(row);
    for (uint32_t a = 0; a < b; ++a) {
      if (UpperBound(a, b) < least) continue;
      const cluster::Fixed similarity = Similarity(a, b);
      if (similarity >= least) rows[row].push_back({a, b, similarity});
    }
  });
  std::vector<cluster::SimilarPair> pairs;
  for (const auto& row : rows) pairs.insert(pairs.end(), row.begin(), row.end());
  return pairs;
}

std::unique_ptr<cluster::PairSource> PathSets::MakeSource() const {
  return std::make_unique<PathSetSource>(*this);
}

}  // namespace culprit::guard
