// SPDX-License-Identifier: Apache-2.0
#include "guard/merge_profiles.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"

namespace culprit::guard {
namespace {

Status CheckSameBinaries(const Profile& a, const Profile& b) {
  std::map<std::string_view, const ProfileModule*> by_name;
  for (const ProfileModule& module : a.modules) by_name[BaseName(module.path)] = &module;
  for (const ProfileModule& module : b.modules) {
    const auto found = by_name.find(BaseName(module.path));
    if (found == by_name.end() || found->second->build_id == module.build_id) continue;
    return Error{"profiles of different binaries: build-id " + found->second->build_id + " and " +
                     module.build_id,
                 module.path,
                 {},
                 "merge only trainings of the same build; train again with the new one"};
  }
  std::error_code code;
  if (BaseName(a.program) != BaseName(b.program) &&
      std::filesystem::weakly_canonical(a.program, code) !=
          std::filesystem::weakly_canonical(b.program, code)) {
    return Error{"profiles of different programs: " + a.program + " and " + b.program,
                 {},
                 {},
                 "merge only trainings of the same program"};
  }
  return {};
}

// Adds the tables of another profile to `into`; numbers of the other's rows in it.
class TableUnion {
 public:
  TableUnion(Profile& into, const Profile& other) : into_(into), other_(other) {
    AddModules();
    AddFunctions();
    AddPlaces();
    AddLoops();
    AddShapes();
  }
  const std::vector<uint32_t>& shapes() const { return shapes_; }

 private:
  void AddModules() {
    for (const ProfileModule& module : other_.modules) {
      const auto same = [&](const ProfileModule& known) {
        return known.build_id == module.build_id && BaseName(known.path) == BaseName(module.path);
      };
      const auto found = std::find_if(into_.modules.begin(), into_.modules.end(), same);
      modules_.push_back(static_cast<uint32_t>(found - into_.modules.begin()));
      if (found == into_.modules.end()) into_.modules.push_back(module);
    }
  }

  void AddFunctions() {
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> known;
    for (uint32_t i = 0; i < into_.functions.size(); ++i) {
      known[{into_.functions[i].module, into_.functions[i].offset}] = i;
    }
    for (ProfileFunction function : other_.functions) {
      function.module = modules_[function.module];
      const auto [found, made] = known.try_emplace({function.module, function.offset},
                                                   static_cast<uint32_t>(into_.functions.size()));
      functions_.push_back(found->second);
      if (made) {
        into_.functions.push_back(function);
      } else if (into_.functions[found->second].name.empty()) {
        into_.functions[found->second].name = function.name;
      }
    }
  }

  void AddPlaces() {
    std::map<CallPath, uint32_t> known;
    for (uint32_t i = 0; i < into_.paths.size(); ++i) known[into_.paths[i]] = i;
    std::vector<uint32_t> paths;
    for (CallPath path : other_.paths) {
      if (path.parent != kNoIndex) path.parent = paths[path.parent];
      path.function = functions_[path.function];
      const auto [found, made] = known.try_emplace(path, static_cast<uint32_t>(into_.paths.size()));
      if (made) into_.paths.push_back(path);
      paths.push_back(found->second);
    }
    AddCallers();
    std::map<Place, uint32_t> known_places;
    for (uint32_t i = 0; i < into_.places.size(); ++i) known_places[into_.places[i]] = i;
    for (Place place : other_.places) {
      place.path = paths[place.path];
      if (place.caller != kNoIndex) place.caller = callers_[place.caller];
      const auto [found, made] =
          known_places.try_emplace(place, static_cast<uint32_t>(into_.places.size()));
      if (made) into_.places.push_back(place);
      places_.push_back(found->second);
    }
  }

  void AddCallers() {
    std::map<ProfileCaller, uint32_t> known;
    for (uint32_t i = 0; i < into_.callers.size(); ++i) known[into_.callers[i]] = i;
    for (ProfileCaller caller : other_.callers) {
      caller.module = modules_[caller.module];
      const auto [found, made] =
          known.try_emplace(caller, static_cast<uint32_t>(into_.callers.size()));
      if (made) into_.callers.push_back(caller);
      callers_.push_back(found->second);
    }
  }

