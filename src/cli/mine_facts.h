// SPDX-License-Identifier: Apache-2.0
//
// What `culprit mine` found, not yet made into text or JSON: the evidence, the
// ranked clusters, and which of them are known signatures.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "cli/mine_options.h"
#include "stackmine/clusters.h"
#include "stackmine/evidence.h"
#include "stackmine/signature.h"
#include "stackmine/signature_match.h"

namespace culprit::cli {

struct MineFacts {
  std::string path;
  bool is_corpus = false;
  stackmine::Evidence evidence;
  corpus::GatherReport gathered;
  stackmine::MineResult result;
  std::vector<stackmine::Signature> signatures;
  std::vector<stackmine::ClusterMatch> known;  // by place in result.clusters

  int64_t total_ns() const { return evidence.account.area.total_ns; }
  // Null if the cluster is nobody's.
  const stackmine::Signature* SignatureOf(size_t cluster) const;
  // A signature says that nothing is to be done about it.
  bool IsIgnored(size_t cluster) const;
};

Result<MineFacts> GatherMine(const std::string& path, const MineSettings& settings,
                             const std::string& store, Progress& progress);
// The same of evidence that `gather` gives, mined by `miner`.
using GatherMineEvidence = std::function<Result<stackmine::Evidence>(corpus::GatherReport&)>;
Result<MineFacts> GatherMine(const std::string& path, const MineSettings& settings,
                             const std::string& store, const GatherMineEvidence& gather,
                             const stackmine::MaximalMiner& miner);

struct MineTextOptions {
  size_t show = 10;  // clusters of each kind in full
  bool verbose = false;
  size_t width = 100;
  bool color = false;
};
std::string MineText(const MineFacts& facts, const MineTextOptions& options);
std::string MineJson(const MineFacts& facts);

// The line to look at an instance with.
std::string ShowCommand(const MineFacts& facts, uint32_t instance);

}  // namespace culprit::cli
