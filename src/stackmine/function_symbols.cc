// SPDX-License-Identifier: Apache-2.0
#include "stackmine/function_symbols.h"

#include "stackmine/reduce.h"

namespace culprit::stackmine {

FunctionSymbols::FunctionSymbols(const StackTable& stacks) {
  by_frame_.reserve(stacks.frames());
  for (FrameSymbol f = 0; f < stacks.frames(); ++f) {
    const bool named = stacks.Named(f);
    by_frame_.push_back(Add(named ? stacks.Function(f) : stacks.FrameName(f), named));
  }
}

cluster::Symbol FunctionSymbols::Add(std::string_view identity, bool named) {
  // A function could be called as an unnamed frame is: the mark keeps them apart.
  const std::string key = (named ? "f" : "u") + std::string(identity);
  const auto it = by_identity_.find(key);
  if (it != by_identity_.end()) return it->second;
  const cluster::Symbol symbol = named ? words_.AddNamed(identity) : words_.AddUnnamed();
  by_identity_.emplace(key, symbol);
  return symbol;
}

cluster::PatternSymbols FunctionSymbols::Of(const std::vector<FrameSymbol>& frames) const {
  cluster::PatternSymbols symbols;
  symbols.reserve(frames.size());
  for (const FrameSymbol frame : frames) symbols.push_back(by_frame_[frame]);
  return symbols;
}

cluster::Symbol FunctionSymbols::OfName(std::string_view name) {
  const size_t bang = name.find('!');
  const std::string_view function = bang == std::string_view::npos ? name : name.substr(bang + 1);
  const bool named = !function.starts_with("+0x") && !IsPseudoFrame(name);
  return Add(named ? function : name, named);
}

cluster::NgramCounts CountNgrams(const Evidence& evidence, const FunctionSymbols& symbols) {
  cluster::NgramCounts counts;
  std::vector<FrameSymbol> frames;
  for (StackIndex s = 0; s < evidence.stacks.stacks(); ++s) {
    if (evidence.occurrences[s] == 0) continue;
    evidence.stacks.Frames(s, frames);
    counts.AddStack(symbols.Of(frames), evidence.occurrences[s]);
  }
  return counts;
}

}  // namespace culprit::stackmine
