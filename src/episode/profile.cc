// SPDX-License-Identifier: Apache-2.0
#include "episode/profile.h"

#include <algorithm>
#include <numeric>

#include "episode/function_log.h"
#include "episode/profile_part.h"

namespace culprit::episode {
namespace {

// For each system call of a thread the innermost function call around it: a
// stack of the open ones, as the paper keeps it.
class OpenFunctions {
 public:
  explicit OpenFunctions(const std::vector<Span>& functions) : functions_(functions) {}

  // Times must not decrease from call to call.
  trace::StackId At(int64_t time_ns) {
    while (next_ < functions_.size() && functions_[next_].time_ns <= time_ns) {
      Leave(functions_[next_].time_ns);
      open_.push_back(next_++);
    }
    Leave(time_ns);
    return open_.empty() ? trace::StackId() : functions_[open_.back()].stack;
  }

 private:
  void Leave(int64_t time_ns) {
    while (!open_.empty() && functions_[open_.back()].end_ns() <= time_ns) open_.pop_back();
  }

  const std::vector<Span>& functions_;
  std::vector<size_t> open_;
  size_t next_ = 0;
};

std::vector<SymbolCount> Flat(const std::map<Symbol, uint64_t>& counts) {
  std::vector<SymbolCount> flat;
  for (const auto& [symbol, count] : counts) flat.push_back({symbol, count});
  return flat;
}

uint64_t Sum(const std::vector<SymbolCount>& counts) {
  uint64_t sum = 0;
  for (const SymbolCount& row : counts) sum += row.count;
  return sum;
}

}  // namespace

std::vector<RoleCalls> RolesOf(const CallsByRole& calls) {
  std::vector<RoleCalls> roles;
  if (calls.size() > kMaxRoles) return roles;
  for (const auto& [name, counts] : calls) roles.push_back({name, Flat(counts)});
  return roles;
}

void KeepMostFrequent(ProfiledFunction& function) {
  function.episodes_found = std::max<uint64_t>(function.episodes_found, function.episodes.size());
  if (function.episodes.size() > kMaxEpisodesKept) function.episodes.resize(kMaxEpisodesKept);
}

uint64_t ProfiledFunction::Innermost() const { return Sum(innermost); }
uint64_t ProfiledFunction::Inclusive() const { return Sum(inclusive); }

void ProfileBuilder::StartWith(const SymbolTable& symbols) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols_.Intern(symbols.Name(static_cast<Symbol>(i)));
  }
}

SyscallLog ProfileBuilder::Read(const trace::TraceReader& reader) {
  SyscallLog log =
      ReadSyscallLog(reader, {.processes = options_.processes, .jobs = options_.jobs}, symbols_);
  ++traces_;
  syscalls_ += log.syscalls;
  with_stack_ += log.with_stack;
  function_calls_ += log.function_calls;
  has_durations_ = has_durations_ || log.has_durations;
  named_ = named_ && log.named;
  if (log.syscalls > 0) archs_.insert(log.arch);
  diagnostics_.Merge(log.diagnostics);
  return log;
}

void ProfileBuilder::Add(const trace::TraceReader& reader) {
  const SyscallLog log = Read(reader);
  StackOwners owners(reader.dictionary(), options_.owners, functions_);
  for (const ThreadLog& thread : log.threads) {
    processes_.insert(thread.process);
    CountTotals(thread);
    AddThread(thread, owners);
  }
}

Status ProfileBuilder::Add(const trace::TraceReader& syscalls,
                           const trace::TraceReader& functions) {
  CULPRIT_TRY(CheckSameTime(functions, syscalls));
  SyscallLog log = Read(syscalls);
  FunctionLog others = ReadFunctionLog(functions, options_.jobs);
  diagnostics_.Merge(others.diagnostics);
  function_calls_ += others.calls;
  StackOwners owners(functions.dictionary(), options_.owners, functions_);
  for (ThreadLog& thread : log.threads) {
    processes_.insert(thread.process);
    CountTotals(thread);
    // Stacks are of the other trace's dictionary.
    for (Syscall& call : thread.calls) call.stack = {};
    const int64_t tid = syscalls.dictionary().threads()[thread.thread.value].tid;
    thread.functions = others.threads[tid];
    AddThread(thread, owners);
  }
  return {};
}

