// SPDX-License-Identifier: Apache-2.0
#include "analyze/analysis.h"

#include <algorithm>
#include <array>
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

causality::ExtractOptions ExtractionOf(const AnalysisOptions& options) {
  causality::ExtractOptions extract;
  extract.automatic = options.gather.reduce.automatic;
  extract.always_automatic = options.gather.reduce.always_automatic;
  extract.scenarios = options.gather.reduce.scenarios;
  return extract;
}

// Both kinds of evidence from one reading of the traces.
Result<causality::Evidence> GatherBoth(const AnalysisOptions& options, Analysis& analysis,
                                       Progress& progress) {
  if (options.gather_elsewhere) {
    CULPRIT_ASSIGN(BothEvidence both,
                   options.gather_elsewhere(options.gather.reduce, ExtractionOf(options)));
    analysis.evidence = std::move(both.mine);
    return std::move(both.causes);
  }
  stackmine::EvidenceCollector mined(options.gather.reduce, options.gather.spill());
  causality::EvidenceCollector causes(ExtractionOf(options), options.gather.use_summaries,
                                      options.gather.spill());
  const std::array<corpus::Collector*, 2> collectors = {&mined, &causes};
  CULPRIT_ASSIGN(analysis.gathered,
                 corpus::Gather(analysis.path, collectors, options.gather.loop(), progress));
  analysis.evidence = mined.Take();
  return causes.Take();
}

void FindCauses(const AnalysisOptions& options, const causality::Evidence& evidence,
                Analysis& analysis) {
  const std::vector<uint32_t> scenarios = ScenariosToContrast(analysis, options.contrasts);
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
    // The report shows the first few only: those that explain most time.
    contrast.rank = causality::RankBy::kCost;
    Result<causality::ContrastResult> found = causality::FindContrasts(evidence, contrast);
    // A scenario that cannot be contrasted is none to report.
    if (found.ok()) {
      analysis.contrasts.push_back({.scenario = scenario, .result = std::move(found).value()});
    }
  }
  std::stable_sort(analysis.contrasts.begin(), analysis.contrasts.end(),
                   [](const ScenarioContrast& a, const ScenarioContrast& b) {
                     return a.result.patterns_ns > b.result.patterns_ns;
                   });
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
  analysis.memory_bytes = options.gather.loop().memory_bytes;
  std::error_code code;
  analysis.is_corpus = std::filesystem::is_directory(path, code);
  // First, so that a broken store is told before the long work.
  CULPRIT_ASSIGN(analysis.signatures, stackmine::ReadStore(options.store));
  CULPRIT_ASSIGN(const causality::Evidence causes, GatherBoth(options, analysis, progress));
  CULPRIT_ASSIGN(analysis.mined,
                 stackmine::MineClustersBy(options.miner, analysis.evidence, options.mine));
  analysis.known = stackmine::MatchAndRank(analysis.evidence, analysis.signatures,
                                           options.mine.clustering, analysis.mined);
  analysis.review = ReviewClusters(analysis);
  analysis.speeds = ClassifySpeeds(analysis.evidence);
  FindCauses(options, causes, analysis);
  return analysis;
}

}  // namespace culprit::analyze
