// SPDX-License-Identifier: Apache-2.0
#include "episode/inference.h"

#include <algorithm>
#include <map>
#include <set>

#include "episode/activity.h"

namespace culprit::episode {
namespace {

constexpr uint64_t kFewCalls = 20;
constexpr double kOtherMix = 0.35;
constexpr double kMilliCalls = 1000;

InferredFunction AsFunction(const Profile& profile, const OwnedRow& row, double unit) {
  InferredFunction function;
  function.function = row.in_profile() ? profile.functions[row.functions.front()].name.Label()
                                       : std::string(kNotInProfile);
  for (size_t i = 1; i < row.functions.size(); ++i) {
    function.co_owners.push_back(profile.functions[row.functions[i]].name.Label());
  }
  function.score = static_cast<double>(row.score) / unit;
  function.raw_score = static_cast<double>(row.owned) / unit;
  function.own = static_cast<double>(row.own) / unit;
  function.symbols = row.symbols;
  return function;
}

std::vector<InferredFunction> AsFunctions(const Profile& profile, const OwnedExcess& owned,
                                          double unit) {
  std::vector<InferredFunction> functions;
  for (const OwnedRow& row : owned.rows) functions.push_back(AsFunction(profile, row, unit));
  return functions;
}

void SetOrder(std::vector<InferredFunction>& functions) {
  std::vector<InferredFunction*> active;
  for (InferredFunction& function : functions) {
    if (function.first_ns) active.push_back(&function);
  }
  std::stable_sort(active.begin(), active.end(), [](const auto* a, const auto* b) {
    if (*a->first_ns != *b->first_ns) return *a->first_ns < *b->first_ns;
    return *a->last_ns > *b->last_ns;
  });
  for (size_t i = 0; i < active.size(); ++i) active[i]->order = static_cast<uint32_t>(i + 1);
}

// The loads of one half of each normal trace, or of the profile.
std::vector<Load> LoadsOf(const Profile& profile, std::span<const SyscallLog> normals,
                          Half half = Half::kBoth) {
  if (normals.empty()) return {LoadOf(profile, half)};
  std::vector<Load> loads;
  for (const SyscallLog& normal : normals) loads.push_back(LoadOf(normal, half));
  return loads;
}

// One half of each normal side against its other half and the other sides.
uint64_t NullRows(const Profile& profile, std::span<const SyscallLog> normals,
                  const std::vector<Load>& usual, const InferOptions& options) {
  const std::vector<Load> first = LoadsOf(profile, normals, Half::kFirst);
  const std::vector<Load> second = LoadsOf(profile, normals, Half::kSecond);
  const std::vector<bool> of_many = MadeByMany(profile);
  size_t most = 0;
  const auto count = [&](const Load& half, std::span<const Load> sides) {
    const Comparison comparison = Compare(half, sides, profile.symbols, options.compare, of_many);
    most = std::max(most, ShareOut(profile, comparison.calls, options.ownership).rows.size());
  };
  std::vector<Load> sides = usual;
  for (size_t i = 0; i < usual.size(); ++i) {
    sides[i] = second[i];
    count(first[i], sides);
    sides[i] = first[i];
    count(second[i], sides);
    sides[i] = usual[i];
  }
  return most;
}

// How much of each symbol was made by threads that the profile knows by their names,
// but never saw make such a call: not by the functions it knows of.
class StrangeCalls {
 public:
  StrangeCalls(const Profile& profile, const SyscallLog& log)
      : calls_(profile.symbols.size()), dur_ns_(calls_.size()) {
    std::map<std::string_view, std::vector<bool>> roles;
    for (const RoleCalls& role : profile.roles) {
      uint64_t calls = 0;
      std::vector<bool> makes(calls_.size());
      for (const SymbolCount& row : role.calls) {
        calls += row.count;
        makes[row.symbol] = true;
      }
      if (calls >= kWellKnown) roles[role.name] = std::move(makes);
    }
    for (const ThreadLog& thread : log.threads) {
      const auto role = roles.find(thread.role);
      if (role == roles.end()) continue;
      for (const Syscall& call : thread.calls) {
        if (call.symbol >= calls_.size() || role->second[call.symbol]) continue;
        calls_[call.symbol] += static_cast<int64_t>(kMilliCalls);
        dur_ns_[call.symbol] += call.dur_ns;
      }
    }
  }

