// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "guard/profile.h"
#include "guard/shape_table.h"

namespace culprit::guard {
namespace {

// Numbers of what is used, in a given order; kNoIndex for the rest.
std::vector<uint32_t> Numbers(size_t size, const std::vector<uint32_t>& order) {
  std::vector<uint32_t> numbers(size, kNoIndex);
  for (uint32_t i = 0; i < order.size(); ++i) numbers[order[i]] = i;
  return numbers;
}

template <class Row>
void Keep(std::vector<Row>& rows, const std::vector<uint32_t>& order) {
  std::vector<Row> kept;
  kept.reserve(order.size());
  for (const uint32_t row : order) kept.push_back(std::move(rows[row]));
  rows = std::move(kept);
}

void CompactPlaces(Profile& profile) {
  std::vector<bool> place_used(profile.places.size());
  std::vector<bool> path_used(profile.paths.size());
  for (const UnitShape& shape : profile.shapes) {
    for (const uint32_t place : shape.places) place_used[place] = true;
  }
  for (size_t i = 0; i < place_used.size(); ++i) {
    if (place_used[i]) path_used[profile.places[i].path] = true;
  }
  for (size_t i = path_used.size(); i > 0; --i) {
    const uint32_t parent = profile.paths[i - 1].parent;
    if (path_used[i - 1] && parent != kNoIndex) path_used[parent] = true;
  }
  // Parents come first; among children of one parent the function decides.
  std::vector<uint32_t> level(profile.paths.size());
  std::vector<std::vector<uint32_t>> by_level;
  for (uint32_t i = 0; i < profile.paths.size(); ++i) {
    const uint32_t parent = profile.paths[i].parent;
    level[i] = parent == kNoIndex ? 0 : level[parent] + 1;
    if (!path_used[i]) continue;
    if (level[i] >= by_level.size()) by_level.resize(level[i] + 1);
    by_level[level[i]].push_back(i);
  }
  std::vector<uint32_t> order;
  std::vector<uint32_t> number(profile.paths.size(), kNoIndex);
  for (auto& paths : by_level) {
    const auto key = [&](uint32_t path) {
      const CallPath& row = profile.paths[path];
      return std::pair(row.parent == kNoIndex ? 0 : number[row.parent], row.function);
    };
    std::sort(paths.begin(), paths.end(), [&](uint32_t x, uint32_t y) { return key(x) < key(y); });
    for (const uint32_t path : paths) {
      number[path] = static_cast<uint32_t>(order.size());
      order.push_back(path);
    }
  }
  Keep(profile.paths, order);
  for (CallPath& path : profile.paths) {
    if (path.parent != kNoIndex) path.parent = number[path.parent];
  }
  std::vector<uint32_t> place_order;
  for (uint32_t i = 0; i < profile.places.size(); ++i) {
    if (!place_used[i]) continue;
    profile.places[i].path = number[profile.places[i].path];
    place_order.push_back(i);
  }
  std::sort(place_order.begin(), place_order.end(),
            [&](uint32_t x, uint32_t y) { return profile.places[x] < profile.places[y]; });
  const std::vector<uint32_t> place_number = Numbers(profile.places.size(), place_order);
  Keep(profile.places, place_order);
  for (UnitShape& shape : profile.shapes) {
    std::vector<std::pair<uint32_t, uint64_t>> rows;
    for (size_t i = 0; i < shape.places.size(); ++i) {
      rows.emplace_back(place_number[shape.places[i]], shape.hits[i]);
    }
    std::sort(rows.begin(), rows.end());
    for (size_t i = 0; i < rows.size(); ++i) std::tie(shape.places[i], shape.hits[i]) = rows[i];
  }
  std::sort(profile.shapes.begin(), profile.shapes.end(), ShapeBefore);
}

template <class Visitor>
void ForEachFunction(Profile& profile, Visitor visitor) {
  for (CallPath& path : profile.paths) visitor(path.function);
  for (Guard& guard : profile.guards) visitor(guard.function);
  for (ProfileLoop& loop : profile.loops) {
    if (loop.holder != kNoIndex) visitor(loop.holder);
    for (auto* contexts : CutsOf(loop)) {
      for (Context& context : *contexts) visitor(context.function);
    }
  }
}

template <class Visitor>
void ForEachCaller(Profile& profile, Visitor visitor) {
  const auto visit = [&](uint32_t& caller) {
    if (caller != kNoIndex) visitor(caller);
  };
  for (Place& place : profile.places) visit(place.caller);
  for (Guard& guard : profile.guards) {
    for (GuardContext& context : guard.contexts) visit(context.caller);
  }
}

// Modules must have their numbers.
void CompactCallers(Profile& profile) {
  std::vector<bool> used(profile.callers.size());
  ForEachCaller(profile, [&](uint32_t& caller) { used[caller] = true; });
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < used.size(); ++i) {
    if (used[i]) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](uint32_t x, uint32_t y) { return profile.callers[x] < profile.callers[y]; });
  const std::vector<uint32_t> number = Numbers(profile.callers.size(), order);
  Keep(profile.callers, order);
  ForEachCaller(profile, [&](uint32_t& caller) { caller = number[caller]; });
  for (Guard& guard : profile.guards) std::sort(guard.contexts.begin(), guard.contexts.end());
}

