// SPDX-License-Identifier: Apache-2.0
#include "guard/unseen_load.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "guard/call_sites.h"
#include "guard/context_bits.h"
#include "guard/event_loops.h"
#include "guard/iteration_walk.h"
#include "guard/session_code.h"
#include "guard/shape_table.h"
#include "guard/training_log_reader.h"
#include "guard/unit_cutter.h"
#include "guard/unit_types.h"

namespace culprit::guard {
namespace {

using PathNumbers = std::vector<uint32_t>;  // ascending

// The profile's code by the numbers of the session's, and the other way round.
class CodeMatch {
 public:
  CodeMatch(const Profile& profile, const SessionCode& code) : profile_(profile), code_(code) {
    for (const ProfileModule& module : profile.modules) modules_.push_back(ModuleLike(module));
    of_session_.resize(code.functions().size(), kNoIndex);
    for (uint32_t i = 0; i < profile.functions.size(); ++i) {
      const uint32_t here = SessionFunction(i);
      if (here != kNoIndex) of_session_[here] = i;
    }
    for (uint32_t i = 0; i < profile.callers.size(); ++i) {
      const ProfileCaller& caller = profile.callers[i];
      callers_[{modules_[caller.module], caller.return_offset}] = i;
    }
  }
  uint32_t SessionModule(uint32_t module) const { return modules_[module]; }
  uint32_t SessionFunction(uint32_t function) const {
    const ProfileFunction& row = profile_.functions[function];
    if (modules_[row.module] == kNoIndex) return kNoIndex;
    const uint32_t found = code_.FunctionAt({modules_[row.module], row.offset});
    return found != kNoIndex && code_.functions()[found].offset == row.offset ? found : kNoIndex;
  }
  std::vector<Context> SessionContexts(const std::vector<Context>& contexts) const {
    std::vector<Context> result;
    for (const Context& context : contexts) {
      const uint32_t function = SessionFunction(context.function);
      if (function != kNoIndex) result.push_back({function, context.depth});
    }
    std::sort(result.begin(), result.end());
    return result;
  }
  uint32_t OwnFunction(uint32_t function) const { return of_session_[function]; }
  uint32_t OwnCaller(const ProfileCaller& caller) const {
    const auto found = callers_.find({caller.module, caller.return_offset});
    return found == callers_.end() ? kNoIndex : found->second;
  }

 private:
  uint32_t ModuleLike(const ProfileModule& wanted) const {
    for (uint32_t i = 0; i < code_.modules().size(); ++i) {
      const ProfileModule& module = code_.modules()[i];
      if (module.build_id == wanted.build_id && BaseName(module.path) == BaseName(wanted.path)) {
        return i;
      }
    }
    return kNoIndex;
  }

