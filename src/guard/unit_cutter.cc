// SPDX-License-Identifier: Apache-2.0
#include "guard/unit_cutter.h"

namespace culprit::guard {

UnitCutter::UnitCutter(const std::vector<SubUnitLevels>& levels, CallSites& call_sites,
                       ShapeTable& table)
    : call_sites_(call_sites), table_(table), of_loop_(levels.size()), totals_(levels.size()) {
  for (size_t i = 0; i < levels.size(); ++i) {
    const auto add = [&](const std::vector<Context>& contexts, Cut cut) {
      for (const Context& context : contexts) {
        const uint64_t key =
            uint64_t{context.function} << 32 | static_cast<uint32_t>(context.depth);
        *of_loop_[i].Insert(key).first = cut;
      }
    };
    add(levels[i].tails, Cut::kTail);
    add(levels[i].commands, Cut::kCommand);
    add(levels[i].handlers, Cut::kHandler);
  }
}

void UnitCutter::Begin(uint32_t loop, uint64_t ready, const LoopPlace& place) {
  loop_ = loop;
  entries_ = 0;
  turned_ = false;
  cuts_ = of_loop_[loop].empty() ? nullptr : &of_loop_[loop];
  BeginPart(ready);
  table_.BeginIteration(place.base16, place.sp16);
}

void UnitCutter::BeginPart(uint64_t ready) {
  ready_ = ready;
  handled_ = false;
  kind_ = cuts_ == nullptr ? wire::UnitKind::kIteration : wire::UnitKind::kTail;
}

void UnitCutter::Turn() {
  CountIteration();
  BeginPart(1);
  turned_ = true;
}

void UnitCutter::Take(Cut cut) {
  switch (cut) {
    case Cut::kHandler:
      Close(wire::UnitKind::kHandler);
      handled_ = true;
      break;
    case Cut::kCommand:
      Close(wire::UnitKind::kCommand);
      handled_ = true;
      break;
    case Cut::kTail:
      if (handled_ && kind_ != wire::UnitKind::kTail) Close(wire::UnitKind::kTail);
      break;
  }
}

void UnitCutter::Count(wire::UnitKind kind) {
  const auto half = static_cast<uint32_t>(iterations_ / kRun & 1);
  table_.EndUnit(OpenOf(kind), kind, loop_, half);
  ++units_;
}

// A part of the tail stays open until the iteration ends.
void UnitCutter::Close(wire::UnitKind next) {
  if (kind_ != wire::UnitKind::kTail) Count(kind_);
  kind_ = next;
}

void UnitCutter::CountIteration() {
  Close(wire::UnitKind::kTail);
  if (cuts_ != nullptr) Count(wire::UnitKind::kTail);
  ++iterations_;
  ++totals_[loop_].iterations;
  totals_[loop_].ready_events += ready_;
}

void UnitCutter::End(uint64_t dur_ns, bool complete) {
  if (complete && !turned_) {
    CountIteration();
  } else if (complete) {
    table_.EndSearch(loop_);
  }
  table_.DropUnit(ShapeTable::kRunning);
  table_.DropUnit(ShapeTable::kParts);
  if (!complete) return;
  totals_[loop_].train_ns += dur_ns;
  totals_[loop_].entries += entries_;
}

}  // namespace culprit::guard
