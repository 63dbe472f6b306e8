// SPDX-License-Identifier: Apache-2.0
#include "guard/context_numbers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace culprit::guard {
namespace {

using Row = std::pair<CalledContext, uint32_t>;  // of a place, with its number

// By place: the loops and kinds whose units enter it, as numbers.
std::vector<std::vector<uint32_t>> GroupsOfPlaces(const Profile& profile) {
  std::map<std::pair<uint32_t, wire::UnitKind>, uint32_t> numbers;
  std::vector<std::vector<uint32_t>> groups(profile.places.size());
  for (const UnitShape& shape : profile.shapes) {
    const uint32_t group =
        numbers.try_emplace({shape.loop, shape.kind}, static_cast<uint32_t>(numbers.size()))
            .first->second;
    for (const uint32_t place : shape.places) {
      std::vector<uint32_t>& of_place = groups[place];
      if (std::find(of_place.begin(), of_place.end(), group) == of_place.end()) {
        of_place.push_back(group);
      }
    }
  }
  return groups;
}

// The longer of two paths that are the same as far as both are known; kNoIndex: they
// differ. Where a log begins, or misses something, the outermost calls are not known.
uint32_t JoinPaths(const Profile& profile, uint32_t one, uint32_t other) {
  uint32_t of_one = one;
  uint32_t of_other = other;
  while (of_one != of_other) {
    if (of_one == kNoIndex) return other;
    if (of_other == kNoIndex) return one;
    if (profile.paths[of_one].function != profile.paths[of_other].function) return kNoIndex;
    of_one = profile.paths[of_one].parent;
    of_other = profile.paths[of_other].parent;
  }
  return one;
}

// Rows of one function and depth, or of one caller besides: no units of a loop and
// kind come there by two paths.
bool HaveOnePath(const Profile& profile, const std::vector<std::vector<uint32_t>>& groups,
                 const Row* begin, const Row* end) {
  std::map<uint32_t, uint32_t> path_of_group;
  for (const Row* row = begin; row != end; ++row) {
    const uint32_t path = profile.places[row->second].path;
    for (const uint32_t group : groups[row->second]) {
      uint32_t& known = path_of_group.try_emplace(group, path).first->second;
      known = JoinPaths(profile, known, path);
      if (known == kNoIndex) return false;
    }
  }
  return true;
}

template <class Same>
const Row* EndOfRun(const Row* begin, const Row* end, Same same) {
  return std::find_if_not(begin, end, [&](const Row& row) { return same(row.first); });
}

}  // namespace

ContextNumbers::ContextNumbers(const Profile& profile)
    : of_place_(profile.places.size(), kNoIndex),
      clarity_(profile.places.size(), Clarity::kVariable) {
  const std::vector<std::vector<uint32_t>> groups = GroupsOfPlaces(profile);
  std::vector<Row> rows;
  for (uint32_t i = 0; i < profile.places.size(); ++i) {
    const Place& place = profile.places[i];
    if (place.depth == kVariableDepth) continue;
    rows.push_back({{profile.paths[place.path].function, {place.depth, place.caller}}, i});
  }
  std::sort(rows.begin(), rows.end());
  const auto take = [&](const Row* begin, const Row* end, CalledContext context, Clarity clarity) {
    for (const Row* row = begin; row != end; ++row) {
      clarity_[row->second] = clarity;
      if (clarity != Clarity::kAmbiguous) {
        of_place_[row->second] = static_cast<uint32_t>(contexts_.size());
      }
    }
    if (clarity != Clarity::kAmbiguous) contexts_.push_back(context);
  };
  const Row* const all_end = rows.data() + rows.size();
  for (const Row* begin = rows.data(); begin != all_end;) {
    const CalledContext first = begin->first;
    const Row* const end = EndOfRun(begin, all_end, [&](const CalledContext& other) {
      return other.function == first.function && other.context.depth == first.context.depth;
    });
    if (HaveOnePath(profile, groups, begin, end)) {
      take(begin, end, {first.function, {first.context.depth}}, Clarity::kClear);
      begin = end;
      continue;
    }
    while (begin != end) {
      const CalledContext called = begin->first;
      const Row* const run_end =
          EndOfRun(begin, end, [&](const CalledContext& other) { return other == called; });
      const bool clear =
          called.context.caller != kNoIndex && HaveOnePath(profile, groups, begin, run_end);
      take(begin, run_end, called, clear ? Clarity::kByCaller : Clarity::kAmbiguous);
      begin = run_end;
    }
  }
  CountLevels(profile);
}

void ContextNumbers::CountLevels(const Profile& profile) {
  std::vector<uint32_t> of_paths;
  for (const CallPath& path : profile.paths) {
    of_paths.push_back(path.parent == kNoIndex ? 1 : of_paths[path.parent] + 1);
  }
  levels_.resize(contexts_.size());
  for (size_t place = 0; place < of_place_.size(); ++place) {
    if (of_place_[place] == kNoIndex) continue;
    uint32_t& level = levels_[of_place_[place]];
    level = std::max(level, of_paths[profile.places[place].path]);
  }
}

uint32_t ContextNumbers::Find(const CalledContext& context) const {
  const auto found = std::lower_bound(contexts_.begin(), contexts_.end(), context);
  if (found == contexts_.end() || *found != context) return kNoIndex;
  return static_cast<uint32_t>(found - contexts_.begin());
}

std::vector<uint32_t> ContextNumbers::OfShape(const UnitShape& shape) const {
  std::vector<uint32_t> numbers;
  for (const uint32_t place : shape.places) {
    if (of_place_[place] != kNoIndex) numbers.push_back(of_place_[place]);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace culprit::guard
