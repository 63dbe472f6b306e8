// SPDX-License-Identifier: Apache-2.0
//
// ShapeTable: the distinct units of a training. A unit is told entry by entry;
// its call tree follows from the stack pointers (an entry at or above a frame's
// stack pointer means that the frame is gone; a tail call enters at the same one
// and replaces it) and from the callers (a frame between an entry and the function
// that called it is gone too: its caller has since grown its own frame). Of the tree only the set
// of places <call path, depth, caller> stays; units with equal sets are one shape with a count.
//
// A call path begins below the loop, whether its first functions were entered inside the unit or
// before: a loop that waits deep inside of its calls goes on where it waited, and comes to the same
// places as one that is called anew. So what is entered between units is told as well (Pass).
//
// A path that a caller enters at more than kMaxDepths depths (memory on the stack
// whose size depends on data) keeps one place of variable depth. When the shapes exceed
// their number or the memory, those seen least are dropped and counted. An entry
// costs three small hash lookups, a unit a sort of its places.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "guard/call_sites.h"
#include "guard/profile.h"

namespace culprit::guard {

// By loop, kind, falling number of units, places.
bool ShapeBefore(const UnitShape& x, const UnitShape& y);

class ShapeTable {
 public:
  static constexpr size_t kMaxDepths = 8;
  static constexpr size_t kMaxFrames = 128;  // deeper ones hang under the last of these

  ShapeTable(uint64_t max_shapes, uint64_t memory_bytes)
      : max_shapes_(max_shapes), memory_bytes_(memory_bytes) {}

  // Two units may be open at a time: the running one, and one of several parts.
  enum Open : uint32_t { kRunning = 0, kParts = 1 };

  // An entry outside of any unit. Stack pointers at entry are in units of 16 bytes.
  void Pass(uint32_t function, uint64_t sp16, uint32_t caller_function) {
    PopTo(sp16, caller_function);
    stack_.push_back({sp16, kNoIndex, function});
  }
  // Something was missed: of the stack nothing is known.
  void LoseStack() {
    stack_.clear();
    first_ = 0;
  }
  // An iteration of a loop whose calls lie below base16 goes on from a wait at sp16.
  void BeginIteration(uint64_t base16, uint64_t sp16);
  void Enter(uint32_t function, int32_t depth16, const CallOrigin& origin, Open unit);
  // What was entered in it since the last EndUnit or DropUnit.
  void EndUnit(Open unit, wire::UnitKind kind, uint32_t loop, uint32_t half);
  void DropUnit(Open unit);
  // The running unit only looked for work and led to a wait: it is none. What most of
  // these enter is left out of all units of the loop: whether they began so or with the
  // return of a wait tells nothing about them.
  void EndSearch(uint32_t loop);

  // Shapes in the order of ShapeBefore; the table is empty then.
  void MoveTo(Profile& profile);

 private:
  struct Frame {
    uint64_t sp16 = 0;
    uint32_t path = kNoIndex;
    uint32_t function = 0;
  };
  struct PathState {
    uint32_t function = 0;
    uint32_t parent = kNoIndex;
    uint32_t last_caller = kNoIndex;
    uint32_t last_site = kNoIndex;
  };
  // A path as one caller enters it.
  struct SiteState {
    uint32_t path = 0;
    uint32_t caller = kNoIndex;
    int32_t last_depth16 = 0;
    uint32_t last_place = kNoIndex;
    uint32_t depths = 0;
  };
  struct Key {
    uint32_t kind = 0;
    uint32_t loop = 0;
    std::vector<uint32_t> places;
    auto operator<=>(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Value {
    uint64_t units[2] = {0, 0};
    std::vector<uint64_t> hits;
  };
  void PopTo(uint64_t sp16, uint32_t caller_function);
  uint32_t PathBelow(size_t frames) const;
  uint32_t ChildOf(uint32_t path, uint32_t function);
  uint32_t SiteOf(uint32_t path, uint32_t caller);
  uint32_t PlaceOf(uint32_t site, int32_t depth16);
  void DropRare();
  bool IsOfSearches(uint32_t loop, uint32_t place) const;

  uint64_t max_shapes_;
  uint64_t memory_bytes_;
  uint64_t used_bytes_ = 0;
  std::vector<Frame> stack_;
  size_t first_ = 0;  // frame below the loop
  uint64_t base16_ = 0;
  std::vector<PathState> paths_;
  FlatMap<uint64_t, uint32_t> children_;  // path + 1 and function -> path + 1
  std::vector<SiteState> sites_;
  FlatMap<uint64_t, uint32_t> site_numbers_;   // path and caller + 1 -> site + 1
  std::vector<Place> places_;                  // depth in units of 16 bytes
  FlatMap<uint64_t, uint32_t> place_numbers_;  // site and depth -> place + 1
  struct OpenUnit {
    std::vector<uint32_t> stamp;  // by place: number in the unit + 1, if entered
    std::vector<uint32_t> places;
    std::vector<uint64_t> hits;
  };
  OpenUnit open_[2];
  struct Searches {
    uint64_t count = 0;
    std::vector<uint64_t> of_place;
  };
  std::vector<Searches> searches_;  // by loop
  std::vector<uint32_t> order_;
  std::unordered_map<Key, Value, KeyHash> shapes_;
  uint64_t dropped_shapes_ = 0;
  uint64_t dropped_units_ = 0;
};

}  // namespace culprit::guard
