// SPDX-License-Identifier: Apache-2.0
#include "guard/guarded_process.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace culprit::guard {
namespace {

using wire::Cell;
using wire::RingHeader;
using wire::SlotsHeader;
using wire::UnitSlot;

constexpr size_t kSamplesPerCell = sizeof(Cell::samples) / sizeof(wire::Sample);

std::string RuntimeFile(const std::string& session, std::string_view name, int64_t pid) {
  return session + "/" + std::string(name) + "." + std::to_string(pid);
}

uint64_t SlotOffset(uint32_t index) {
  return wire::kSlotsOffset + uint64_t{index} * sizeof(UnitSlot);
}

uint64_t SpanNs(const SlotsHeader& header, uint64_t ticks) {
  __extension__ using Wide = unsigned __int128;
  const Wide ns = Wide{ticks} * header.ticks_mult >> 32;
  return ns > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(ns);
}

// From a moment near by that both clocks were read at: over hours the counter's
// measured rate is not good enough.
uint64_t TicksToNs(const SlotsHeader& header, const UnitSlot& slot, uint64_t ticks) {
  const bool read = slot.delay_ticks != 0 && slot.read_ns != 0;
  const uint64_t near_ticks = read ? slot.delay_ticks : header.base_ticks;
  const uint64_t near_ns = read ? slot.read_ns : header.base_ns;
  return ticks >= near_ticks ? near_ns + SpanNs(header, ticks - near_ticks)
                             : near_ns - SpanNs(header, near_ticks - ticks);
}

Error NotReady(std::string path) {
  return {.message = "not a file of this version's guard runtime", .file = std::move(path)};
}

}  // namespace

Result<GuardedProcess> GuardedProcess::Open(const std::string& session, int64_t pid) {
  const std::string slots_path = RuntimeFile(session, "slots", pid);
  const std::string ring_path = RuntimeFile(session, "ring", pid);
  CULPRIT_ASSIGN(SharedFile slots, SharedFile::Open(slots_path));
  CULPRIT_ASSIGN(SharedFile ring, SharedFile::Open(ring_path));
  SlotsHeader header = {};
  if (!slots.Read(0, header) || header.magic != wire::Magic("CGSLOT01") ||
      header.version != wire::kWireVersion || header.pid != pid) {
    return NotReady(slots_path);
  }
  RingHeader ring_header = {};
  if (!ring.Read(0, ring_header) || ring_header.magic != wire::Magic("CGRING01") ||
      ring_header.version != wire::kWireVersion || ring_header.cells != wire::kRingCells) {
    return NotReady(ring_path);
  }
  return GuardedProcess(pid, header.parent_pid, std::move(slots), std::move(ring));
}

// The header and as many slots as were used last time come with one read.
template <class See>
bool GuardedProcess::ForEachSlot(SlotsHeader& header, See see) const {
  buffer_.resize(SlotOffset(expected_slots_));
  if (!slots_.ReadBytes(0, buffer_.data(), buffer_.size())) return false;
  std::memcpy(static_cast<void*>(&header), buffer_.data(), sizeof(header));
  const uint32_t used = std::min(header.slots.load(), wire::kMaxThreads);
  if (used > expected_slots_) {
    const size_t known = buffer_.size();
    buffer_.resize(SlotOffset(used));
    if (!slots_.ReadBytes(known, buffer_.data() + known, buffer_.size() - known)) return true;
  }
  expected_slots_ = used;
  for (uint32_t i = 0; i < used; ++i) {
    UnitSlot slot = {};
    std::memcpy(static_cast<void*>(&slot), buffer_.data() + SlotOffset(i), sizeof(slot));
    if (slot.tid.load() != 0) see(slot, i);
  }
  return true;
}

// Nothing in it was changed while it was read.
bool GuardedProcess::IsWhole(const UnitSlot& slot, uint32_t index) const {
  const uint32_t before = slot.sequence.load();
  uint32_t after = 0;
  return before % 2 == 0 && slots_.Read(SlotOffset(index) + offsetof(UnitSlot, sequence), after) &&
         before == after;
}

bool GuardedProcess::IsTrampoline(uint64_t address) const {
  uint64_t begins[wire::kIslands] = {};
  if (!slots_.Read(offsetof(SlotsHeader, islands), begins)) return false;
  return std::any_of(std::begin(begins), std::end(begins), [&](uint64_t begin) {
    return begin != 0 && address >= begin && address - begin < wire::kIslandBytes;
  });
}

ProcessCounters GuardedProcess::Counters() const {
  ProcessCounters counters;
  counters.pid = pid_;
  SlotsHeader header = {};
  uint64_t slot_units = 0;
  const bool read = ForEachSlot(header, [&](const UnitSlot& slot, uint32_t) {
    counters.hits += slot.hits;
    slot_units += slot.units;
  });
  if (!read) return counters;
  counters.parent_pid = header.parent_pid;
  counters.plan = header.plan.load();
  counters.patched = header.patched.load();
  counters.refused = header.refused.load();
  counters.removed = header.removed.load();
  counters.foreign_modules = header.foreign_modules.load();
  counters.lost_log_bytes = header.lost_log_bytes.load();
  counters.lost_records = header.lost_records.load();
  counters.units = header.units.load();
  counters.violations = header.violations.load();
  counters.suppressed = header.suppressed.load();
  counters.ended = header.ended.load() != 0;
  counters.units = std::max(counters.units, slot_units);
  return counters;
}