  std::vector<Context> Mapped(const std::vector<Context>& contexts) const {
    std::vector<Context> mapped;
    for (const Context& context : contexts) {
      mapped.push_back({functions_[context.function], context.depth});
    }
    return mapped;
  }
  void AddContexts(const std::vector<Context>& from, std::vector<Context>& to) const {
    for (const Context& context : Mapped(from)) to.push_back(context);
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
  }

  // Loops are the same if they share a wait call and are not held by different
  // functions, or else if their holder is the same.
  uint32_t FindLoop(const ProfileLoop& loop) const {
    for (uint32_t i = 0; i < into_.loops.size(); ++i) {
      const ProfileLoop& known = into_.loops[i];
      const bool differ =
          loop.holder != kNoIndex && known.holder != kNoIndex && loop.holder != known.holder;
      if (!differ && ShareSite(loop, known)) return i;
    }
    for (uint32_t i = 0; i < into_.loops.size(); ++i) {
      const ProfileLoop& known = into_.loops[i];
      if (loop.holder != kNoIndex && known.holder == loop.holder &&
          known.hand_over == loop.hand_over) {
        return i;
      }
    }
    return static_cast<uint32_t>(into_.loops.size());
  }

  static bool ShareSite(const ProfileLoop& x, const ProfileLoop& y) {
    const auto place = [](const ProfileSite& site) {
      return std::tuple(site.module, site.return_offset, site.call);
    };
    return std::any_of(x.sites.begin(), x.sites.end(), [&](const ProfileSite& site) {
      return std::any_of(y.sites.begin(), y.sites.end(),
                         [&](const ProfileSite& other) { return place(site) == place(other); });
    });
  }

  void AddLoops() {
    for (ProfileLoop loop : other_.loops) {
      for (ProfileSite& site : loop.sites) site.module = modules_[site.module];
      if (loop.holder != kNoIndex) loop.holder = functions_[loop.holder];
      const uint32_t number = FindLoop(loop);
      loops_.push_back(number);
      if (number == into_.loops.size()) {
        ProfileLoop& made = into_.loops.emplace_back();
        made.holder = loop.holder;
        made.sites = loop.sites;
        made.parks = loop.parks;
      }
      ProfileLoop& known = into_.loops[number];
      for (const ProfileSite& site : loop.sites) AddSite(site, known);
      known.external |= loop.external;
      known.hand_over |= loop.hand_over;
      known.parks &= loop.parks;
      known.holder_unwound &= loop.holder_unwound;
      known.iterations += loop.iterations;
      known.ready_events += loop.ready_events;
      known.train_ns += loop.train_ns;
      const auto cuts = CutsOf(known);
      for (size_t i = 0; i < cuts.size(); ++i) AddContexts(*CutsOf(loop)[i], *cuts[i]);
    }
    for (size_t i = 0; i < other_.loops.size(); ++i) {
      std::vector<uint32_t>& wakers = into_.loops[loops_[i]].woken_by;
      for (const uint32_t waker : other_.loops[i].woken_by) wakers.push_back(loops_[waker]);
      std::sort(wakers.begin(), wakers.end());
      wakers.erase(std::unique(wakers.begin(), wakers.end()), wakers.end());
    }
  }

  // One base for a wait call: the first run's.
  static void AddSite(const ProfileSite& site, ProfileLoop& loop) {
    for (const ProfileSite& known : loop.sites) {
      if (std::tie(known.module, known.return_offset, known.call) ==
          std::tie(site.module, site.return_offset, site.call)) {
        return;
      }
    }
    loop.sites.push_back(site);
  }