void ProfileBuilder::CountTotals(const ThreadLog& thread) {
  auto& of_role = roles_[thread.role];
  for (size_t i = 0; i < thread.calls.size(); ++i) {
    const Syscall& call = thread.calls[i];
    SymbolTotal& total = totals_[call.symbol];
    total.symbol = call.symbol;
    ++total.count;
    ++of_role[call.symbol];
    if (2 * i < thread.calls.size()) ++total.first_half;
    total.dur_ns += call.dur_ns;
  }
}

void ProfileBuilder::AddThread(const ThreadLog& thread, StackOwners& owners) {
  OpenFunctions open(thread.functions);
  std::map<FunctionId, std::vector<Symbol>> sequences;
  for (const Syscall& call : thread.calls) {
    const Owners& around = owners.Of(open.At(call.time_ns));
    const Owners* who = &owners.Of(call.stack);
    // An interpreter's own frames are not the application, where its functions are known.
    if (!who->innermost.valid() || (around.made_code && !who->made_code)) who = &around;
    if (!who->innermost.valid()) continue;
    ++owned_;
    gathered_.resize(functions_.size());
    sequences[who->innermost].push_back(call.symbol);
    ++gathered_[who->innermost.value].innermost[call.symbol];
    for (const FunctionId function : who->inclusive) {
      ++gathered_[function.value].inclusive[call.symbol];
    }
  }
  for (auto& [function, symbols] : sequences) {
    gathered_[function.value].sequences.push_back({std::move(symbols)});
  }
}

ProfilePart ProfileBuilder::TakePart() {
  ProfilePart part;
  part.symbols = std::move(symbols_);
  for (size_t i = 0; i < gathered_.size(); ++i) {
    // Looked up, but somebody else's calls.
    if (gathered_[i].inclusive.empty()) continue;
    PartFunction& function = part.functions[functions_[FunctionId(i)]];
    function.innermost = std::move(gathered_[i].innermost);
    function.inclusive = std::move(gathered_[i].inclusive);
    function.sequences = MergeEqual(std::move(gathered_[i].sequences));
  }
  part.totals = std::move(totals_);
  part.roles = std::move(roles_);
  part.processes = std::move(processes_);
  part.archs = std::move(archs_);
  part.traces = traces_;
  part.syscalls = syscalls_;
  part.owned = owned_;
  part.with_stack = with_stack_;
  part.function_calls = function_calls_;
  part.has_durations = has_durations_;
  part.named = named_;
  part.diagnostics = diagnostics_;
  return part;
}

Profile ProfileBuilder::Finish() {
  return MineProfile(TakePart(), options_.episodes, options_.jobs);
}

namespace {

// The symbols of one profile as those of another.
class Renaming {
 public:
  Renaming(const SymbolTable& from, SymbolTable& to) {
    for (size_t i = 0; i < from.size(); ++i) {
      ids_.push_back(to.Intern(from.Name(static_cast<Symbol>(i))));
    }
  }
  Symbol operator()(Symbol symbol) const { return ids_[symbol]; }
  Episode operator()(Episode episode) const {
    for (size_t i = 0; i < episode.length; ++i) episode.symbols[i] = ids_[episode.symbols[i]];
    return episode;
  }

