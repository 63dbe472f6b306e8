// SPDX-License-Identifier: Apache-2.0
#include "analyze/analysis.h"

#include <algorithm>
#include <filesystem>

#include "causality/gather.h"
#include "stackmine/known_clusters.h"
#include "stackmine/signature_store.h"

namespace culprit::analyze {
namespace {

stackmine::Review ReviewClusters(const Analysis& analysis) {
  std::vector<stackmine::Metrics> metrics(analysis.mined.clusters.size());
  for (const stackmine::Cluster& cluster : analysis.mined.clusters) {
    metrics[cluster.label] = cluster.metrics;
  }
  return stackmine::CompareReviews(analysis.evidence, analysis.mined.cover, metrics);
}

// Scenarios with fast and slow instances, those of most time first.
std::vector<uint32_t> ScenariosToContrast(const Analysis& analysis, size_t most) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < analysis.speeds.scenarios.size(); ++i) {
    const ScenarioSpeeds& speeds = analysis.speeds.scenarios[i];
    if (speeds.fast > 0 && speeds.slow > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return analysis.speeds.scenarios[a].total_ns > analysis.speeds.scenarios[b].total_ns;
  });
  if (order.size() > most) order.resize(most);
  return order;
}

Status FindCauses(const AnalysisOptions& options, Analysis& analysis, Progress& progress) {
  causality::GatherOptions gather;
  gather.extract.automatic = options.gather.reduce.automatic;
  gather.extract.always_automatic = options.gather.reduce.always_automatic;
  gather.extract.scenarios = options.gather.reduce.scenarios;
  gather.max_memory_bytes = options.gather.max_memory_bytes;
  gather.jobs = options.gather.jobs;
  const std::vector<uint32_t> scenarios = ScenariosToContrast(analysis, options.contrasts);
  gather.extract.chains = !scenarios.empty();
  CULPRIT_ASSIGN(const causality::Evidence evidence,
                 causality::GatherEvidence(analysis.path, gather, progress));
  analysis.impact =
      causality::MeasureImpact(evidence, {.resamples = 0, .jobs = options.gather.jobs});
  for (const uint32_t scenario : scenarios) {
    causality::ContrastOptions contrast;
    contrast.scenario = analysis.evidence.scenarios[scenario];
    contrast.classes.fast = {.kind = causality::Threshold::Kind::kDuration,
                             .dur_ns = analysis.speeds.scenarios[scenario].p50_ns};
    contrast.classes.slow = {.kind = causality::Threshold::Kind::kDuration,
                             .dur_ns = analysis.speeds.scenarios[scenario].p90_ns};
    contrast.significance.jobs = options.gather.jobs;
    Result<causality::ContrastResult> found = causality::FindContrasts(evidence, contrast);
    // A scenario that cannot be contrasted is none to report.
    if (found.ok()) {
      analysis.contrasts.push_back({.scenario = scenario, .result = std::move(found).value()});
    }
  }
  return Status();
}

}  // namespace

const stackmine::Signature* Analysis::SignatureOf(size_t cluster) const {
  const uint32_t signature = known[cluster].signature;
  return signature == stackmine::kNoSignature ? nullptr : &signatures[signature];
}

std::string_view Analysis::StatusOf(size_t cluster) const {
  const stackmine::Signature* signature = SignatureOf(cluster);
  return Name(signature == nullptr ? stackmine::SignatureStatus::kNew : signature->status);
}

std::string Analysis::ShowCommand(uint32_t instance) const {
  const std::string name = is_corpus ? evidence.InstanceName(instance)
                                     : std::to_string(evidence.instances[instance].index);
  return "culprit show " + path + " " + name;
}

Result<Analysis> Analyze(const std::string& path, const AnalysisOptions& options,
                         Progress& progress) {
  Analysis analysis;
  analysis.path = path;
  analysis.automatic = options.gather.reduce.automatic;
  analysis.jobs = options.gather.jobs;
  std::error_code code;
  analysis.is_corpus = std::filesystem::is_directory(path, code);
  // First, so that a broken store is told before the long work.
  CULPRIT_ASSIGN(analysis.signatures, stackmine::ReadStore(options.store));
  CULPRIT_ASSIGN(analysis.evidence, stackmine::GatherEvidence(path, options.gather, progress));
  analysis.mined = stackmine::MineClusters(analysis.evidence, options.mine);
  analysis.known = stackmine::MatchAndRank(analysis.evidence, analysis.signatures,
                                           options.mine.clustering, analysis.mined);
  analysis.review = ReviewClusters(analysis);
  analysis.speeds = ClassifySpeeds(analysis.evidence);
  CULPRIT_TRY(FindCauses(options, analysis, progress));
  return analysis;
}

}  // namespace culprit::analyze
