// SPDX-License-Identifier: Apache-2.0
//
// Anomalies: the execution units that are unlike the others (PerfScope, 3.2.2).
// Units are clustered by which symbols they have (appearance_clusters.h); a
// cluster of fewer than 4 units is abnormal whole; in others a unit is abnormal
// if the distance to its nearest neighbour exceeds mean + 2 sigma of its
// cluster's, by the average duration of each symbol (in steps of 10 us) or by its
// number of calls.
//
// A pure function of log and units; the same for any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "episode/units.h"

namespace culprit::episode {

enum AnomalyFlag : uint8_t {
  kSmallCluster = 1 << 0,
  kUnusualTimes = 1 << 1,
  kUnusualCounts = 1 << 2,
};

struct Anomalies {
  std::vector<uint8_t> flags;  // by unit; 0: normal
  std::vector<uint32_t> cluster;
  uint32_t clusters = 0;
  uint64_t abnormal = 0;  // units
  uint64_t by_small_cluster = 0;
  uint64_t by_times = 0;
  uint64_t by_counts = 0;
};

Anomalies FindAnomalies(const SyscallLog& log, const Units& units, size_t jobs);

}  // namespace culprit::episode
