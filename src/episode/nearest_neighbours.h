// SPDX-License-Identifier: Apache-2.0
//
// Nearest neighbours: for each of many points with whole coordinates the
// squared Euclidean distance to the nearest other point, exactly, by a k-d
// tree. Coordinates are clamped to kLargestCoordinate so that no sum overflows.
// Equal points are each other's neighbours at distance 0. O(n log n) where few
// coordinates matter, O(n^2) at worst. A pure function; points in parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace culprit::episode {

inline constexpr uint32_t kLargestCoordinate = uint32_t{1} << 26;

struct PointTable {
  size_t dimensions = 0;
  std::vector<uint32_t> coordinates;  // point by point

  size_t size() const { return dimensions == 0 ? 0 : coordinates.size() / dimensions; }
};

// One distance a point; UINT64_MAX for a point that is alone.
std::vector<uint64_t> NearestNeighbours(const PointTable& points, size_t jobs);

}  // namespace culprit::episode
