// SPDX-License-Identifier: Apache-2.0
#include "stackmine/clusters.h"

#include <algorithm>

#include "stackmine/function_symbols.h"
#include "stackmine/grouping.h"
#include "stackmine/owners.h"
#include "stackmine/telling_frames.h"

namespace culprit::stackmine {
namespace {

// A cluster is shown as part of another if so much of its time lies below it.
constexpr uint64_t kPartOfShare = kShareOne / 100 * 95;
constexpr uint64_t kDeviceShare =
    kShareOne / 100 * 90;  // of a cluster that is for the device alone

// By frame: the cost of the stacks of this kind that have it.
std::vector<int64_t> FrameCosts(const Evidence& evidence, const StackCosts& costs, StackKind kind) {
  std::vector<int64_t> by_frame(evidence.stacks.frames());
  std::vector<FrameSymbol> frames;
  for (const StackCost& cost : costs.stacks) {
    if (cost.kind != kind) continue;
    evidence.stacks.Frames(cost.stack, frames);
    std::sort(frames.begin(), frames.end());
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
    for (const FrameSymbol frame : frames) by_frame[frame] += cost.cost_ns;
  }
  return by_frame;
}

// The key is the caller-most frame that is as good as only in this cluster: of
// those that are no more costly than the cheapest, by a tenth.
void FindKey(const StackTable& stacks, const std::vector<int64_t>& frame_costs, Cluster& cluster) {
  const std::vector<FrameSymbol>& frames =
      cluster.common.empty() ? cluster.patterns.front().frames : cluster.common;
  std::vector<FrameSymbol> telling;
  for (const FrameSymbol frame : frames) {
    if (IsTelling(stacks, frame)) telling.push_back(frame);
  }
  if (telling.empty()) telling.push_back(frames.back());
  cluster.site = telling.back();
  int64_t least_ns = INT64_MAX;
  for (const FrameSymbol frame : telling) least_ns = std::min(least_ns, frame_costs[frame]);
  cluster.key = *std::find_if(telling.begin(), telling.end(), [&](FrameSymbol frame) {
    return frame_costs[frame] - least_ns <= least_ns / 10;
  });
}

void FindKeys(const Evidence& evidence, const StackCosts& costs, std::vector<Cluster>& clusters) {
  for (const StackKind kind : {StackKind::kWait, StackKind::kRun}) {
    const std::vector<int64_t> frame_costs = FrameCosts(evidence, costs, kind);
    for (Cluster& cluster : clusters) {
      if (cluster.kind == kind) FindKey(evidence.stacks, frame_costs, cluster);
    }
  }
}

std::vector<LabelledPattern> PatternsOf(const std::vector<Cluster>& clusters) {
  std::vector<LabelledPattern> patterns;
  for (const Cluster& cluster : clusters) {
    for (const MinedPattern& pattern : cluster.patterns) {
      patterns.push_back({cluster.label, cluster.kind, pattern.frames});
    }
    if (cluster.anchor) {
      patterns.push_back({cluster.label, cluster.kind, cluster.anchor->closure});
    }
  }
  return patterns;
}

void Rank(SortBy sort, std::vector<Cluster>& clusters) {
  std::sort(clusters.begin(), clusters.end(), [&](const Cluster& a, const Cluster& b) {
    const uint64_t value_a = SortValue(a, sort);
    const uint64_t value_b = SortValue(b, sort);
    if (value_a != value_b) return value_a > value_b;
    if (a.metrics.cost_ns != b.metrics.cost_ns) return a.metrics.cost_ns > b.metrics.cost_ns;
    return a.id < b.id;
  });
}

// What each cluster has when every stack is given to the one that tells most
// about it, and every nanosecond to the outermost such wait.
class Owning {
 public:
  Owning(const Evidence& evidence, const std::vector<LabelledPattern>& patterns,
         const FunctionSymbols& symbols, const cluster::NgramCounts& counts, size_t jobs,
         const MineResult& result)
      : evidence_(evidence),
        patterns_(patterns),
        symbols_(symbols),
        counts_(counts),
        jobs_(jobs),
        result_(result),
        order_(result.clusters.size()) {
    // Where patterns tell equally much: the costlier cluster, then the smaller id.
    std::vector<const Cluster*> ordered;
    for (const Cluster& cluster : result.clusters) ordered.push_back(&cluster);
    std::sort(ordered.begin(), ordered.end(), [](const Cluster* a, const Cluster* b) {
      if (a->metrics.cost_ns != b->metrics.cost_ns) return a->metrics.cost_ns > b->metrics.cost_ns;
      return a->id < b->id;
    });
    for (uint32_t i = 0; i < ordered.size(); ++i) order_[ordered[i]->label] = i;
  }

