// SPDX-License-Identifier: Apache-2.0
//
// Distance of two call paths in Algorithm 1 of 002: (b - LCS) / b, where LCS is
// the length of the longest common subsequence and b that of the longer path. The
// distance of two units is its mean over all pairs of their root-to-leaf paths
// (path_sets.h); as printed a unit is not at distance 0 from itself, here it is.
// LCS by bit parallelism: a word of 64 positions a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/fixed.h"

namespace culprit::guard {

using FunctionPath = std::vector<uint32_t>;

size_t LongestCommonSubsequence(std::span<const uint32_t> a, std::span<const uint32_t> b);

// 1 - (b - LCS) / b; two empty paths are alike.
cluster::Fixed PathSimilarity(std::span<const uint32_t> a, std::span<const uint32_t> b);

}  // namespace culprit::guard
