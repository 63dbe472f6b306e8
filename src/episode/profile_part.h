// SPDX-License-Identifier: Apache-2.0
//
// ProfilePart: what the traces of a profile come to before episodes are mined:
// counts, and per function its sequences of calls. Parts add up by name, in the
// order of their traces to the same sum wherever the traces are cut; and functions
// are mined independently of each other, so a sum may be cut by function too. That
// is how hosts share the work (scale/profile_verbs.h).
//
// Passive data with its own symbol table. Memory is that of the sequences, which are
// distinct in a part of one ProfileBuilder.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "episode/profile.h"

namespace culprit::episode {

struct PartFunction {
  std::map<Symbol, uint64_t> innermost;
  std::map<Symbol, uint64_t> inclusive;
  std::vector<WeightedSequence> sequences;  // in the order of first appearance
};

struct ProfilePart {
  SymbolTable symbols;
  std::map<FunctionName, PartFunction> functions;
  std::map<Symbol, SymbolTotal> totals;
  CallsByRole roles;
  std::set<std::string> processes;
  std::set<std::string> archs;
  uint64_t traces = 0;
  uint64_t syscalls = 0;
  uint64_t owned = 0;           // of them, those with a function
  uint64_t with_stack = 0;      // or with a user stack
  uint64_t function_calls = 0;  // recorded entries of functions
  bool has_durations = false;
  bool named = true;  // the numbers of all traces have names
  Diagnostics diagnostics;
};

// Appends `part`; of its functions, those that `wanted` wants.
void AddPart(const ProfilePart& part, const std::function<bool(const FunctionName&)>& wanted,
             ProfilePart& sum);

// Mines the episodes, functions in parallel; jobs as for ParallelFor.
Profile MineProfile(ProfilePart part, const EpisodeOptions& options, size_t jobs);

}  // namespace culprit::episode