  // By label; `score` says first who tells more.
  std::vector<LabelTime> Share(const std::vector<int64_t>& score) const {
    const Owners owners =
        FindOwners(evidence_, result_.labels, patterns_, order_, score, symbols_, counts_, jobs_);
    const StackLabels own{.wait = AsLabels(owners.wait), .run = AsLabels(owners.run)};
    Cover cover = MakeCover(evidence_, own, result_.runs_by_thread);
    // What lies behind a wait that has an owner explains that wait and is no delay
    // of its own.
    for (NodeIndex n = 0; n < cover.own.size(); ++n) {
      if (cover.above[n] != 0) cover.own[n] = 0;
    }
    return MeasureTimes(evidence_, cover, result_.clusters.size());
  }

 private:
  static LabelsByStack AsLabels(const std::vector<uint32_t>& own) {
    LabelsByStack labels(own.size());
    for (size_t s = 0; s < own.size(); ++s) {
      if (own[s] != kNoOwner) labels[s] = {own[s]};
    }
    return labels;
  }

  const Evidence& evidence_;
  const std::vector<LabelledPattern>& patterns_;
  const FunctionSymbols& symbols_;
  const cluster::NgramCounts& counts_;
  size_t jobs_;
  const MineResult& result_;
  std::vector<uint32_t> order_;
};

// First by anchors alone, in which a costly one takes stacks from others that it
// has little to do with. A cluster that had to give most of its time to others
// tells little about what it was left with, so then those that kept at least
// half of theirs come first.
void AddOwned(const Owning& owning, MineResult& result) {
  constexpr int64_t kKeptHalf = int64_t{1} << 62;
  std::vector<int64_t> score(result.clusters.size());
  for (const Cluster& cluster : result.clusters) {
    if (cluster.anchor) score[cluster.label] = std::min(cluster.anchor->Score(), kKeptHalf - 1);
  }
  std::vector<LabelTime> owned = owning.Share(score);
  for (const Cluster& cluster : result.clusters) {
    const bool kept_half = owned[cluster.label].time_ns >= cluster.metrics.time_ns / 2;
    if (kept_half) score[cluster.label] += kKeptHalf;
  }
  owned = owning.Share(score);
  for (Cluster& cluster : result.clusters) {
    cluster.own_ns = owned[cluster.label].time_ns;
    cluster.impact = owned[cluster.label].impact;
  }
}

void AddGains(const Evidence& evidence, MineResult& result) {
  std::vector<uint32_t> rank(result.clusters.size());
  for (uint32_t i = 0; i < rank.size(); ++i) rank[result.clusters[i].label] = i;
  const std::vector<int64_t> gains = GainByRank(result.cover, rank);
  result.covered_ns = 0;
  for (Cluster& cluster : result.clusters) {
    cluster.gain_ns = gains[cluster.label];
    result.covered_ns += cluster.gain_ns;
  }
  // Whole events count in scope graph, whatever the instances lasted.
  const bool graph = evidence.scope == waitgraph::Scope::kGraph;
  const int64_t whole_ns = graph ? evidence.account.aoi_ns : evidence.account.area.total_ns;
  result.rest_ns = whole_ns - result.covered_ns;
}

// Of several clusters around this one, the smallest: so parts nest.
void FindParts(MineResult& result) {
  std::vector<uint32_t> place(result.clusters.size());
  for (uint32_t i = 0; i < place.size(); ++i) {
    place[result.clusters[i].label] = i;
    result.clusters[i].part_of = kNoCluster;
    result.clusters[i].inside_ns = 0;
  }
  for (const auto& [pair, inside_ns] : TimeInside(result.cover)) {
    Cluster& inner = result.clusters[place[pair.first]];
    const uint32_t around = place[pair.second];
    const Metrics& outer = result.clusters[around].metrics;
    const int64_t time_ns = inner.metrics.time_ns;
    // The order by time, then by place, keeps two from being part of each other.
    const bool larger =
        outer.time_ns > time_ns || (outer.time_ns == time_ns && around < place[pair.first]);
    if (!larger || time_ns == 0 || inside_ns < ShareOf(kPartOfShare, time_ns)) continue;
    const bool nearer =
        inner.part_of == kNoCluster ||
        outer.time_ns < result.clusters[inner.part_of].metrics.time_ns ||
        (outer.time_ns == result.clusters[inner.part_of].metrics.time_ns && around > inner.part_of);
    if (!nearer) continue;
    inner.part_of = around;
    inner.inside_ns = inside_ns;
  }
}

}  // namespace

bool IsDeviceAlone(const Cluster& cluster) {
  if (cluster.kind != StackKind::kWait) return false;
  const Metrics& metrics = cluster.metrics;
  const Composition& below = metrics.below;
  const int64_t all_ns =
      below.running_ns + below.ready_ns + below.hardware_ns + below.unexplained_ns;
  const int64_t disk_ns = metrics.class_ns[static_cast<size_t>(waitgraph::WaitClass::kDisk)];
  // Charged to more than two instances on average: others wait behind it.
  if (metrics.distinct_ns < metrics.cost_ns / 2) return false;
  return disk_ns >= ShareOf(kDeviceShare, metrics.cost_ns) &&
         below.hardware_ns >= ShareOf(kDeviceShare, all_ns);
}

uint64_t SortValue(const Cluster& cluster, SortBy sort) {
  const Metrics& metrics = cluster.metrics;
  switch (sort) {
    case SortBy::kImpact:
      // Impact is a sum of squares.
      return IsDeviceAlone(cluster) ? cluster.impact / 64 : cluster.impact;
    case SortBy::kCost:
      return static_cast<uint64_t>(metrics.cost_ns);
    case SortBy::kTime:
      return static_cast<uint64_t>(metrics.time_ns);
    case SortBy::kTraces:
      return metrics.traces;
    case SortBy::kEvents:
      return metrics.events;
    case SortBy::kAverage:
      return static_cast<uint64_t>(metrics.average_ns());
    case SortBy::kP95:
      return static_cast<uint64_t>(metrics.p95_ns);
    case SortBy::kInstances:
      return metrics.instances;
  }
  return 0;
}

void RankLast(const Evidence& evidence, const std::vector<bool>& last, MineResult& result) {
  std::vector<Cluster> first;
  std::vector<Cluster> behind;
  for (size_t i = 0; i < result.clusters.size(); ++i) {
    (last[i] ? behind : first).push_back(std::move(result.clusters[i]));
  }
  for (Cluster& cluster : behind) first.push_back(std::move(cluster));
  result.clusters = std::move(first);
  AddGains(evidence, result);
  FindParts(result);
}

MineResult MineClusters(const Evidence& evidence, const MineOptions& options) {
  return MineClustersBy(&mine::MineMaximal, evidence, options).value();
}

Result<MineResult> MineClustersBy(const MaximalMiner& miner, const Evidence& evidence,
                                  const MineOptions& options) {
  const StackCosts costs = CostsOfStacks(evidence);
  CULPRIT_ASSIGN(const MinedPatterns mined,
                 MinePatternsBy(miner, evidence, costs, options.patterns));
  MineResult result;
  result.lambda_ns = mined.lambda_ns;
  result.truncated = mined.truncated;
  result.why = mined.why;
  result.patterns = mined.patterns.size();
  result.distinct_stacks = costs.stacks.size();
  result.wait_ns = costs.wait_ns;
  result.run_ns = costs.run_ns;
  result.runs_by_thread = costs.runs_by_thread;
  const FunctionSymbols symbols(evidence.stacks);
  const cluster::NgramCounts counts = CountNgrams(evidence, symbols);
  result.clusters = GroupPatterns(evidence, costs, mined, symbols, counts, options);
  const std::vector<LabelledPattern> patterns = PatternsOf(result.clusters);
  result.labels = MatchStacks(evidence, costs, patterns, options.patterns.jobs);
  result.cover = MakeCover(evidence, result.labels, costs.runs_by_thread);
  std::vector<Metrics> metrics =
      Measure(evidence, result.labels, result.cover, result.clusters.size());
  for (Cluster& cluster : result.clusters) cluster.metrics = std::move(metrics[cluster.label]);
  FindKeys(evidence, costs, result.clusters);
  AddOwned(Owning(evidence, patterns, symbols, counts, options.patterns.jobs, result), result);
  Rank(options.sort, result.clusters);
  AddGains(evidence, result);
  FindParts(result);
  return result;
}

}  // namespace culprit::stackmine
