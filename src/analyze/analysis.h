// SPDX-License-Identifier: Apache-2.0
//
// Analysis: all that a corpus allows, in one go: its evidence, the ranked
// clusters with what is known about them, how many traces an analyst must open,
// which instances were fast and slow. The parts of a report (parts.h) and the
// verdict (verdict.h) are made from it and compute nothing of their own.
// Deterministic for any number of threads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyze/speed_classes.h"
#include "base/progress.h"
#include "base/result.h"
#include "causality/contrast.h"
#include "causality/evidence.h"
#include "causality/extract.h"
#include "causality/impact.h"
#include "stackmine/clusters.h"
#include "stackmine/evidence.h"
#include "stackmine/gather.h"
#include "stackmine/review.h"
#include "stackmine/signature.h"
#include "stackmine/signature_match.h"

namespace culprit::analyze {

// What the analysis works on.
struct BothEvidence {
  stackmine::Evidence mine;
  causality::Evidence causes;
};

struct AnalysisOptions {
  stackmine::GatherOptions gather;
  stackmine::MineOptions mine;
  // Gives the evidence of the whole corpus, from hosts elsewhere, say; none: the
  // traces are read here.
  std::function<Result<BothEvidence>(const stackmine::ReduceOptions&,
                                     const causality::ExtractOptions&)>
      gather_elsewhere;
  stackmine::MaximalMiner miner = &mine::MineMaximal;
  std::string store;      // of signatures; empty: none
  size_t contrasts = 12;  // scenarios contrasted, costliest first
};

// What slow instances of a scenario do that fast ones do not.
struct ScenarioContrast {
  uint32_t scenario = 0;  // index in Evidence::scenarios
  causality::ContrastResult result;
};

struct Analysis {
  std::string path;
  bool is_corpus = false;
  stackmine::Evidence evidence;
  stackmine::MineResult mined;
  std::vector<stackmine::Signature> signatures;
  std::vector<stackmine::ClusterMatch> known;  // by place in mined.clusters
  stackmine::Review review;
  SpeedClasses speeds;
  causality::ImpactResult impact;           // by module
  std::vector<ScenarioContrast> contrasts;  // of scenarios with both classes, by explained time
  // How it was made, for what looks at a trace once more.
  waitgraph::AutoInstanceOptions automatic;
  size_t jobs = 0;
  uint64_t memory_bytes = 0;  // of traces in memory at a time; 0: no bound
  corpus::GatherReport gathered;

  int64_t total_ns() const { return evidence.account.area.total_ns; }
  // Null if the cluster is nobody's.
  const stackmine::Signature* SignatureOf(size_t cluster) const;
  // The status of its signature; "new" where it has none.
  std::string_view StatusOf(size_t cluster) const;
  // The line to look at an instance with.
  std::string ShowCommand(uint32_t instance) const;
};

Result<Analysis> Analyze(const std::string& path, const AnalysisOptions& options,
                         Progress& progress);

}  // namespace culprit::analyze
