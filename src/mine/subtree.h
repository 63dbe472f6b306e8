// SPDX-License-Identifier: Apache-2.0
//
// MineSubtree and MergeSubtrees: MineMaximal in pieces that know nothing of each
// other, so that they can be mined one after the other in little memory, or by many
// hosts. A pattern belongs to the piece of its least costly item; a piece finds all
// maximal patterns that belong to it and, beside them, some that a pattern of an
// earlier piece contains. Merging takes those out. So the pieces 0..count-1 merged
// are the patterns of MineMaximal, to the byte, for any count.
//
// Mining a piece keeps the sequences that hold one of its items, without the items
// of earlier pieces; the input itself stays in memory. Where a bound on patterns is
// spent there is no such answer: `too_many` says so.
#pragma once

#include <cstdint>
#include <vector>

#include "mine/maximal.h"
#include "mine/prepare.h"
#include "mine/sequences.h"

namespace culprit::mine {

struct SubtreeOptions {
  int64_t lambda = 1;         // below 1 it is taken as 1
  size_t jobs = 0;            // threads; 0: all hardware threads
  uint64_t max_patterns = 0;  // 0: no bound
};

struct Subtree {
  std::vector<Pattern> patterns;  // in canonical order
  bool too_many = false;          // more than max_patterns; some are missing
};

Subtree MineSubtree(const WeightedSequences& sequences, const Piece& piece,
                    const SubtreeOptions& options);

// Adds what was found in the pieces right after those in `sum`: both may be of
// several pieces, merged before. Symbols may be any.
void MergeSubtree(Subtree part, uint64_t max_patterns, Subtree& sum);

// MineMaximal's answer, one piece after the other. A budget that is spent, and one
// of time or memory in any case, makes it search in one go.
MaximalResult MineInPieces(const WeightedSequences& sequences, const MaximalOptions& options,
                           uint64_t pieces);

}  // namespace culprit::mine