 private:
  std::vector<Symbol> ids_;
};

struct Sums {
  std::map<Symbol, uint64_t> innermost;
  std::map<Symbol, uint64_t> inclusive;
  std::map<Episode, uint64_t> episodes;
  uint64_t episodes_found = 0;
  uint8_t bound = kMaxEpisode;
  bool capped = false;
};

void AddTo(const Profile& profile, const Renaming& rename, std::map<FunctionName, Sums>& sums,
           std::map<Symbol, SymbolTotal>& totals) {
  for (const SymbolTotal& row : profile.totals) {
    SymbolTotal& total = totals[rename(row.symbol)];
    total.symbol = rename(row.symbol);
    total.count += row.count;
    total.first_half += row.first_half;
    total.dur_ns += row.dur_ns;
  }
  for (const ProfiledFunction& function : profile.functions) {
    Sums& sum = sums[function.name];
    for (const SymbolCount& row : function.innermost)
      sum.innermost[rename(row.symbol)] += row.count;
    for (const SymbolCount& row : function.inclusive)
      sum.inclusive[rename(row.symbol)] += row.count;
    for (const EpisodeCount& row : function.episodes) {
      sum.episodes[rename(row.episode)] += row.count;
    }
    sum.episodes_found = std::max(sum.episodes_found, function.episodes_found);
    sum.bound = std::min(sum.bound, function.bound);
    sum.capped = sum.capped || function.capped;
  }
}

// What one of them does not know, the sum does not either.
std::vector<RoleCalls> MergeRoles(const Profile& a, const Renaming& rename_a, const Profile& b,
                                  const Renaming& rename_b) {
  CallsByRole sums;
  if ((a.roles.empty() && a.syscalls > 0) || (b.roles.empty() && b.syscalls > 0)) return {};
  for (const RoleCalls& role : a.roles) {
    for (const SymbolCount& row : role.calls) sums[role.name][rename_a(row.symbol)] += row.count;
  }
  for (const RoleCalls& role : b.roles) {
    for (const SymbolCount& row : role.calls) sums[role.name][rename_b(row.symbol)] += row.count;
  }
  return RolesOf(sums);
}

// Is `part` what is left of `whole` when symbols are taken out?
bool IsPart(const Episode& part, const Episode& whole) {
  size_t state = 0;
  for (const Symbol symbol : whole.span()) {
    if (state < part.length && part.symbols[state] == symbol) ++state;
  }
  return state == part.length && part.length < whole.length;
}

std::vector<EpisodeCount> StillClosed(const std::map<Episode, uint64_t>& episodes) {
  std::map<uint64_t, std::vector<Episode>, std::greater<>> by_count;
  for (const auto& [episode, count] : episodes) by_count[count].push_back(episode);
  std::vector<EpisodeCount> closed;
  for (const auto& [count, equals] : by_count) {
    for (const Episode& episode : equals) {
      const bool open = std::any_of(equals.begin(), equals.end(),
                                    [&](const Episode& other) { return IsPart(episode, other); });
      if (!open) closed.push_back({episode, count});
    }
  }
  return closed;
}

}  // namespace

Profile MergeProfiles(const Profile& a, const Profile& b) {
  Profile merged;
  std::map<FunctionName, Sums> sums;
  std::map<Symbol, SymbolTotal> totals;
  const Renaming rename_a(a.symbols, merged.symbols);
  const Renaming rename_b(b.symbols, merged.symbols);
  AddTo(a, rename_a, sums, totals);
  AddTo(b, rename_b, sums, totals);
  merged.roles = MergeRoles(a, rename_a, b, rename_b);
  merged.arch = a.arch == b.arch ? a.arch : std::string();
  std::set_union(a.processes.begin(), a.processes.end(), b.processes.begin(), b.processes.end(),
                 std::back_inserter(merged.processes));
  merged.traces = a.traces + b.traces;
  merged.syscalls = a.syscalls + b.syscalls;
  merged.owned = a.owned + b.owned;
  merged.has_durations = a.has_durations && b.has_durations;
  for (const auto& [symbol, total] : totals) merged.totals.push_back(total);
  for (auto& [name, sum] : sums) {
    ProfiledFunction function;
    function.name = name;
    function.innermost = Flat(sum.innermost);
    function.inclusive = Flat(sum.inclusive);
    function.episodes = StillClosed(sum.episodes);
    function.episodes_found = sum.episodes_found;
    function.bound = sum.bound;
    function.capped = sum.capped;
    KeepMostFrequent(function);
    merged.functions.push_back(std::move(function));
  }
  return merged;
}

}  // namespace culprit::episode
