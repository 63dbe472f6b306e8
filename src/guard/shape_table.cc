// SPDX-License-Identifier: Apache-2.0
#include "guard/shape_table.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace culprit::guard {
namespace {

constexpr int32_t kVariableDepth16 = INT32_MIN;
constexpr uint64_t kBytesOfShape = 160;  // without its places

}  // namespace

bool ShapeBefore(const UnitShape& x, const UnitShape& y) {
  const uint64_t of_x = x.total_units();
  const uint64_t of_y = y.total_units();
  return std::tie(x.loop, x.kind, of_y, x.places) < std::tie(y.loop, y.kind, of_x, y.places);
}

uint32_t ShapeTable::ChildOf(uint32_t path, uint32_t function) {
  const auto [child, made] = children_.Insert(uint64_t{path + 1} << 32 | function);
  if (made) {
    paths_.push_back({.function = function, .parent = path});
    *child = static_cast<uint32_t>(paths_.size());
  }
  return *child - 1;
}

uint32_t ShapeTable::SiteOf(uint32_t path, uint32_t caller) {
  PathState& state = paths_[path];
  if (state.last_site != kNoIndex && state.last_caller == caller) return state.last_site;
  const auto [site, made] = site_numbers_.Insert(uint64_t{path} << 32 | (caller + 1));
  if (made) {
    sites_.push_back({.path = path, .caller = caller});
    *site = static_cast<uint32_t>(sites_.size());
  }
  state.last_caller = caller;
  state.last_site = *site - 1;
  return state.last_site;
}

uint32_t ShapeTable::PlaceOf(uint32_t site, int32_t depth16) {
  SiteState& state = sites_[site];
  if (state.last_place != kNoIndex && state.last_depth16 == depth16) return state.last_place;
  const auto key = [&](int32_t depth) {
    return uint64_t{site} << 32 | static_cast<uint32_t>(depth);
  };
  if (const uint32_t* known = place_numbers_.Find(key(depth16)); known != nullptr) {
    state.last_depth16 = depth16;
    state.last_place = *known - 1;
    return state.last_place;
  }
  const int32_t kept = state.depths < kMaxDepths ? depth16 : kVariableDepth16;
  const auto [number, made] = place_numbers_.Insert(key(kept));
  if (made) {
    ++state.depths;
    places_.push_back({state.path, kept, state.caller});
    for (OpenUnit& unit : open_) unit.stamp.push_back(0);
    *number = static_cast<uint32_t>(places_.size());
  }
  state.last_depth16 = depth16;
  state.last_place = *number - 1;
  return state.last_place;
}

// A caller that is not on the stack was not seen to be entered: it is not patched.
void ShapeTable::PopTo(uint64_t sp16, uint32_t caller_function) {
  while (!stack_.empty() && stack_.back().sp16 <= sp16) stack_.pop_back();
  if (caller_function == kNoIndex) return;
  for (size_t i = stack_.size(); i > 0; --i) {
    if (stack_[i - 1].function != caller_function) continue;
    stack_.resize(i);
    return;
  }
}

// Of what is called with so many frames on the stack: its caller's path.
uint32_t ShapeTable::PathBelow(size_t frames) const {
  return frames <= first_ ? kNoIndex : stack_[std::min(frames, first_ + kMaxFrames) - 1].path;
}

void ShapeTable::BeginIteration(uint64_t base16, uint64_t sp16) {
  base16_ = base16;
  while (!stack_.empty() && stack_.back().sp16 <= sp16) stack_.pop_back();
  first_ = 0;
  while (first_ < stack_.size() && stack_[first_].sp16 >= base16) ++first_;
  for (size_t i = first_; i < stack_.size(); ++i) {
    stack_[i].path = ChildOf(PathBelow(i), stack_[i].function);
  }
}

void ShapeTable::Enter(uint32_t function, int32_t depth16, const CallOrigin& origin, Open unit) {
  const uint64_t sp16 = base16_ - static_cast<uint64_t>(int64_t{depth16});
  PopTo(sp16, origin.function);
  first_ = std::min(first_, stack_.size());
  const uint32_t path = ChildOf(PathBelow(stack_.size()), function);
  stack_.push_back({sp16, path, function});
  const uint32_t place = PlaceOf(SiteOf(path, origin.caller), depth16);
  OpenUnit& open = open_[unit];
  if (open.stamp[place] == 0) {
    open.places.push_back(place);
    open.hits.push_back(1);
    open.stamp[place] = static_cast<uint32_t>(open.places.size());
  } else {
    ++open.hits[open.stamp[place] - 1];
  }
}

