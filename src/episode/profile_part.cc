// SPDX-License-Identifier: Apache-2.0
#include "episode/profile_part.h"

#include <algorithm>

#include "base/parallel.h"

namespace culprit::episode {
namespace {

std::vector<SymbolCount> CountsOf(const std::map<Symbol, uint64_t>& counts) {
  std::vector<SymbolCount> flat;
  for (const auto& [symbol, count] : counts) flat.push_back({symbol, count});
  return flat;
}

void AddFunction(const PartFunction& part, const std::vector<Symbol>& symbols, PartFunction& sum) {
  for (const auto& [symbol, count] : part.innermost) sum.innermost[symbols[symbol]] += count;
  for (const auto& [symbol, count] : part.inclusive) sum.inclusive[symbols[symbol]] += count;
  for (WeightedSequence sequence : part.sequences) {
    for (Symbol& symbol : sequence.symbols) symbol = symbols[symbol];
    sum.sequences.push_back(std::move(sequence));
  }
}

ProfiledFunction MineFunction(const FunctionName& name, PartFunction& part,
                              const EpisodeOptions& options) {
  ProfiledFunction function;
  function.name = name;
  function.innermost = CountsOf(part.innermost);
  function.inclusive = CountsOf(part.inclusive);
  const auto sequences = MergeEqual(std::move(part.sequences));
  ClosedEpisodes mined = MineClosedEpisodes(sequences, options);
  function.episodes = std::move(mined.episodes);
  function.bound = static_cast<uint8_t>(mined.bound);
  function.capped = mined.capped;
  KeepMostFrequent(function);
  return function;
}

}  // namespace

void AddPart(const ProfilePart& part, const std::function<bool(const FunctionName&)>& wanted,
             ProfilePart& sum) {
  std::vector<Symbol> symbols;
  for (size_t i = 0; i < part.symbols.size(); ++i) {
    symbols.push_back(sum.symbols.Intern(part.symbols.Name(static_cast<Symbol>(i))));
  }
  for (const auto& [name, function] : part.functions) {
    if (wanted(name)) AddFunction(function, symbols, sum.functions[name]);
  }
  for (const auto& [symbol, total] : part.totals) {
    SymbolTotal& to = sum.totals[symbols[symbol]];
    to.symbol = symbols[symbol];
    to.count += total.count;
    to.first_half += total.first_half;
    to.dur_ns += total.dur_ns;
  }
  for (const auto& [role, counts] : part.roles) {
    auto& to = sum.roles[role];
    for (const auto& [symbol, count] : counts) to[symbols[symbol]] += count;
  }
  sum.processes.insert(part.processes.begin(), part.processes.end());
  sum.archs.insert(part.archs.begin(), part.archs.end());
  sum.traces += part.traces;
  sum.syscalls += part.syscalls;
  sum.owned += part.owned;
  sum.with_stack += part.with_stack;
  sum.function_calls += part.function_calls;
  sum.has_durations = sum.has_durations || part.has_durations;
  sum.named = sum.named && part.named;
  sum.diagnostics.Merge(part.diagnostics);
}

Profile MineProfile(ProfilePart part, const EpisodeOptions& options, size_t jobs) {
  Profile profile;
  profile.arch = part.archs.size() == 1 ? *part.archs.begin() : std::string();
  profile.processes.assign(part.processes.begin(), part.processes.end());
  profile.traces = part.traces;
  profile.syscalls = part.syscalls;
  profile.owned = part.owned;
  profile.has_durations = part.has_durations;
  for (const auto& [symbol, total] : part.totals) profile.totals.push_back(total);
  profile.roles = RolesOf(part.roles);
  std::vector<std::pair<const FunctionName, PartFunction>*> functions;
  functions.reserve(part.functions.size());
  for (auto& function : part.functions) functions.push_back(&function);
  profile.functions.resize(functions.size());
  ParallelFor(functions.size(), jobs, [&](size_t i) {
    profile.functions[i] = MineFunction(functions[i]->first, functions[i]->second, options);
  });
  profile.symbols = std::move(part.symbols);
  return profile;
}

}  // namespace culprit::episode