  const Profile& profile_;
  const SessionCode& code_;
  std::vector<uint32_t> modules_;
  std::vector<uint32_t> of_session_;
  std::map<CodeAddress, uint32_t> callers_;
};

std::vector<EventLoop> LoopsOf(const Profile& profile, const CodeMatch& match) {
  std::vector<EventLoop> loops;
  for (const ProfileLoop& row : profile.loops) {
    EventLoop& loop = loops.emplace_back();
    loop.hand_over = row.hand_over;
    if (row.holder != kNoIndex) loop.holder = match.SessionFunction(row.holder);
    for (const ProfileSite& site : row.sites) {
      const CodeAddress place = {match.SessionModule(site.module), site.return_offset};
      if (place.module != kNoIndex) loop.sites[{place, site.call}] = site.base_offset;
    }
    loop.turns = match.SessionContexts(row.turns);
  }
  return loops;
}

std::vector<SubUnitLevels> LevelsOf(const Profile& profile, const CodeMatch& match) {
  std::vector<SubUnitLevels> levels;
  for (const ProfileLoop& loop : profile.loops) {
    levels.push_back({match.SessionContexts(loop.handlers), match.SessionContexts(loop.commands),
                      match.SessionContexts(loop.tails)});
  }
  return levels;
}

// Numbers of `seen`'s paths in the profile; new ones get numbers behind its own.
std::vector<uint32_t> OwnPaths(const Profile& profile, const Profile& seen,
                               const CodeMatch& match) {
  std::map<CallPath, uint32_t> known;
  for (uint32_t i = 0; i < profile.paths.size(); ++i) known[profile.paths[i]] = i;
  std::vector<uint32_t> numbers;
  auto next = static_cast<uint32_t>(profile.paths.size());
  for (const CallPath& path : seen.paths) {
    const uint32_t function = match.OwnFunction(path.function);
    const uint32_t parent = path.parent == kNoIndex ? kNoIndex : numbers[path.parent];
    const auto found = function == kNoIndex ? known.end() : known.find({parent, function});
    numbers.push_back(found == known.end() ? next++ : found->second);
  }
  return numbers;
}

// The type that a path set is most like. Asked of all sets of a loop and kind at once: O(for
// each of its paths, how many sets have it, or have it not, whichever are fewer).
class TypeByPaths {
 public:
  explicit TypeByPaths(const Profile& profile) {
    std::set<std::tuple<GroupKey, uint32_t, PathNumbers>> known;
    for (const UnitShape& shape : profile.shapes) {
      const GroupKey key = {shape.loop, shape.kind};
      PathNumbers paths = PathSet(profile, shape);
      exact_[{key, paths}] = shape.type;
      if (!known.emplace(key, shape.type, paths).second) continue;
      Group& group = groups_[key];
      const auto number = static_cast<uint32_t>(group.sets.size());
      for (const uint32_t path : paths) group.with[path].push_back(number);
      group.sets.push_back({shape.type, paths.size()});
    }
    for (auto& [key, group] : groups_) TurnCommonPaths(group);
  }
  struct Found {
    uint32_t type = kNoIndex;
    uint64_t similarity_ppm = 0;
    bool exact = false;
  };
  Found Find(const UnitShape& shape, const PathNumbers& paths) const {
    const GroupKey key = {shape.loop, shape.kind};
    const auto exact = exact_.find({key, paths});
    if (exact != exact_.end()) return {exact->second, 1'000'000, true};
    const auto group = groups_.find(key);
    if (group == groups_.end()) return {};
    return NearestOf(group->second, paths);
  }

 private:
  using GroupKey = std::pair<uint32_t, wire::UnitKind>;
  struct KnownSet {
    uint32_t type = 0;
    uint64_t paths = 0;
  };
  struct Group {
    std::vector<KnownSet> sets;
    std::unordered_map<uint32_t, std::vector<uint32_t>> with;     // by path: numbers of sets
    std::unordered_map<uint32_t, std::vector<uint32_t>> without;  // of paths that most sets have
  };

  static void TurnCommonPaths(Group& group) {
    for (auto row = group.with.begin(); row != group.with.end();) {
      const std::vector<uint32_t>& with = row->second;  // ascending
      if (with.size() * 2 <= group.sets.size()) {
        ++row;
        continue;
      }
      std::vector<uint32_t>& without = group.without[row->first];
      for (uint32_t number = 0, next = 0; number < group.sets.size(); ++number) {
        const bool has = next < with.size() && with[next] == number;
        if (has) ++next;
        if (!has) without.push_back(number);
      }
      row = group.with.erase(row);
    }
  }

  static Found NearestOf(const Group& group, const PathNumbers& paths) {
    std::vector<uint32_t> shared(group.sets.size());
    uint32_t common = 0;
    for (const uint32_t path : paths) {
      if (const auto with = group.with.find(path); with != group.with.end()) {
        for (const uint32_t number : with->second) ++shared[number];
      } else if (const auto without = group.without.find(path); without != group.without.end()) {
        ++common;
        for (const uint32_t number : without->second) --shared[number];
      }
    }
    for (uint32_t& count : shared) count += common;
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> of_types;  // sum of similarities, sets
    for (size_t i = 0; i < shared.size(); ++i) {
      const uint64_t united = group.sets[i].paths + paths.size() - shared[i];
      auto& [sum, sets] = of_types[group.sets[i].type];
      sum += united == 0 ? 1'000'000 : uint64_t{shared[i]} * 1'000'000 / united;
      ++sets;
    }
    Found best;
    for (const auto& [type, row] : of_types) {
      const uint64_t average = row.first / row.second;
      if (best.type == kNoIndex || average > best.similarity_ppm) best = {type, average, false};
    }
    return best;
  }