size_t ShapeTable::KeyHash::operator()(const Key& key) const {
  uint64_t hash = uint64_t{key.kind} << 32 | key.loop;
  for (const uint32_t place : key.places) hash = IntegerHash()(hash ^ place) + place;
  return hash;
}

void ShapeTable::DropUnit(Open unit) {
  OpenUnit& open = open_[unit];
  for (const uint32_t place : open.places) open.stamp[place] = 0;
  open.places.clear();
  open.hits.clear();
}

void ShapeTable::EndSearch(uint32_t loop) {
  if (searches_.size() <= loop) searches_.resize(loop + 1);
  Searches& searches = searches_[loop];
  ++searches.count;
  searches.of_place.resize(places_.size());
  for (const uint32_t place : open_[kRunning].places) ++searches.of_place[place];
  DropUnit(kRunning);
}

bool ShapeTable::IsOfSearches(uint32_t loop, uint32_t place) const {
  if (loop >= searches_.size() || place >= searches_[loop].of_place.size()) return false;
  const uint64_t times = searches_[loop].of_place[place];
  return times > 0 && 2 * times >= searches_[loop].count;
}

void ShapeTable::EndUnit(Open unit, wire::UnitKind kind, uint32_t loop, uint32_t half) {
  const OpenUnit& open = open_[unit];
  order_.resize(open.places.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(),
            [&](uint32_t x, uint32_t y) { return open.places[x] < open.places[y]; });
  Key key{.kind = static_cast<uint32_t>(kind), .loop = loop};
  for (const uint32_t i : order_) key.places.push_back(open.places[i]);
  const auto [shape, made] = shapes_.try_emplace(std::move(key));
  if (made) {
    shape->second.hits.resize(order_.size());
    used_bytes_ += kBytesOfShape + 12 * order_.size();
  }
  ++shape->second.units[half & 1];
  for (size_t i = 0; i < order_.size(); ++i) shape->second.hits[i] += open.hits[order_[i]];
  DropUnit(unit);
  if (shapes_.size() > max_shapes_ || used_bytes_ > memory_bytes_) DropRare();
}

// The rarer half, so that this happens seldom; of equally rare ones those that
// come last by their places.
void ShapeTable::DropRare() {
  std::vector<std::pair<uint64_t, decltype(shapes_)::iterator>> order;
  for (auto shape = shapes_.begin(); shape != shapes_.end(); ++shape) {
    order.emplace_back(shape->second.units[0] + shape->second.units[1], shape);
  }
  std::sort(order.begin(), order.end(), [](const auto& x, const auto& y) {
    return x.first != y.first ? x.first > y.first : x.second->first < y.second->first;
  });
  for (size_t i = order.size() / 2; i < order.size(); ++i) {
    ++dropped_shapes_;
    dropped_units_ += order[i].first;
    used_bytes_ -= kBytesOfShape + 12 * order[i].second->first.places.size();
    shapes_.erase(order[i].second);
  }
}

void ShapeTable::MoveTo(Profile& profile) {
  profile.paths.clear();
  profile.places.clear();
  profile.shapes.clear();
  for (const PathState& path : paths_) profile.paths.push_back({path.parent, path.function});
  for (const Place& place : places_) {
    profile.places.push_back({place.path,
                              place.depth == kVariableDepth16 ? kVariableDepth : place.depth * 16,
                              place.caller});
  }
  // Without what searches enter, some are the same.
  std::map<Key, Value> distinct;
  for (auto shape = shapes_.begin(); shape != shapes_.end(); shape = shapes_.erase(shape)) {
    const auto& [key, value] = *shape;
    Key kept{.kind = key.kind, .loop = key.loop};
    std::vector<uint64_t> hits;
    for (size_t i = 0; i < key.places.size(); ++i) {
      if (IsOfSearches(key.loop, key.places[i])) continue;
      kept.places.push_back(key.places[i]);
      hits.push_back(value.hits[i]);
    }
    Value& sum = distinct[std::move(kept)];
    sum.hits.resize(hits.size());
    for (size_t i = 0; i < hits.size(); ++i) sum.hits[i] += hits[i];
    for (int half = 0; half < 2; ++half) sum.units[half] += value.units[half];
  }
  for (auto& [key, value] : distinct) {
    UnitShape shape{.kind = static_cast<wire::UnitKind>(key.kind), .loop = key.loop};
    shape.places = key.places;
    shape.hits = std::move(value.hits);
    std::copy(std::begin(value.units), std::end(value.units), std::begin(shape.units));
    profile.shapes.push_back(std::move(shape));
  }
  std::sort(profile.shapes.begin(), profile.shapes.end(), ShapeBefore);
  profile.training.dropped_shapes += dropped_shapes_;
  profile.training.dropped_units += dropped_units_;
  searches_.clear();
}

}  // namespace culprit::guard
