// SPDX-License-Identifier: Apache-2.0
//
// Cover: which time of the instances a set of labels (clusters, signatures)
// explains. A wait that carries a label covers everything below it on the path,
// a run itself. Time is counted at the node that owns it: a node's own time is
// its cost less that of its children, so every nanosecond of the area of
// interest is in exactly one `parts` entry, under the set of all labels that
// cover it; the empty set is what nothing covers. Any question about coverage
// (of one label, of a union, of the gain by rank) is a sum over these parts.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "stackmine/evidence.h"
#include "stackmine/stack_match.h"

namespace culprit::stackmine {

using LabelSet = uint32_t;  // index in Cover::sets; 0: the empty set

struct Cover {
  std::vector<std::vector<uint32_t>> sets;  // ascending labels
  LargeVector<LabelSet> own;                // by node: labels of its stack
  LargeVector<LabelSet> above;              // by node: labels of the waits it is below
  LargeVector<LabelSet> covering;           // by node: both
  LargeVector<int64_t> node_cost_ns;        // over all instances
  LargeVector<int64_t> node_own_ns;         // less that of the children
  std::vector<int64_t> parts;               // by set: own time of the nodes it covers

  bool Has(LabelSet set, uint32_t label) const;
};

Cover MakeCover(const Evidence& evidence, const StackLabels& labels, bool runs_by_thread);

// By label, in the order given by `rank` (rank[label]; UINT32_MAX: takes no
// part): the time no label of lower rank covers. Sums to what all cover.
std::vector<int64_t> GainByRank(const Cover& cover, const std::vector<uint32_t>& rank);

// Time of label `first` that lies below waits of label `second`, for all pairs
// for which there is any. Time of a label is its outermost nodes' cost.
std::map<std::pair<uint32_t, uint32_t>, int64_t> TimeInside(const Cover& cover);

}  // namespace culprit::stackmine