  std::map<std::pair<GroupKey, PathNumbers>, uint32_t> exact_;
  std::map<GroupKey, Group> groups_;
};

Status CutSession(const std::string& folder, const Profile& profile,
                  const UnseenLoadOptions& options, SessionCode& code, Diagnostics& diagnostics,
                  Profile& seen) {
  CULPRIT_ASSIGN(std::vector<LogFile> logs, ListLogs(folder, diagnostics));
  logs = InOrderOfBirth(std::move(logs));
  std::set<uint32_t> added;
  for (const LogFile& log : logs) {
    if (added.insert(log.pid).second) code.AddProcess(folder, log.pid, diagnostics);
  }
  const CodeMatch match(profile, code);
  LoopScan scan(code);
  Diagnostics again;  // damage is counted by the second reading
  for (const LogFile& log : logs) CULPRIT_TRY(scan.Read(log, again));
  const LoopSites sites(LoopsOf(profile, match), scan.stacks());
  const std::vector<SubUnitLevels> levels = LevelsOf(profile, match);
  ShapeTable table(options.max_shapes, options.memory_bytes);
  CallSites call_sites(code);
  UnitCutter cutter(levels, call_sites, table);
  for (const LogFile& log : logs) {
    cutter.BeginThread(log.pid);
    CULPRIT_TRY(IterationWalk(code, sites, log, cutter).Run(diagnostics));
  }
  table.MoveTo(seen);
  seen.callers = call_sites.callers();
  return {};
}

}  // namespace

Result<UnseenLoad> JudgeUnseenLoad(const Profile& profile, const std::vector<Guard>& guards,
                                   const std::string& session_folder,
                                   const UnseenLoadOptions& options, Diagnostics& diagnostics) {
  SessionCode code;
  Profile seen;
  CULPRIT_TRY(CutSession(session_folder, profile, options, code, diagnostics, seen));
  const CodeMatch match(profile, code);
  const std::vector<uint32_t> own_path = OwnPaths(profile, seen, match);
  const ContextBits bits(profile, guards);
  const std::vector<wire::PlanType> types = PlanTypesOf(profile, bits.OfTypes());
  const TypeByPaths truth(profile);
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> confusions;
  UnseenLoad result;
  for (const UnitShape& shape : seen.shapes) {
    const uint64_t units = shape.total_units();
    result.units += units;
    PathNumbers paths;
    ContextSet entered = {};
    for (const uint32_t number : shape.places) {
      const Place& place = seen.places[number];
      paths.push_back(own_path[place.path]);
      const uint32_t function = match.OwnFunction(seen.paths[place.path].function);
      if (function == kNoIndex) continue;
      const uint32_t caller =
          place.caller == kNoIndex ? kNoIndex : match.OwnCaller(seen.callers[place.caller]);
      const uint32_t bit = bits.BitAt(function, place.depth, caller);
      if (bit != kNoIndex) entered[bit / 64] |= uint64_t{1} << (bit % 64);
    }
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    const TypeByPaths::Found own = truth.Find(shape, paths);
    if (own.type == kNoIndex || own.similarity_ppm < options.least_similarity_ppm) {
      result.unlike += units;
      continue;
    }
    if (!own.exact) result.changed += units;
    const runtime::TypeVerdict nearest =
        runtime::FindNearestType(types, IdentityOf(shape, entered));
    if (nearest.type == own.type) {
      result.right += units;
    } else {
      confusions[{own.type, nearest.type}] += units;
    }
  }
  for (const auto& [pair, units] : confusions) {
    result.confusions.push_back({pair.first, pair.second, units});
  }
  std::stable_sort(result.confusions.begin(), result.confusions.end(),
                   [](const auto& x, const auto& y) { return x.units > y.units; });
  return result;
}

}  // namespace culprit::guard
