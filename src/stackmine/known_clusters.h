// SPDX-License-Identifier: Apache-2.0
//
// Which clusters are known signatures, with the ignored ones ranked behind all
// others so that they do not take the places of what somebody should look at.
#pragma once

#include <vector>

#include "stackmine/clusters.h"
#include "stackmine/signature_match.h"

namespace culprit::stackmine {

// By place in result.clusters as it is ranked afterwards.
std::vector<ClusterMatch> MatchAndRank(const Evidence& evidence,
                                       const std::vector<Signature>& signatures,
                                       const cluster::ClusterOptions& clustering,
                                       MineResult& result);

}  // namespace culprit::stackmine