  void MarkCalls(std::vector<SymbolExcess>& rows) const { Mark(calls_, rows); }
  void MarkTime(std::vector<SymbolExcess>& rows) const { Mark(dur_ns_, rows); }

 private:
  static constexpr uint64_t kWellKnown = 100;  // calls of a thread's name

  static void Mark(const std::vector<int64_t>& amounts, std::vector<SymbolExcess>& rows) {
    for (SymbolExcess& row : rows) row.strange = std::min(row.excess, amounts[row.symbol]);
  }

  std::vector<int64_t> calls_;  // in thousandths, by symbol
  std::vector<int64_t> dur_ns_;
};

class Inferrer {
 public:
  Inferrer(const Profile& profile, const SyscallLog& log, std::span<const SyscallLog> normals,
           const InferOptions& options)
      : profile_(profile), log_(log), normals_(normals), options_(options) {}

  Inference Run(const Profile* stack_profile) {
    result_.method = options_.method;
    result_.profiled = profile_.functions.size();
    result_.against_trace = !normals_.empty();
    result_.load = LoadOf(log_);
    const std::vector<Load> usual = LoadsOf(profile_, normals_);
    result_.comparison =
        Compare(result_.load, usual, profile_.symbols, options_.compare, MadeByMany(profile_));
    result_.units = SplitUnits(log_, options_.units);
    result_.anomalies = FindAnomalies(log_, result_.units, options_.jobs);
    if (options_.method == Method::kExcess) {
      ByExcess(usual);
    } else {
      ByEpisodes();
    }
    SetOrder(result_.functions);
    if (stack_profile != nullptr && stack_profile->owned > 0) {
      // Stacks know their own.
      for (SymbolExcess& row : result_.comparison.calls) row.strange = 0;
      result_.stacks = AsFunctions(
          *stack_profile, ShareOut(*stack_profile, result_.comparison.calls, options_.ownership),
          kMilliCalls);
    }
    Notes(usual);
    return std::move(result_);
  }

 private:
  void ByExcess(const std::vector<Load>& usual) {
    const StrangeCalls strange(profile_, log_);
    strange.MarkCalls(result_.comparison.calls);
    strange.MarkTime(result_.comparison.time);
    const OwnedExcess owned = ShareOut(profile_, result_.comparison.calls, options_.ownership);
    result_.functions = AsFunctions(profile_, owned, kMilliCalls);
    result_.left_out = owned.left_out;
    result_.named = owned.functions;
    Activity activity(profile_, log_, result_.units, result_.anomalies, options_.episodes);
    for (size_t i = 0; i < owned.rows.size(); ++i) {
      activity.Describe(owned.rows[i], result_.functions[i]);
    }
    if (HaveDurations(usual)) {
      result_.time =
          AsFunctions(profile_, ShareOut(profile_, result_.comparison.time, options_.ownership), 1);
    }
    const bool halves = std::all_of(usual.begin(), usual.end(),
                                    [](const Load& load) { return load.calls >= 2 * kFewCalls; });
    if (halves) result_.null_rows = NullRows(profile_, normals_, usual, options_);
  }

  bool HaveDurations(const std::vector<Load>& usual) const {
    return result_.load.has_durations &&
           std::all_of(usual.begin(), usual.end(),
                       [](const Load& load) { return load.has_durations; });
  }

  void ByEpisodes() {
    EpisodeRanking ranking = RankByEpisodes(profile_, log_, result_.units, result_.anomalies,
                                            options_.episodes, options_.jobs);
    result_.sequences_capped = ranking.capped;
    result_.named = ranking.functions.size();
    for (MatchedFunction& row : ranking.functions) {
      InferredFunction function;
      function.function = profile_.functions[row.function].name.Label();
      function.score = row.score;
      for (const EpisodeMatch& match : row.matched) {
        function.raw_score += static_cast<double>(match.count);
      }
      function.matched = row.matched.size();
      function.episodes = std::move(row.matched);
      function.units = {row.unit};
      function.unit_count = row.units;
      const Unit& unit = result_.units.units[row.unit];
      SetActiveTimes(log_, unit, function);
      result_.functions.push_back(std::move(function));
    }
  }

