// SPDX-License-Identifier: Apache-2.0
//
// Which clusters and which time of a corpus are known signatures. A signature
// has an event if the event's stack contains one of its patterns. It has a
// cluster if the cluster's patterns contain its patterns (every one of them some
// signature's, most of them this one's), or if the two are variants by the
// similarity that clustering uses: the average over their pairs of patterns of
// 1 - Sim is at most the cut. The time of a
// signature is that of its events and of its clusters' events. Deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/pattern_clusters.h"
#include "stackmine/clusters.h"
#include "stackmine/signature.h"

namespace culprit::stackmine {

inline constexpr uint32_t kNoSignature = UINT32_MAX;

struct ClusterMatch {
  uint32_t signature = kNoSignature;
  cluster::Fixed distance = 0;  // 0 where the signature's pattern is contained
};

// By place in result.clusters: the nearest signature within the cut.
std::vector<ClusterMatch> MatchClusters(const Evidence& evidence, const MineResult& result,
                                        const std::vector<Signature>& signatures,
                                        const cluster::ClusterOptions& options);

// By stack: the signatures (labels are their indexes) it belongs to.
StackLabels LabelBySignature(const Evidence& evidence, const MineResult& result,
                             const std::vector<Signature>& signatures,
                             const std::vector<ClusterMatch>& matches, size_t jobs);

// A signature made of a cluster, without name, owner and note.
Signature SignatureOf(const Evidence& evidence, const Cluster& cluster);

}  // namespace culprit::stackmine