void CompactFunctions(Profile& profile) {
  std::vector<bool> used(profile.functions.size());
  std::vector<bool> module_used(profile.modules.size());
  ForEachCaller(profile,
                [&](uint32_t& caller) { module_used[profile.callers[caller].module] = true; });
  ForEachFunction(profile, [&](uint32_t& function) { used[function] = true; });
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) module_used[profile.functions[i].module] = true;
  }
  for (const ProfileLoop& loop : profile.loops) {
    for (const ProfileSite& site : loop.sites) module_used[site.module] = true;
  }
  std::vector<uint32_t> modules;
  for (uint32_t i = 0; i < module_used.size(); ++i) {
    if (module_used[i]) modules.push_back(i);
  }
  const auto module_key = [&](uint32_t module) {
    const ProfileModule& row = profile.modules[module];
    return std::tuple(BaseName(row.path), std::string_view(row.build_id));
  };
  std::sort(modules.begin(), modules.end(),
            [&](uint32_t x, uint32_t y) { return module_key(x) < module_key(y); });
  const std::vector<uint32_t> module_number = Numbers(profile.modules.size(), modules);
  Keep(profile.modules, modules);
  for (ProfileLoop& loop : profile.loops) {
    for (ProfileSite& site : loop.sites) site.module = module_number[site.module];
  }
  for (ProfileCaller& caller : profile.callers) {
    if (module_number[caller.module] != kNoIndex) caller.module = module_number[caller.module];
  }
  std::vector<uint32_t> functions;
  for (uint32_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    profile.functions[i].module = module_number[profile.functions[i].module];
    functions.push_back(i);
  }
  std::sort(functions.begin(), functions.end(), [&](uint32_t x, uint32_t y) {
    const ProfileFunction& a = profile.functions[x];
    const ProfileFunction& b = profile.functions[y];
    return std::tie(a.module, a.offset) < std::tie(b.module, b.offset);
  });
  const std::vector<uint32_t> number = Numbers(profile.functions.size(), functions);
  Keep(profile.functions, functions);
  ForEachFunction(profile, [&](uint32_t& function) { function = number[function]; });
  for (ProfileLoop& loop : profile.loops) {
    for (auto* contexts : CutsOf(loop)) {
      std::sort(contexts->begin(), contexts->end());
    }
  }
}

}  // namespace

// Functions first: the order of paths hangs on their numbers. Once more at the
// end: dropped paths leave functions behind, whose going keeps the order.
void Compact(Profile& profile) {
  CompactFunctions(profile);
  CompactCallers(profile);
  CompactPlaces(profile);
  CompactFunctions(profile);
  CompactCallers(profile);
}

}  // namespace culprit::guard
