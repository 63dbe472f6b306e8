// SPDX-License-Identifier: Apache-2.0
//
// TrackedThread: a thread with its slot and a plan, in a process whose files are plain
// memory. For tests only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "guard/runtime/process.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_tracker.h"

namespace culprit::guard::runtime {

class TrackedThread : public testing::Test {
 protected:
  TrackedThread() {
    PrepareClock();
    EXPECT_TRUE(MakeProcessMemory());
    Process& process = ThisProcess();
    process.header = &header_;
    process.ring = &ring_;
    process.cells = cells_.data();
    process.ring_area.Adopt(cells_.data(), SIZE_MAX);
    process.report_credit_ns = 0;
    process.stage = Process::kMade;
    control_.collector_beat_ns = MonotonicNs() + kBeatAheadNs;
    ListenTo(&control_);
    state_->owner = &words_;
    state_->slot = &slot_;
    state_->tid = static_cast<uint32_t>(gettid());
    plan_.mode = wire::Mode::kGuard;
    plan_.generation = 1;
  }
  ~TrackedThread() override { ThisProcess().stage = Process::kNothing; }

  void AddType(wire::UnitKind kind, uint64_t threshold_ns, uint64_t contexts) {
    wire::PlanType type = {};
    type.kind = static_cast<uint32_t>(kind);
    type.threshold_ns = threshold_ns;
    type.contexts[0] = contexts;
    types_.push_back(type);
  }
  // Of the types that were added, as LoadPlan would have it.
  void MakePlan(uint32_t sample_every = 0, uint64_t unknown_ns = 0) {
    wire::PlanHeader header = {};
    header.magic = wire::Magic("CGPLAN01");
    header.version = wire::kWireVersion;
    header.mode = static_cast<uint32_t>(plan_.mode);
    header.types = static_cast<uint32_t>(types_.size());
    header.max_reports_a_second = 100;
    header.sample_every = sample_every;
    header.unknown_ns = unknown_ns;
    const size_t body = types_.size() * sizeof(wire::PlanType);
    header.bytes = sizeof(header) + body;
    header.checksum = Fnv1a(reinterpret_cast<const uint8_t*>(types_.data()), body);
    bytes_.assign(header.bytes / 8, 0);
    auto* bytes = reinterpret_cast<uint8_t*>(bytes_.data());
    std::memcpy(bytes, &header, sizeof(header));
    std::memcpy(bytes + sizeof(header), types_.data(), body);
    ASSERT_TRUE(plan_.view.Parse(bytes, header.bytes));
    std::fill(std::begin(limits_.smallest_ticks), std::end(limits_.smallest_ticks), UINT64_MAX);
    for (const wire::PlanType& type : types_) {
      uint64_t& smallest = limits_.smallest_ticks[type.kind];
      smallest = std::min(smallest, TicksOfNs(type.threshold_ns));
      limits_.has_handlers |= type.kind != static_cast<uint32_t>(wire::UnitKind::kIteration);
    }
    plan_.loops = {&limits_, 1};
  }
  void Begin(uint32_t ready) { LeaveLoopWait(*state_, plan_, kSite, kSp, ready); }
  void End() { EXPECT_TRUE(EnterLoopWait(*state_, plan_, kSite, kSp, ReadTicks())); }
  void HitGuard() { PassDeadline(*state_, {.entry_sp = kSp, .return_address = 2, .entry = 1}); }

  std::vector<const wire::Cell*> Records(wire::RecordKind kind) const {
    std::vector<const wire::Cell*> found;
    for (uint64_t i = 0; i < ring_.head.load(); ++i) {
      if (cells_[i].kind == static_cast<uint32_t>(kind)) found.push_back(&cells_[i]);
    }
    return found;
  }
  const wire::Violation& Violation(size_t index) const {
    return Records(wire::RecordKind::kViolation).at(index)->violation;
  }

  static constexpr uint64_t kBeatAheadNs = 3600'000'000'000;
  static constexpr SiteRule kSite = {.return_address = 1, .call = 0, .loop = 0, .base_offset = 0};
  static constexpr uint64_t kSp = 0x1000;

  wire::SlotsHeader header_ = {};
  wire::RingHeader ring_ = {};
  std::vector<wire::Cell> cells_ = std::vector<wire::Cell>(wire::kRingCells);
  wire::Control control_ = {};
  wire::UnitSlot slot_ = {};
  ThreadWords words_ = {};
  std::unique_ptr<ThreadState> state_ = std::make_unique<ThreadState>();
  std::vector<wire::PlanType> types_;
  std::vector<uint64_t> bytes_;
  LoopLimits limits_ = {};
  LoadedPlan plan_ = {};
};

}  // namespace culprit::guard::runtime
