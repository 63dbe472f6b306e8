// SPDX-License-Identifier: Apache-2.0
#include "stackmine/grouping.h"

#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "base/check.h"

namespace culprit::stackmine {
namespace {

std::string HexId(std::string_view content) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr int kDigits = 10;
  uint64_t hash = XXH3_64bits(content.data(), content.size());
  std::string id(kDigits, '0');
  for (int i = kDigits - 1; i >= 0; --i, hash >>= 4) id[static_cast<size_t>(i)] = kHex[hash & 15];
  return id;
}

std::string Content(const Evidence& evidence, StackKind kind,
                    const std::vector<FrameSymbol>& frames) {
  std::string content(Name(kind));
  for (const FrameSymbol frame : frames) (content += '\n') += evidence.stacks.FrameName(frame);
  return content;
}

// Two clusters may share a common part, even the empty one; their patterns then
// tell them apart.
void GiveIds(const Evidence& evidence, std::vector<Cluster>& clusters) {
  std::map<std::string, std::vector<Cluster*>> by_id;
  for (Cluster& cluster : clusters) {
    cluster.id = HexId(Content(evidence, cluster.kind, cluster.common));
    by_id[cluster.id].push_back(&cluster);
  }
  for (const auto& [id, same] : by_id) {
    if (same.size() < 2) continue;
    for (Cluster* cluster : same) {
      std::vector<std::string> contents;
      for (const MinedPattern& pattern : cluster->patterns) {
        contents.push_back(Content(evidence, pattern.kind, pattern.frames));
      }
      std::sort(contents.begin(), contents.end());
      std::string all;
      for (const std::string& content : contents) (all += content) += '\n';
      cluster->id = HexId(all);
    }
  }
}

// Alignment works on functions; the frames shown are those of the patterns, found
// again by walking all members along the segments: each segment is as long in a
// member as what it has there.
void FindCommon(const FunctionSymbols& symbols, Cluster& cluster) {
  std::vector<cluster::PatternSymbols> members;
  for (const MinedPattern& pattern : cluster.patterns)
    members.push_back(symbols.Of(pattern.frames));
  std::vector<size_t> at(members.size());
  const auto take = [&](size_t member, size_t count) {
    const std::vector<FrameSymbol>& frames = cluster.patterns[member].frames;
    CULPRIT_CHECK(at[member] + count <= frames.size());
    const auto begin = frames.begin() + static_cast<std::ptrdiff_t>(at[member]);
    at[member] += count;
    return std::vector<FrameSymbol>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  for (const cluster::CommonSegment& segment : cluster::CommonParts(members, symbols.words())) {
    ClusterSegment& own = cluster.segments.emplace_back();
    own.variants.resize(segment.variants.size());
    for (size_t m = 0; m < members.size(); ++m) {
      const bool shared = segment.variant_of_member.empty();
      const uint32_t variant = shared ? 0 : segment.variant_of_member[m];
      const size_t count = shared ? segment.shared.size() : segment.variants[variant].size();
      std::vector<FrameSymbol> frames = take(m, count);
      if (shared && m == 0)
        own.shared = std::move(frames);
      else if (!shared && own.variants[variant].empty())
        own.variants[variant] = std::move(frames);
    }
    cluster.common.insert(cluster.common.end(), own.shared.begin(), own.shared.end());
  }
}

// Frames that all patterns of the cluster have.
std::vector<FrameSymbol> FramesOfAll(const Cluster& cluster) {
  std::vector<FrameSymbol> frames;
  for (size_t i = 0; i < cluster.patterns.size(); ++i) {
    std::vector<FrameSymbol> own = cluster.patterns[i].frames;
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    std::vector<FrameSymbol> both;
    std::set_intersection(frames.begin(), frames.end(), own.begin(), own.end(),
                          std::back_inserter(both));
    frames = i == 0 ? own : both;
  }
  return frames;
}

bool BetterAnchor(const Evidence& evidence, const Anchor& a, const Anchor& b) {
  if (a.Score() != b.Score()) return a.Score() > b.Score();
  return evidence.stacks.FrameName(a.frame) < evidence.stacks.FrameName(b.frame);
}

// Clusters of one kind whose patterns all have the same best anchor become one.
std::vector<Cluster> JoinByAnchor(const Evidence& evidence, const StackCosts& costs,
                                  std::vector<Cluster> clusters, size_t jobs) {
  if (clusters.empty()) return clusters;
  std::vector<std::vector<FrameSymbol>> frames_of;
  std::vector<FrameSymbol> asked;
  for (const Cluster& cluster : clusters) {
    frames_of.push_back(FramesOfAll(cluster));
    asked.insert(asked.end(), frames_of.back().begin(), frames_of.back().end());
  }
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  const std::vector<Anchor> anchors =
      FindAnchors(evidence, costs, clusters.front().kind, asked, jobs);
  std::vector<Cluster> joined;
  std::unordered_map<FrameSymbol, size_t> by_anchor;
  for (size_t c = 0; c < clusters.size(); ++c) {
    const Anchor* best = nullptr;
    for (const FrameSymbol frame : frames_of[c]) {
      const auto at = std::lower_bound(asked.begin(), asked.end(), frame) - asked.begin();
      const Anchor& anchor = anchors[static_cast<size_t>(at)];
      if (anchor.bits == 0) continue;
      if (best == nullptr || BetterAnchor(evidence, anchor, *best)) best = &anchor;
    }
    const auto place = best == nullptr ? by_anchor.end() : by_anchor.find(best->frame);
    if (place != by_anchor.end()) {
      std::vector<MinedPattern>& to = joined[place->second].patterns;
      to.insert(to.end(), clusters[c].patterns.begin(), clusters[c].patterns.end());
      continue;
    }
    if (best != nullptr) {
      by_anchor.emplace(best->frame, joined.size());
      clusters[c].anchor = *best;
    }
    joined.push_back(std::move(clusters[c]));
  }
  for (Cluster& cluster : joined) {
    std::stable_sort(
        cluster.patterns.begin(), cluster.patterns.end(),
        [](const MinedPattern& a, const MinedPattern& b) { return a.cost_ns > b.cost_ns; });
  }
  return joined;
}

}  // namespace

std::vector<Cluster> GroupPatterns(const Evidence& evidence, const StackCosts& costs,
                                   const MinedPatterns& mined, const FunctionSymbols& symbols,
                                   const cluster::NgramCounts& counts, const MineOptions& options) {
  std::vector<Cluster> clusters;
  for (const StackKind kind : {StackKind::kWait, StackKind::kRun}) {
    std::vector<const MinedPattern*> own;
    std::vector<cluster::PatternSymbols> patterns;
    for (const MinedPattern& pattern : mined.patterns) {
      if (pattern.kind != kind) continue;
      own.push_back(&pattern);
      patterns.push_back(symbols.Of(pattern.frames));
    }
    const cluster::PatternClusters grouped =
        cluster::ClusterPatterns(patterns, symbols.words(), counts, options.clustering);
    std::vector<Cluster> of_kind(grouped.clusters);
    for (size_t i = 0; i < own.size(); ++i) {
      of_kind[grouped.cluster_of[i]].patterns.push_back(*own[i]);
    }
    for (Cluster& cluster : of_kind) cluster.kind = kind;
    if (options.anchors) {
      of_kind = JoinByAnchor(evidence, costs, std::move(of_kind), options.patterns.jobs);
    }
    for (Cluster& cluster : of_kind) clusters.push_back(std::move(cluster));
  }
  for (uint32_t c = 0; c < clusters.size(); ++c) {
    clusters[c].label = c;
    FindCommon(symbols, clusters[c]);
  }
  GiveIds(evidence, clusters);
  return clusters;
}

}  // namespace culprit::stackmine
