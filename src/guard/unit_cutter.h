// SPDX-License-Identifier: Apache-2.0
//
// UnitCutter: a visitor of IterationWalk that cuts iterations into units and puts
// them into a ShapeTable, as the runtime cuts them (runtime/wire.h): the entry of
// a handler, or of a command inside one, ends what was and begins a unit; a tail
// context after a handler ends that. What precedes the first handler and what
// follows the last is one unit, the iteration's tail. A loop without handlers has
// its iterations as units. What a loop does between its last turn and a wait belongs to
// none.
//
// Alternating runs of kRun iterations of a thread are the two halves by which the
// choice of guards is judged. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "guard/call_sites.h"
#include "guard/iteration_walk.h"
#include "guard/profile.h"
#include "guard/shape_table.h"
#include "guard/sub_units.h"

namespace culprit::guard {

struct LoopTotals {
  uint64_t iterations = 0;
  uint64_t ready_events = 0;
  uint64_t train_ns = 0;
  uint64_t entries = 0;
};

class UnitCutter {
 public:
  UnitCutter(const std::vector<SubUnitLevels>& levels, CallSites& call_sites, ShapeTable& table);

  void BeginThread(uint32_t pid) {
    call_sites_.UseProcess(pid);
    table_.LoseStack();
    iterations_ = 0;
  }

  void Pass(uint32_t function, uint64_t sp16, uint64_t return_address) {
    table_.Pass(function, sp16, call_sites_.OriginOf(return_address).function);
  }
  void Lose() { table_.LoseStack(); }
  void Begin(uint32_t loop, uint64_t ready, const LoopPlace& place);
  void Enter(uint32_t function, int32_t depth16, uint64_t return_address) {
    ++entries_;
    if (cuts_ != nullptr) {
      const uint64_t key = uint64_t{function} << 32 | static_cast<uint32_t>(depth16 * 16);
      if (const Cut* cut = cuts_->Find(key); cut != nullptr) Take(*cut);
    }
    table_.Enter(function, depth16, call_sites_.OriginOf(return_address), OpenOf(kind_));
  }
  void Read(uint64_t) {}
  void Turn();
  void End(uint64_t dur_ns, bool complete);

  const std::vector<LoopTotals>& totals() const { return totals_; }
  uint64_t units() const { return units_; }

 private:
  static constexpr uint64_t kRun = 16;
  enum class Cut : uint32_t { kHandler, kCommand, kTail };
  using Cuts = FlatMap<uint64_t, Cut>;
  void Take(Cut cut);
  void Close(wire::UnitKind next);
  void Count(wire::UnitKind kind);
  void BeginPart(uint64_t ready);
  void CountIteration();
  static ShapeTable::Open OpenOf(wire::UnitKind kind) {
    return kind == wire::UnitKind::kTail ? ShapeTable::kParts : ShapeTable::kRunning;
  }

  CallSites& call_sites_;
  ShapeTable& table_;
  std::vector<Cuts> of_loop_;
  std::vector<LoopTotals> totals_;
  const Cuts* cuts_ = nullptr;  // of the loop, if it has any
  uint32_t loop_ = 0;
  wire::UnitKind kind_ = wire::UnitKind::kIteration;
  bool handled_ = false;  // a handler of this iteration was entered
  bool turned_ = false;   // it began with a turn
  uint64_t ready_ = 0;
  uint64_t entries_ = 0;
  uint64_t iterations_ = 0;
  uint64_t units_ = 0;
};

}  // namespace culprit::guard
