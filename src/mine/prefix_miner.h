// SPDX-License-Identifier: Apache-2.0
//
// PrefixMiner: grows patterns at their end only, as BIDE does (Wang and Han,
// 2004), over sequences as they are. A prefix needs one number a sequence, its
// earliest match, however often items repeat, so that recursion costs this
// miner nothing special; and a prefix into which some item always fits is cut
// at once (their BackScan), so that a cycle of calls is walked around once and
// not in all its subsequences. On ordinary stacks it visits far more nodes than
// the insertion miner. No recursion of its own: patterns may be as long as the
// longest sequence. Used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mine/budget.h"
#include "mine/database.h"
#include "mine/sequence_list.h"

namespace culprit::mine {

class PrefixMiner {
 public:
  PrefixMiner(const Database& data, size_t item_count, int64_t lambda, Allowance& allowance);

  // Adds to `found` frequent sequences, among them every maximal one.
  void Mine(SequenceList& found);

 private:
  // The prefix ends before items[end] of the sequence, at the earliest.
  struct Match {
    uint32_t sequence;
    uint32_t end;
  };
  struct Frame {
    size_t matches_begin;
    size_t extensions_begin;
    size_t next_extension;
  };

  void Pop();
  void Extend(Item item);
  int64_t MatchedCost() const;
  void DropKnown(const SequenceList& found);
  bool AlwaysHoldsMore();
  bool EndsInOne(SequenceList& found) const;
  void FindExtensions();
  void Emit(SequenceList& found);
  std::span<const Item> Suffix(const Match& match) const {
    return data_.sequences.at(match.sequence).subspan(match.end);
  }
  std::span<const Match> Matches() const {
    return std::span(matches_).subspan(frames_.back().matches_begin);
  }
  void SemiMaximumPeriods(std::span<const Item> sequence);

  const Database& data_;
  size_t item_count_;
  int64_t lambda_;
  Allowance& allowance_;
  std::vector<Item> prefix_;
  std::vector<Frame> frames_;
  std::vector<Match> matches_;
  std::vector<Item> extensions_;

  // Of the node at hand.
  std::vector<int64_t> item_costs_;
  std::vector<uint64_t> seen_;
  uint64_t now_ = 0;
  std::vector<uint32_t> first_ends_;
  std::vector<uint32_t> last_starts_;
};

}  // namespace culprit::mine