  void AddShapes() {
    using Key = std::tuple<uint32_t, wire::UnitKind, std::vector<uint32_t>>;
    std::map<Key, uint32_t> known;
    for (uint32_t i = 0; i < into_.shapes.size(); ++i) {
      const UnitShape& shape = into_.shapes[i];
      known[{shape.loop, shape.kind, shape.places}] = i;
    }
    for (const UnitShape& shape : other_.shapes) {
      std::map<uint32_t, uint64_t> hits;
      for (size_t i = 0; i < shape.places.size(); ++i) {
        hits[places_[shape.places[i]]] += shape.hits[i];
      }
      UnitShape mapped{.kind = shape.kind, .loop = loops_[shape.loop]};
      for (const auto& [place, times] : hits) {
        mapped.places.push_back(place);
        mapped.hits.push_back(times);
      }
      const auto [found, made] = known.try_emplace({mapped.loop, mapped.kind, mapped.places},
                                                   static_cast<uint32_t>(into_.shapes.size()));
      shapes_.push_back(found->second);
      if (made) {
        std::copy(std::begin(shape.units), std::end(shape.units), std::begin(mapped.units));
        into_.shapes.push_back(std::move(mapped));
        continue;
      }
      UnitShape& united = into_.shapes[found->second];
      for (int half = 0; half < 2; ++half) united.units[half] += shape.units[half];
      for (size_t i = 0; i < united.hits.size(); ++i) united.hits[i] += mapped.hits[i];
    }
  }

  Profile& into_;
  const Profile& other_;
  std::vector<uint32_t> modules_;
  std::vector<uint32_t> functions_;
  std::vector<uint32_t> callers_;
  std::vector<uint32_t> places_;
  std::vector<uint32_t> loops_;
  std::vector<uint32_t> shapes_;
};

// To the new type that holds most units of the old one, as its shapes say.
// `shapes`: where they are in `into`.
void MoveStatistics(const Profile& from, const std::vector<uint32_t>& shapes, Profile& into) {
  std::vector<std::map<uint32_t, uint64_t>> votes(from.types.size());
  for (size_t i = 0; i < from.shapes.size(); ++i) {
    votes[from.shapes[i].type][into.shapes[shapes[i]].type] += from.shapes[i].total_units();
  }
  for (size_t i = 0; i < votes.size(); ++i) {
    uint32_t best = kNoIndex;
    for (const auto& [type, units] : votes[i]) {
      if (best == kNoIndex || units > votes[i][best]) best = type;
    }
    if (best != kNoIndex) into.types[best].stats.Merge(from.types[i].stats);
  }
  into.unknown.Merge(from.unknown);
  into.iteration.Merge(from.iteration);
}

void AddFacts(const TrainingFacts& from, TrainingFacts& into) {
  into.runs += from.runs;
  into.threads += from.threads;
  into.entries += from.entries;
  into.units += from.units;
  into.unit_train_ns += from.unit_train_ns;
  into.unit_entries += from.unit_entries;
  into.dropped_shapes += from.dropped_shapes;
  into.dropped_units += from.dropped_units;
  into.measured_units += from.measured_units;
  into.measured_cpu_ns += from.measured_cpu_ns;
}

}  // namespace

Result<Profile> MergeProfiles(const Profile& a, const Profile& b, const LearnOptions& options,
                              const ThresholdOptions& thresholds) {
  CULPRIT_TRY(CheckSameBinaries(a, b));
  Profile merged;
  merged.program = a.program;
  std::vector<uint32_t> of_a = TableUnion(merged, a).shapes();
  std::vector<uint32_t> of_b = TableUnion(merged, b).shapes();
  AddFacts(a.training, merged.training);
  AddFacts(b.training, merged.training);
  // Compacting brings shapes into another order: their types, not yet known, tell.
  for (uint32_t i = 0; i < merged.shapes.size(); ++i) merged.shapes[i].type = i;
  Compact(merged);
  std::vector<uint32_t> now(merged.shapes.size());
  for (uint32_t i = 0; i < merged.shapes.size(); ++i) now[merged.shapes[i].type] = i;
  for (auto* shapes : {&of_a, &of_b}) {
    for (uint32_t& shape : *shapes) shape = now[shape];
  }
  ChooseTypesAndGuards(merged, options);
  MoveStatistics(a, of_a, merged);
  MoveStatistics(b, of_b, merged);
  SetThresholds(merged, thresholds);
  return merged;
}

}  // namespace culprit::guard
