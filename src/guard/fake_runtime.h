// SPDX-License-Identifier: Apache-2.0
//
// FakeRuntime: the files of one guarded process (runtime/wire.h), written by a test
// as the runtime would: slots with units in them, records in the ring. For tests
// only.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "guard/runtime/wire.h"
#include "guard/session_folder.h"
#include "guard/shared_file.h"

namespace culprit::guard {

class FakeRuntime {
 public:
  FakeRuntime(const std::string& session, int64_t pid)
      : slots_(Make(session + "/slots." + std::to_string(pid),
                    wire::kSlotsOffset + wire::kMaxThreads * sizeof(wire::UnitSlot))),
        ring_(Make(session + "/ring." + std::to_string(pid),
                   wire::kRingOffset + wire::kRingCells * sizeof(wire::Cell))) {
    auto slots = std::make_unique<wire::SlotsHeader>();
    slots->magic = wire::Magic("CGSLOT01");
    slots->version = wire::kWireVersion;
    slots->pid = static_cast<uint32_t>(pid);
    slots->base_ticks = 1000;
    slots->base_ns = 5000;
    slots->ticks_mult = uint64_t{2} << 32;  // two nanoseconds a tick
    CULPRIT_CHECK(slots_.WriteBytes(0, slots.get(), sizeof(*slots)));
    auto ring = std::make_unique<wire::RingHeader>();
    ring->magic = wire::Magic("CGRING01");
    ring->version = wire::kWireVersion;
    ring->cells = wire::kRingCells;
    CULPRIT_CHECK(ring_.WriteBytes(0, ring.get(), sizeof(*ring)));
    for (uint32_t i = 0; i < wire::kRingCells; ++i) SetTurn(i, 0);
  }

  static uint64_t TicksOf(uint64_t ns) { return 1000 + (ns - 5000) / 2; }

  void SetSlot(uint32_t index, const wire::UnitSlot& slot) {
    CULPRIT_CHECK(slots_.WriteBytes(wire::kSlotsOffset + uint64_t{index} * sizeof(slot), &slot,
                                    sizeof(slot)));
    used_ = std::max(used_, index + 1);
    SetHeader(offsetof(wire::SlotsHeader, slots), used_);
  }
  template <class T>
  void SetHeader(size_t offset, T value) {
    CULPRIT_CHECK(slots_.Write(offset, value));
  }

  // False when the ring is full.
  bool Push(const wire::Violation& violation) {
    auto cell = std::make_unique<wire::Cell>();
    cell->kind = static_cast<uint32_t>(wire::RecordKind::kViolation);
    cell->violation = violation;
    return Push(*cell);
  }
  bool Push(const wire::Cell& cell) {
    const uint64_t offset = CellOffset(head_);
    uint64_t turn = 0;
    CULPRIT_CHECK(ring_.Read(offset, turn));
    if (turn != 2 * (head_ / wire::kRingCells)) return false;
    ++head_;
    CULPRIT_CHECK(ring_.Write(offsetof(wire::RingHeader, head), head_));
    const auto* bytes = reinterpret_cast<const char*>(&cell);
    CULPRIT_CHECK(ring_.WriteBytes(offset + 8, bytes + 8, sizeof(cell) - 8));
    SetTurn((head_ - 1) % wire::kRingCells, turn + 1);
    return true;
  }
  // A writer that has taken its number and not written yet.
  void Take() {
    ++head_;
    CULPRIT_CHECK(ring_.Write(offsetof(wire::RingHeader, head), head_));
  }

 private:
  static SharedFile Make(const std::string& path, uint64_t bytes) {
    auto file = SharedFile::Create(path, bytes);
    CULPRIT_CHECK(file.ok());
    return std::move(file).value();
  }
  static uint64_t CellOffset(uint64_t number) {
    return wire::kRingOffset + number % wire::kRingCells * sizeof(wire::Cell);
  }
  void SetTurn(uint32_t cell, uint64_t turn) { CULPRIT_CHECK(ring_.Write(CellOffset(cell), turn)); }

  SharedFile slots_;
  SharedFile ring_;
  uint64_t head_ = 0;
  uint32_t used_ = 0;
};

}  // namespace culprit::guard
