// SPDX-License-Identifier: Apache-2.0
#include "stackmine/known_clusters.h"

namespace culprit::stackmine {

std::vector<ClusterMatch> MatchAndRank(const Evidence& evidence,
                                       const std::vector<Signature>& signatures,
                                       const cluster::ClusterOptions& clustering,
                                       MineResult& result) {
  const std::vector<ClusterMatch> matches = MatchClusters(evidence, result, signatures, clustering);
  std::vector<bool> ignored(matches.size());
  for (size_t i = 0; i < matches.size(); ++i) {
    const uint32_t signature = matches[i].signature;
    ignored[i] =
        signature != kNoSignature && signatures[signature].status == SignatureStatus::kIgnored;
  }
  std::vector<ClusterMatch> ranked;
  for (const bool wanted : {false, true}) {
    for (size_t i = 0; i < matches.size(); ++i) {
      if (ignored[i] == wanted) ranked.push_back(matches[i]);
    }
  }
  RankLast(evidence, ignored, result);
  return ranked;
}

}  // namespace culprit::stackmine
