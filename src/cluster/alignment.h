// SPDX-License-Identifier: Apache-2.0
//
// Alignment: the cheapest way to turn one sequence of frames into another (StackMine
// §VI.A; docs/clustering.md). A match costs 0, an insertion or deletion 1, a
// substitution what the given rows say. Of several cheapest ways it is the one
// found by tracing back from the leaf, preferring match, then substitution, then
// deletion, then insertion. A substitution never costs more than 1, so a
// deletion never stands next to an insertion, and a match that the trace meets
// is always taken.
//
// Keeps its memory for the next call; not thread safe. O(length * length) in
// time and memory; at most kMaxFrames on either side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/fixed.h"

namespace culprit::cluster {

// At this length all costs fit 32 bits: none exceeds the longer length.
inline constexpr size_t kMaxFrames = 4000;

// A deletion is a frame of the left sequence alone.
enum class Step : uint8_t { kMatch, kSubstitution, kDeletion, kInsertion };

class Alignment {
 public:
  // Of a sequence of `columns` frames with one of rows.size() frames:
  // rows[j][i] is the cost of substituting frame i of the one by frame j of the
  // other, 0 if they match. Returns the steps, leaf first, until the next call.
  const std::vector<Step>& Align(size_t columns, std::span<const Fixed* const> rows,
                                 bool columns_are_left);

 private:
  void FillCosts(size_t columns, std::span<const Fixed* const> rows);
  void TraceBack(size_t columns, std::span<const Fixed* const> rows, bool columns_are_left);

  std::vector<uint32_t> costs_;  // (rows + 1) x (columns + 1)
  std::vector<Step> steps_;
};

}  // namespace culprit::cluster
