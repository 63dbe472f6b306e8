// SPDX-License-Identifier: Apache-2.0
#include "stackmine/signature_match.h"

#include <algorithm>
#include <optional>

#include "stackmine/function_symbols.h"
#include "stackmine/stack_match.h"

namespace culprit::stackmine {
namespace {

// The frames as symbols of the corpus; none if one of them never occurs there.
std::optional<std::vector<FrameSymbol>> Lookup(const StackTable& stacks, const FrameNames& names) {
  std::vector<FrameSymbol> frames;
  for (const std::string& name : names) {
    const auto frame = stacks.FindFrame(name);
    if (!frame) return std::nullopt;
    frames.push_back(*frame);
  }
  return frames;
}

std::vector<LabelledPattern> KnownPatterns(const StackTable& stacks,
                                           const std::vector<Signature>& signatures) {
  std::vector<LabelledPattern> patterns;
  for (uint32_t s = 0; s < signatures.size(); ++s) {
    for (const FrameNames& names : signatures[s].patterns) {
      auto frames = Lookup(stacks, names);
      if (frames) patterns.push_back({s, signatures[s].kind, std::move(*frames)});
    }
  }
  return patterns;
}

// The signature that most patterns of the cluster contain a pattern of, if each
// contains one of some signature.
uint32_t Containing(const Cluster& cluster, const std::vector<LabelledPattern>& known,
                    size_t signatures) {
  std::vector<uint32_t> counts(signatures);
  for (const MinedPattern& pattern : cluster.patterns) {
    uint32_t last = kNoSignature;  // `known` is ordered by signature: each counts once
    for (const LabelledPattern& k : known) {
      if (k.kind != cluster.kind || k.label == last) continue;
      if (!IsSubsequence(k.frames, pattern.frames)) continue;
      ++counts[k.label];
      last = k.label;
    }
    if (last == kNoSignature) return kNoSignature;
  }
  const auto most = std::max_element(counts.begin(), counts.end());
  return static_cast<uint32_t>(most - counts.begin());
}

// Average linkage between the patterns of a signature and of a cluster.
class Distances {
 public:
  Distances(const Evidence& evidence, const std::vector<Signature>& signatures,
            const cluster::ClusterOptions& options)
      : symbols_(evidence.stacks) {
    for (const Signature& signature : signatures) {
      std::vector<cluster::PatternSymbols>& patterns = signature_patterns_.emplace_back();
      for (const FrameNames& names : signature.patterns) {
        cluster::PatternSymbols& symbols = patterns.emplace_back();
        for (const std::string& name : names) symbols.push_back(symbols_.OfName(name));
      }
    }
    counts_ = CountNgrams(evidence, symbols_);
    pair_options_.weight_to_leaf = options.weight_to_leaf;
    pair_options_.cut = cluster::kOne;  // any two merge, and say at which distance
    pair_options_.jobs = 1;
  }

  cluster::Fixed Average(size_t signature, const Cluster& cluster) const {
    uint64_t sum = 0;
    uint64_t pairs = 0;
    for (const cluster::PatternSymbols& a : signature_patterns_[signature]) {
      for (const MinedPattern& pattern : cluster.patterns) {
        sum += OfPair(a, symbols_.Of(pattern.frames));
        ++pairs;
      }
    }
    return pairs == 0 ? cluster::kOne : static_cast<cluster::Fixed>(sum / pairs);
  }

 private:
  cluster::Fixed OfPair(const cluster::PatternSymbols& a, const cluster::PatternSymbols& b) const {
    const cluster::PatternClusters pair =
        cluster::ClusterPatterns({a, b}, symbols_.words(), counts_, pair_options_);
    return pair.merges.empty() ? cluster::kOne : pair.merges.front().distance;
  }

  FunctionSymbols symbols_;
  std::vector<std::vector<cluster::PatternSymbols>> signature_patterns_;
  cluster::NgramCounts counts_;
  cluster::ClusterOptions pair_options_;
};

}  // namespace

std::vector<ClusterMatch> MatchClusters(const Evidence& evidence, const MineResult& result,
                                        const std::vector<Signature>& signatures,
                                        const cluster::ClusterOptions& options) {
  std::vector<ClusterMatch> matches(result.clusters.size());
  if (signatures.empty() || result.clusters.empty()) return matches;
  const std::vector<LabelledPattern> known = KnownPatterns(evidence.stacks, signatures);
  const cluster::Fixed cut = options.cut.value_or(cluster::DefaultCut(options.linkage));
  const Distances distances(evidence, signatures, options);
  for (size_t c = 0; c < matches.size(); ++c) {
    const Cluster& cluster = result.clusters[c];
    ClusterMatch& best = matches[c];
    best.signature = Containing(cluster, known, signatures.size());
    if (best.signature != kNoSignature) continue;
    for (uint32_t s = 0; s < signatures.size(); ++s) {
      if (signatures[s].kind != cluster.kind) continue;
      const cluster::Fixed distance = distances.Average(s, cluster);
      const bool nearer = best.signature == kNoSignature || distance < best.distance;
      if (distance <= cut && nearer) best = {s, distance};
    }
  }
  return matches;
}

StackLabels LabelBySignature(const Evidence& evidence, const MineResult& result,
                             const std::vector<Signature>& signatures,
                             const std::vector<ClusterMatch>& matches, size_t jobs) {
  StackLabels labels = MatchStacks(evidence, CostsOfStacks(evidence),
                                   KnownPatterns(evidence.stacks, signatures), jobs);
  std::vector<uint32_t> signature_of(result.clusters.size(), kNoSignature);
  for (size_t c = 0; c < matches.size(); ++c) {
    signature_of[result.clusters[c].label] = matches[c].signature;
  }
  const auto add = [&](const LabelsByStack& clusters, LabelsByStack& to) {
    for (size_t stack = 0; stack < clusters.size(); ++stack) {
      for (const uint32_t label : clusters[stack]) {
        if (signature_of[label] != kNoSignature) to[stack].push_back(signature_of[label]);
      }
      std::sort(to[stack].begin(), to[stack].end());
      to[stack].erase(std::unique(to[stack].begin(), to[stack].end()), to[stack].end());
    }
  };
  add(result.labels.wait, labels.wait);
  add(result.labels.run, labels.run);
  return labels;
}

Signature SignatureOf(const Evidence& evidence, const Cluster& cluster) {
  const auto names = [&](const std::vector<FrameSymbol>& frames) {
    FrameNames out;
    for (const FrameSymbol frame : frames) out.emplace_back(evidence.stacks.FrameName(frame));
    return out;
  };
  Signature signature;
  signature.kind = cluster.kind;
  signature.cluster = cluster.id;
  signature.common = names(cluster.common);
  for (const MinedPattern& pattern : cluster.patterns) {
    signature.patterns.push_back(names(pattern.frames));
  }
  if (cluster.anchor) signature.patterns.push_back(names(cluster.anchor->closure));
  return signature;
}

}  // namespace culprit::stackmine
