// SPDX-License-Identifier: Apache-2.0
//
// FunctionSymbols: frames as clustering sees them. Mining tells frames apart by
// "module!function"; the similarity of two patterns by the function alone, with
// the module only where a frame has no name (SPEC §5). Names from outside the
// corpus, those of stored signatures, can be added. CountNgrams gives the
// statistics of all stacks of the corpus, not only of the area of interest.
// One thread at a time while names are added.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/ngram_counts.h"
#include "cluster/symbol_words.h"
#include "stackmine/evidence.h"

namespace culprit::stackmine {

class FunctionSymbols {
 public:
  explicit FunctionSymbols(const StackTable& stacks);

  cluster::Symbol Of(FrameSymbol frame) const { return by_frame_[frame]; }
  cluster::PatternSymbols Of(const std::vector<FrameSymbol>& frames) const;
  // "module!function" or "module!+0x12ab".
  cluster::Symbol OfName(std::string_view name);
  const cluster::SymbolWords& words() const { return words_; }

 private:
  cluster::Symbol Add(std::string_view identity, bool named);

  cluster::SymbolWords words_;
  std::unordered_map<std::string, cluster::Symbol> by_identity_;
  std::vector<cluster::Symbol> by_frame_;
};

cluster::NgramCounts CountNgrams(const Evidence& evidence, const FunctionSymbols& symbols);

}  // namespace culprit::stackmine