  void Notes(const std::vector<Load>& usual) {
    auto& notes = result_.notes;
    auto& warnings = result_.warnings;
    if (result_.load.calls < kFewCalls) {
      warnings.push_back("the trace has only " + std::to_string(result_.load.calls) +
                         " system calls of these processes: too few to compare");
    }
    for (const Load& load : usual) {
      if (load.calls >= kFewCalls) continue;
      warnings.push_back("the normal side has only " + std::to_string(load.calls) +
                         " system calls: too few to compare with");
    }
    if (profile_.functions.empty()) {
      warnings.emplace_back("the profile has no functions: it can name nobody");
    }
    if (!log_.named) {
      warnings.emplace_back("the trace does not say its architecture: system calls have no names");
    }
    if (!profile_.arch.empty() && !log_.arch.empty() && profile_.arch != log_.arch) {
      warnings.push_back("the profile is of " + profile_.arch + ", the trace of " + log_.arch +
                         ": calls of the same meaning have different names there");
    }
    if (options_.method == Method::kExcess && result_.comparison.mix_distance > kOtherMix) {
      warnings.emplace_back(
          "the mix of work differs from the normal side: functions of other work may be named");
    }
    if (!HaveDurations(usual)) {
      notes.emplace_back("no list by time: one of the sides has no durations of calls");
    }
    if (!log_.has_switches) {
      notes.emplace_back(
          "no context switches in the trace: long preemption may cut units where work did not");
    }
    if (options_.units == UnitSource::kInstances && result_.units.instances == 0) {
      warnings.emplace_back("the trace has no instances of these threads: units are cut at gaps");
    }
    if (!result_.comparison.slight.empty()) {
      notes.push_back("more than expected, but too few and too short to make it slow: " +
                      NamesOf(result_.comparison.slight));
    }
    if (!result_.comparison.waits.empty()) {
      notes.push_back("threads wait for each other more than expected (" +
                      NamesOf(result_.comparison.waits) +
                      "): for whom does not show in system calls, culprit mine follows waits");
    }
    if (result_.functions.empty()) {
      notes.emplace_back(
          "nobody is blamed: no excess of system calls explains it. Causes that use the CPU alone, "
          "that ran before the recording, or that hold a lock do not show in system calls: culprit "
          "mine and culprit show follow CPU and waits");
    }
  }

  std::string NamesOf(const std::vector<SymbolExcess>& rows) const {
    std::string names;
    for (const SymbolExcess& row : rows) {
      if (!names.empty()) names += ", ";
      names += profile_.symbols.Name(row.symbol);
    }
    return names;
  }

  const Profile& profile_;
  const SyscallLog& log_;
  std::span<const SyscallLog> normals_;
  const InferOptions& options_;
  Inference result_;
};

}  // namespace

Inference Infer(const Profile& profile, const SyscallLog& log, std::span<const SyscallLog> normals,
                const Profile* stack_profile, const InferOptions& options) {
  return Inferrer(profile, log, normals, options).Run(stack_profile);
}

std::vector<std::string> OtherBuilds(const Profile& profile, const trace::Dictionary& dictionary) {
  std::map<std::string, std::set<std::string>, std::less<>> profiled;
  for (const ProfiledFunction& function : profile.functions) {
    if (!function.name.build_id.empty()) {
      profiled[function.name.module].insert(function.name.build_id);
    }
  }
  std::set<std::string> others;
  for (const trace::Module& module : dictionary.modules()) {
    const std::string build_id(dictionary.Text(module.build_id));
    const auto found = profiled.find(dictionary.Text(module.name));
    if (build_id.empty() || found == profiled.end()) continue;
    if (!found->second.contains(build_id)) others.insert(found->first);
  }
  return {others.begin(), others.end()};
}

}  // namespace culprit::episode
