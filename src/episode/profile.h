// SPDX-License-Identifier: Apache-2.0
//
// Profile: which function of a program makes which system calls, learned from
// traces where that can be seen: system calls with user stacks, or with the
// entries and exits of functions on the same threads. Per function: how often
// each symbol was made by it itself (innermost) and by it or what it called
// (inclusive), and the closed frequent episodes of its own sequences, one
// sequence a thread and trace. Totals of all calls, owned or not, stand beside,
// so that shares can be taken. It is small: counts, never times of calls.
//
// Passive data with its own symbol table; functions are in the order of their
// labels, counts in the order of symbols. docs/inference.md has the file.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "episode/closed_episodes.h"
#include "episode/owner.h"
#include "episode/syscall_log.h"

namespace culprit::episode {

struct SymbolCount {
  Symbol symbol = 0;
  uint64_t count = 0;

  bool operator==(const SymbolCount&) const = default;
};

struct SymbolTotal {
  Symbol symbol = 0;
  uint64_t count = 0;
  uint64_t first_half = 0;  // of it, in the first half of each thread's calls
  int64_t dur_ns = 0;

  bool operator==(const SymbolTotal&) const = default;
};

struct ProfiledFunction {
  FunctionName name;
  std::vector<SymbolCount> innermost;
  std::vector<SymbolCount> inclusive;
  std::vector<EpisodeCount> episodes;  // the most frequent kMaxEpisodesKept
  uint64_t episodes_found = 0;
  uint8_t bound = 0;  // the longest episodes that were looked for
  bool capped = false;

  uint64_t Innermost() const;  // calls
  uint64_t Inclusive() const;
  bool operator==(const ProfiledFunction&) const = default;
};

inline constexpr size_t kMaxEpisodesKept = 2000;

// What the threads of one name made (ThreadLog::role).
struct RoleCalls {
  std::string name;
  std::vector<SymbolCount> calls;

  bool operator==(const RoleCalls&) const = default;
};

inline constexpr size_t kMaxRoles = 256;  // with more names tell nothing, and none are kept

struct Profile {
  SymbolTable symbols;
  std::string arch;
  std::vector<std::string> processes;  // whose calls these are; ascending
  uint64_t traces = 0;
  uint64_t syscalls = 0;
  uint64_t owned = 0;          // of them, those with a function
  bool has_durations = false;  // the totals' dur_ns mean something
  std::vector<SymbolTotal> totals;
  std::vector<ProfiledFunction> functions;
  std::vector<RoleCalls> roles;  // by name; empty: not known
};

struct ProfileOptions {
  std::vector<std::string> processes;  // globs; empty: all
  OwnerOptions owners;
  EpisodeOptions episodes;
  size_t jobs = 0;
};

struct ProfilePart;

using CallsByRole = std::map<std::string, std::map<Symbol, uint64_t>>;
std::vector<RoleCalls> RolesOf(const CallsByRole& calls);

// Keeps the first kMaxEpisodesKept, and how many there were.
void KeepMostFrequent(ProfiledFunction& function);

class ProfileBuilder {
 public:
  explicit ProfileBuilder(ProfileOptions options) : options_(std::move(options)) {}

  // Gives the first symbols the ids they have in `symbols`. Before the first Add.
  void StartWith(const SymbolTable& symbols);
  void Add(const trace::TraceReader& reader);
  // The system calls of one trace and the functions of another, of the same time. Its
  // own functions and stacks do not count. An Error if the clocks differ.
  Status Add(const trace::TraceReader& syscalls, const trace::TraceReader& functions);
  // Mines the episodes, functions in parallel. Nothing may follow.
  Profile Finish();
  // What there is before that (profile_part.h). Nothing may follow.
  ProfilePart TakePart();

  const Diagnostics& diagnostics() const { return diagnostics_; }
  uint64_t with_stack() const { return with_stack_; }
  uint64_t function_calls() const { return function_calls_; }
  bool named() const { return named_; }
  // What grows with the traces: the calls of functions, in sequence.
  uint64_t sequence_bytes() const { return owned_ * sizeof(Symbol); }

 private:
  struct Gathered {
    std::map<Symbol, uint64_t> innermost;
    std::map<Symbol, uint64_t> inclusive;
    std::vector<WeightedSequence> sequences;
  };
  SyscallLog Read(const trace::TraceReader& reader);
  void AddThread(const ThreadLog& thread, StackOwners& owners);
  void CountTotals(const ThreadLog& thread);

  ProfileOptions options_;
  SymbolTable symbols_;
  FunctionTable functions_;
  std::vector<Gathered> gathered_;  // by FunctionId
  std::map<Symbol, SymbolTotal> totals_;
  CallsByRole roles_;
  std::set<std::string> processes_;
  std::set<std::string> archs_;
  uint64_t traces_ = 0;
  uint64_t syscalls_ = 0;
  uint64_t owned_ = 0;
  uint64_t with_stack_ = 0;
  uint64_t function_calls_ = 0;
  bool has_durations_ = false;
  bool named_ = true;
  Diagnostics diagnostics_;
};

// Counts added up, by build-id and function. Exact for counts; an episode that
// was below the support in one of the two counts zero there, so its sum is a
// lower bound, and it is kept only where it is still closed among the others.
Profile MergeProfiles(const Profile& a, const Profile& b);

}  // namespace culprit::episode
