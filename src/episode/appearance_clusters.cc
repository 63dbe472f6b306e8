// SPDX-License-Identifier: Apache-2.0
#include "episode/appearance_clusters.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace culprit::episode {
namespace {

constexpr uint32_t kOne = 65536;
constexpr uint32_t kWidest = kOne / 2;

class Divisive {
 public:
  explicit Divisive(const std::vector<const SymbolSet*>& sets) : count_(sets.size()) {
    distances_.resize(count_ * count_);
    for (size_t i = 0; i < count_; ++i) {
      for (size_t j = 0; j < i; ++j) {
        distances_[i * count_ + j] = distances_[j * count_ + i] =
            JaccardDistance(sets[i]->symbols, sets[j]->symbols);
      }
    }
  }

  std::vector<uint32_t> Clusters() {
    std::vector<uint32_t> cluster(count_);
    std::vector<std::vector<uint32_t>> work(1);
    work[0].resize(count_);
    std::iota(work[0].begin(), work[0].end(), 0);
    uint32_t next = 0;
    while (!work.empty()) {
      std::vector<uint32_t> members = std::move(work.back());
      work.pop_back();
      if (Diameter(members) <= kWidest) {
        for (const uint32_t member : members) cluster[member] = next;
        ++next;
        continue;
      }
      auto [rest, splinter] = Split(members);
      work.push_back(std::move(splinter));
      work.push_back(std::move(rest));
    }
    return cluster;
  }

 private:
  uint32_t Distance(uint32_t a, uint32_t b) const { return distances_[a * count_ + b]; }

  uint32_t Diameter(const std::vector<uint32_t>& members) const {
    uint32_t widest = 0;
    for (const uint32_t a : members) {
      for (const uint32_t b : members) widest = std::max(widest, Distance(a, b));
    }
    return widest;
  }

  std::pair<std::vector<uint32_t>, std::vector<uint32_t>> Split(std::vector<uint32_t> rest) const {
    std::vector<uint32_t> splinter;
    std::vector<uint64_t> to_rest(rest.size());
    std::vector<uint64_t> to_splinter(rest.size());
    for (size_t i = 0; i < rest.size(); ++i) {
      for (const uint32_t other : rest) to_rest[i] += Distance(rest[i], other);
    }
    size_t leaver =
        static_cast<size_t>(std::max_element(to_rest.begin(), to_rest.end()) - to_rest.begin());
    while (rest.size() > 1) {
      const uint32_t member = rest[leaver];
      splinter.push_back(member);
      for (auto* column : {&to_rest, &to_splinter}) {
        column->erase(column->begin() + static_cast<ptrdiff_t>(leaver));
      }
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(leaver));
      for (size_t i = 0; i < rest.size(); ++i) {
        to_rest[i] -= Distance(rest[i], member);
        to_splinter[i] += Distance(rest[i], member);
      }
      leaver = MostDrawn(to_rest, to_splinter, splinter.size());
      if (leaver == rest.size()) break;
    }
    return {std::move(rest), std::move(splinter)};
  }

  // The member of the rest whose average distance to the others exceeds that to
  // the splinter by most; the number of members if there is none.
  static size_t MostDrawn(const std::vector<uint64_t>& to_rest,
                          const std::vector<uint64_t>& to_splinter, uint64_t splinter) {
    const uint64_t others = to_rest.size() - 1;
    if (others == 0) return to_rest.size();
    size_t best = to_rest.size();
    uint64_t best_gain = 0;
    for (size_t i = 0; i < to_rest.size(); ++i) {
      const uint64_t away = to_rest[i] * splinter;  // both averages times others * splinter
      const uint64_t drawn = to_splinter[i] * others;
      if (away > drawn && away - drawn > best_gain) {
        best = i;
        best_gain = away - drawn;
      }
    }
    return best;
  }

  size_t count_;
  std::vector<uint32_t> distances_;
};

}  // namespace

uint32_t JaccardDistance(const std::vector<Symbol>& a, const std::vector<Symbol>& b) {
  uint64_t shared = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) ++shared;
    const bool step_a = a[i] <= b[j];
    const bool step_b = b[j] <= a[i];
    i += step_a ? 1 : 0;
    j += step_b ? 1 : 0;
  }
  const uint64_t together = a.size() + b.size() - shared;
  if (together == 0) return 0;
  return static_cast<uint32_t>(kOne - shared * kOne / together);
}

std::vector<uint32_t> ClusterSets(const std::vector<SymbolSet>& sets) {
  std::vector<uint32_t> order(sets.size());
  std::iota(order.begin(), order.end(), 0);
  if (sets.size() > kMaxSets) {
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return sets[a].weight > sets[b].weight; });
  }
  const size_t kept = std::min(sets.size(), kMaxSets);
  std::vector<const SymbolSet*> chosen;
  for (size_t i = 0; i < kept; ++i) chosen.push_back(&sets[order[i]]);
  const std::vector<uint32_t> of_chosen = Divisive(chosen).Clusters();
  std::vector<uint32_t> cluster(sets.size());
  for (size_t i = 0; i < sets.size(); ++i) {
    size_t nearest = i;
    for (size_t j = 0; i >= kept && j < kept; ++j) {
      const auto& symbols = sets[order[i]].symbols;
      if (j == 0 || JaccardDistance(symbols, chosen[j]->symbols) <
                        JaccardDistance(symbols, chosen[nearest]->symbols)) {
        nearest = j;
      }
    }
    cluster[order[i]] = of_chosen[nearest];
  }
  // Numbers by first appearance, whatever order the splits had.
  std::vector<uint32_t> number(sets.size(), UINT32_MAX);
  uint32_t next = 0;
  for (uint32_t& of_set : cluster) {
    if (number[of_set] == UINT32_MAX) number[of_set] = next++;
    of_set = number[of_set];
  }
  return cluster;
}

}  // namespace culprit::episode
