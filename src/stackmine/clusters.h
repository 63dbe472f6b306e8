// SPDX-License-Identifier: Apache-2.0
//
// MineClusters: from evidence to ranked clusters, the whole of StackMine: mine
// the costly patterns, group those that are variants of one behaviour (waits
// and runs apart; by similarity, then by anchor), measure and rank the groups. A cluster shows what
// its patterns share and where they differ (001 figure 5). Its id is a hash of what they share, so
// it stays the same when the ranking, the corpus or lambda change around it.
//
// Costs of clusters overlap, so they do not add up to anything. What adds up is
// the gain: going down the ranking, the time a cluster explains that none
// before it did. Gains and the rest sum to the time of the instances.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/pattern_clusters.h"
#include "stackmine/anchors.h"
#include "stackmine/cover.h"
#include "stackmine/metrics.h"
#include "stackmine/patterns.h"

namespace culprit::stackmine {

enum class SortBy : uint8_t { kImpact, kCost, kTime, kTraces, kEvents, kAverage, kP95, kInstances };

struct MineOptions {
  PatternOptions patterns;
  cluster::ClusterOptions clustering;
  bool anchors = true;  // join what has one anchor (anchors.h); false: similarity alone
  SortBy sort = SortBy::kImpact;
};

// A stretch of a cluster's frames: shared by all its patterns, or variants.
struct ClusterSegment {
  std::vector<FrameSymbol> shared;
  std::vector<std::vector<FrameSymbol>> variants;  // distinct; one may be empty
};

inline constexpr uint32_t kNoCluster = UINT32_MAX;

struct Cluster {
  std::string id;  // ten hexadecimal digits
  StackKind kind = StackKind::kWait;
  uint32_t label = 0;                  // in MineResult::labels and cover
  std::vector<MinedPattern> patterns;  // costliest first
  std::vector<ClusterSegment> segments;
  std::vector<FrameSymbol> common;  // the shared segments, joined
  // If it has an anchor: what the stacks with that function share. It counts as
  // a pattern of the cluster, so variants too cheap to be patterns are counted.
  std::optional<Anchor> anchor;
  // For one line about it: the rarest of its frames, and the leaf-most; both
  // with a name and outside kernel and C library where there is such a frame.
  FrameSymbol key = 0;
  FrameSymbol site = 0;
  Metrics metrics;
  // Time of the stacks it tells most about (owners.h) that is not behind a wait
  // of another: each nanosecond of an instance is own time of one cluster.
  int64_t own_ns = 0;
  uint64_t impact = 0;  // Metrics::impact of that time
  int64_t gain_ns = 0;
  uint32_t part_of = kNoCluster;  // index in MineResult::clusters: its time is inside that one's
  int64_t inside_ns = 0;          // how much of it
};

struct MineResult {
  std::vector<Cluster> clusters;  // ranked
  int64_t lambda_ns = 0;
  bool truncated = false;
  std::string why;
  uint64_t patterns = 0;
  uint64_t distinct_stacks = 0;  // in the area of interest
  int64_t wait_ns = 0;           // summed costs of what was mined
  int64_t run_ns = 0;
  bool runs_by_thread = false;
  int64_t covered_ns = 0;  // the gains; covered + rest = total of the instances
  int64_t rest_ns = 0;
  StackLabels labels;
  Cover cover;
};

MineResult MineClusters(const Evidence& evidence, const MineOptions& options);
// The same, of patterns that `miner` finds (patterns.h).
Result<MineResult> MineClustersBy(const MaximalMiner& miner, const Evidence& evidence,
                                  const MineOptions& options);

// Ranks the clusters that are marked (by place) behind all others, and settles
// gains and parts anew.
void RankLast(const Evidence& evidence, const std::vector<bool>& last, MineResult& result);

// Waits for the disk with nothing between the waiter and the device (no lock, no
// other thread, no fault) that hold up hardly anyone else. Only asking less or a
// faster device helps.
bool IsDeviceAlone(const Cluster& cluster);

// The value a cluster is ranked by. In the order of impact, time for the device
// alone counts an eighth: what somebody else held up comes first.
uint64_t SortValue(const Cluster& cluster, SortBy sort);

}  // namespace culprit::stackmine