std::vector<OpenUnit> GuardedProcess::OpenUnits(uint64_t now_ns) const {
  std::vector<OpenUnit> units;
  SlotsHeader header = {};
  ForEachSlot(header, [&](const UnitSlot& slot, uint32_t index) {
    const bool changing = slot.sequence.load() % 2 != 0;
    if (changing || slot.begin_ticks == 0 || header.ticks_mult == 0 || header.ended.load() != 0) {
      return;
    }
    OpenUnit unit;
    unit.tid = slot.tid.load();
    unit.slot = index;
    unit.begin_ticks = slot.begin_ticks;
    unit.begin_ns = TicksToNs(header, slot, slot.begin_ticks);
    // The slot may be younger than the caller's clock.
    unit.elapsed_ns = now_ns > unit.begin_ns ? now_ns - unit.begin_ns : 0;
    unit.run_delay_ns = slot.delay_ns;
    if (slot.overdue_ticks != 0 && slot.overdue_ticks != UINT64_MAX) {
      const bool later = slot.overdue_ticks > slot.begin_ticks;
      unit.allowed_ns = later ? SpanNs(header, slot.overdue_ticks - slot.begin_ticks) : 1;
    }
    unit.kind = static_cast<wire::UnitKind>(slot.kind);
    unit.loop = slot.loop;
    unit.ready = slot.ready;
    unit.trickle_ns = slot.trickle_ticks == 0 ? 0 : TicksToNs(header, slot, slot.trickle_ticks);
    std::memcpy(unit.contexts, slot.contexts, sizeof(unit.contexts));
    // Whoever is in time is not looked at, and need not be read twice.
    const bool in_time = unit.allowed_ns == 0 || unit.elapsed_ns < unit.allowed_ns;
    if ((!in_time || unit.trickle_ns != 0) && !IsWhole(slot, index)) return;
    units.push_back(unit);
  });
  idle_ = units.empty() && buffer_ == last_;
  if (!idle_) last_ = buffer_;
  return units;
}

bool GuardedProcess::IsOpen(const OpenUnit& unit) const {
  uint64_t begin_ticks = 0;
  return slots_.Read(SlotOffset(unit.slot) + offsetof(UnitSlot, begin_ticks), begin_ticks) &&
         begin_ticks == unit.begin_ticks;
}

std::vector<ThreadUnits> GuardedProcess::UnitsByThread() const {
  std::vector<ThreadUnits> threads;
  SlotsHeader header = {};
  ForEachSlot(header, [&](const UnitSlot& slot, uint32_t) {
    threads.push_back({.tid = slot.tid.load(), .loop = slot.loop, .units = slot.units});
  });
  return threads;
}

uint64_t GuardedProcess::Drain(const RingSink& sink) {
  RingHeader header = {};
  if (!ring_.Read(0, header)) return 0;
  uint64_t tail = header.tail.load();
  const uint64_t head = header.head.load();
  if (tail >= head) return 0;
  const auto cell = std::make_unique<Cell>();
  uint64_t taken = 0;
  // At most one round, so that a fast writer cannot hold the collector.
  while (tail < head && taken < wire::kRingCells) {
    const uint64_t offset = wire::kRingOffset + tail % wire::kRingCells * sizeof(Cell);
    const uint64_t full = 2 * (tail / wire::kRingCells) + 1;
    uint64_t turn = 0;
    if (!ring_.Read(offset, turn) || turn != full) break;  // its writer is not done
    if (!ring_.ReadBytes(offset, static_cast<void*>(cell.get()), sizeof(Cell))) break;
    Deliver(*cell, sink);
    if (!ring_.Write(offset, full + 1)) break;
    ++tail;
    ++taken;
    if (!ring_.Write(offsetof(RingHeader, tail), tail)) break;
  }
  return taken;
}

void GuardedProcess::Deliver(const Cell& cell, const RingSink& sink) {
  switch (static_cast<wire::RecordKind>(cell.kind)) {
    case wire::RecordKind::kViolation: {
      wire::Violation violation = cell.violation;
      violation.frames = std::min(violation.frames, wire::kMaxFrames);
      if (sink.violation) sink.violation(violation);
      return;
    }
    case wire::RecordKind::kSamples:
      if (cell.count > kSamplesPerCell) break;
      if (sink.samples) sink.samples({cell.samples, cell.count});
      return;
    case wire::RecordKind::kModules:
      if (sink.modules_changed) sink.modules_changed();
      return;
    case wire::RecordKind::kPlanLoaded:
      return;
  }
  ++bad_records_;
}

bool GuardedProcess::alive() const { return life_.alive(); }

}  // namespace culprit::guard
