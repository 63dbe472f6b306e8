// SPDX-License-Identifier: Apache-2.0
#include "stackmine/cover.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace culprit::stackmine {
namespace {

class LabelSets {
 public:
  explicit LabelSets(std::vector<std::vector<uint32_t>>& sets) : sets_(sets) { Intern({}); }

  LabelSet Intern(const std::vector<uint32_t>& labels) {
    const auto [it, added] = index_.try_emplace(labels, static_cast<LabelSet>(sets_.size()));
    if (added) sets_.push_back(labels);
    return it->second;
  }

  LabelSet Union(LabelSet a, LabelSet b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const auto key = std::minmax(a, b);
    if (const auto it = unions_.find(key); it != unions_.end()) return it->second;
    std::vector<uint32_t> both;
    std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                   std::back_inserter(both));
    return unions_[key] = Intern(both);
  }

 private:
  std::vector<std::vector<uint32_t>>& sets_;
  std::map<std::vector<uint32_t>, LabelSet> index_;
  std::map<std::pair<LabelSet, LabelSet>, LabelSet> unions_;
};

const std::vector<uint32_t>* LabelsOf(const PathNode& node, const StackLabels& labels,
                                      bool runs_by_thread) {
  if (CountsAs(node, StackKind::kWait, runs_by_thread)) return &labels.wait[node.stack];
  if (CountsAs(node, StackKind::kRun, runs_by_thread)) return &labels.run[node.stack];
  return nullptr;
}

}  // namespace

bool Cover::Has(LabelSet set, uint32_t label) const {
  return std::binary_search(sets[set].begin(), sets[set].end(), label);
}

Cover MakeCover(const Evidence& evidence, const StackLabels& labels, bool runs_by_thread) {
  const LargeVector<PathNode>& nodes = evidence.forest.nodes();
  Cover cover;
  LabelSets sets(cover.sets);
  cover.own.resize(nodes.size());
  cover.above.resize(nodes.size());
  cover.covering.resize(nodes.size());
  cover.node_cost_ns.resize(nodes.size());
  for (const PathRow& row : evidence.rows) cover.node_cost_ns[row.node] += row.cost_ns;
  cover.node_own_ns = cover.node_cost_ns;
  for (NodeIndex n = 0; n < nodes.size(); ++n) {
    const PathNode& node = nodes[n];
    const std::vector<uint32_t>* own = LabelsOf(node, labels, runs_by_thread);
    if (own != nullptr) cover.own[n] = sets.Intern(*own);
    if (node.parent != kNoNode) {
      cover.above[n] = cover.covering[node.parent];
      cover.node_own_ns[node.parent] -= cover.node_cost_ns[n];
    }
    cover.covering[n] = sets.Union(cover.above[n], cover.own[n]);
  }
  cover.parts.resize(cover.sets.size());
  for (NodeIndex n = 0; n < nodes.size(); ++n) {
    cover.parts[cover.covering[n]] += cover.node_own_ns[n];
  }
  return cover;
}

std::vector<int64_t> GainByRank(const Cover& cover, const std::vector<uint32_t>& rank) {
  std::vector<int64_t> gains(rank.size());
  for (LabelSet set = 0; set < cover.sets.size(); ++set) {
    const std::vector<uint32_t>& labels = cover.sets[set];
    const auto first = std::min_element(labels.begin(), labels.end(),
                                        [&](uint32_t a, uint32_t b) { return rank[a] < rank[b]; });
    if (first != labels.end() && rank[*first] != UINT32_MAX) gains[*first] += cover.parts[set];
  }
  return gains;
}

std::map<std::pair<uint32_t, uint32_t>, int64_t> TimeInside(const Cover& cover) {
  // Nodes are many, pairs of sets few, and each stands for many pairs of labels.
  std::map<std::pair<LabelSet, LabelSet>, int64_t> by_sets;
  for (NodeIndex n = 0; n < cover.own.size(); ++n) {
    if (cover.own[n] == 0 || cover.above[n] == 0) continue;
    by_sets[{cover.own[n], cover.above[n]}] += cover.node_cost_ns[n];
  }
  std::map<std::pair<uint32_t, uint32_t>, int64_t> inside;
  for (const auto& [sets, cost_ns] : by_sets) {
    const auto& [own, above] = sets;
    for (const uint32_t label : cover.sets[own]) {
      if (cover.Has(above, label)) continue;
      // Labels of a set ascend, so each stands right after the one before.
      auto hint = inside.lower_bound({label, 0});
      for (const uint32_t around : cover.sets[above]) {
        hint = inside.try_emplace(hint, {label, around}, 0);
        hint->second += cost_ns;
      }
    }
  }
  return inside;
}

}  // namespace culprit::stackmine
