// SPDX-License-Identifier: Apache-2.0
//
// LoadedPlan: a plan with its places found in this process: addresses instead of
// module and offset, ticks instead of nanoseconds, a hash of the sites. Made
// when a plan is wanted, and again when modules came or went; never changed (but
// for the counters of the back-off) and never freed, since a thread may be
// looking at it: a change of plans costs its size, tens of kilobytes.
//
// Reading: any thread, no locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "guard/runtime/hook.h"
#include "guard/runtime/plan_view.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

inline constexpr uint32_t kMaxLoops = 1024;
inline constexpr uint32_t kUnitKinds = 4;

struct ContextRule {
  // Besides PlanContext::Flags: the hit is counted, not only marked.
  static constexpr uint32_t kCounted = 1u << 31;
  int32_t depth;
  uint32_t flags;
  uint32_t bit;
  uint64_t return_address;  // 0: any
};

// What the hook of a guarded function is given.
struct GuardRecord {
  const ContextRule* rules;
  uint32_t count;
  uint32_t flags;     // PlanFunction::Flags
  uint64_t entry;     // 0: its module is not loaded
  uint32_t function;  // index in the plan
  // Hits since window_ticks, charged in steps (guard_hit.h); too many: removed.
  mutable std::atomic<uint64_t> window_hits;
  mutable std::atomic<uint64_t> window_ticks;
  mutable std::atomic<bool> excessive;
  mutable std::atomic<bool> removed;
};

// Of a rule with others the record is needed.
inline constexpr uint32_t kQuietFlags = wire::PlanContext::kBoundary | wire::PlanContext::kTail |
                                        wire::PlanContext::kTurn | wire::PlanContext::kNoBit;

// Its contexts only set a bit or cut units, and are so few that its trampoline may look for them
// (Hook::contexts): there the first hit of each in a unit is not counted, unless it cuts.
inline bool IsInline(const GuardRecord& guard) {
  if (guard.count == 0 || guard.count > kMaxInlineContexts) return false;
  for (uint32_t i = 0; i < guard.count; ++i) {
    if ((guard.rules[i].flags & ~kQuietFlags) != 0) return false;
  }
  return true;
}

// One of its contexts is a loop's turn: it is looked at outside of units, too (loop_turn.h).
inline bool MayTurn(const GuardRecord& guard) {
  for (uint32_t i = 0; i < guard.count; ++i) {
    if ((guard.rules[i].flags & wire::PlanContext::kTurn) != 0) return true;
  }
  return false;
}

// What is to be known of a context that cuts, in one word (InlineContext::cut).
struct Cut {
  uint32_t flags;  // PlanContext::Flags
  uint32_t bit;
  uint32_t rule;  // of the guard's
  wire::UnitKind begun;
};
inline uint64_t WordOfCut(const GuardRecord& guard, uint32_t rule) {
  const ContextRule& context = guard.rules[rule];
  const bool command = (guard.flags & wire::PlanFunction::kCommand) != 0;
  return uint64_t{context.flags} | uint64_t{context.bit} << 16 | uint64_t{rule} << 32 |
         uint64_t{command} << 48;
}
[[gnu::always_inline]] inline Cut CutOf(uint64_t word) {
  return {static_cast<uint32_t>(word & 0xffff), static_cast<uint32_t>(word >> 16 & 0xffff),
          static_cast<uint32_t>(word >> 32 & 0xffff),
          (word >> 48) != 0 ? wire::UnitKind::kCommand : wire::UnitKind::kHandler};
}

// Waits for other threads, by WaitCall, as LoadedPlan::calls.
inline constexpr uint64_t kParkingCalls =
    uint64_t{1} << static_cast<uint32_t>(wire::WaitCall::kCondition) |
    uint64_t{1} << static_cast<uint32_t>(wire::WaitCall::kSemaphore);

struct SiteRule {
  uint64_t return_address;  // 0: empty
  uint32_t call;            // WaitCall
  uint32_t loop;
  int32_t base_offset;
  uint32_t flags;   // PlanSite::Flags
  uint64_t holder;  // where the function that holds the loop begins; 0: not known
  bool shared;      // other rules have the same return address
};

// The smallest thing that may be reported, so that faster units need no more
// than a comparison.
struct LoopLimits {
  bool has_handlers;
  bool has_turns;  // PlanSite::kTurns
  uint64_t smallest_ticks[kUnitKinds];
};

struct LoadedPlan {
  uint32_t number;
  uint32_t generation;  // no two loaded plans have the same; never 0
  wire::Mode mode;
  PlanView view;
  std::span<GuardRecord> guards;
  uint64_t uncounted[wire::kContextWords];  // contexts of inline guards, for statistics
  std::span<const SiteRule> sites;          // open addressing, a power of two
  uint64_t calls;                           // bit n: WaitCall n has a site
  std::span<const LoopLimits> loops;
  uint64_t floor_ticks;
  uint64_t unknown_ticks;
  uint64_t iteration_ticks;
  uint64_t excessive_hits;  // a second; UINT64_MAX: no bound
  uint32_t missing_modules;
  uint32_t foreign_modules;
  // False: the plan was made for another program: nothing is to be done here.
  bool concerns_us;
};

// nullptr: damaged, absent, or no memory. The modules must be fresh.
LoadedPlan* LoadPlan(uint32_t number, uint32_t generation);

// The first rule of a return address; nullptr: no site of the plan.
inline const SiteRule* FindSite(const LoadedPlan& plan, uint64_t return_address) {
  const size_t mask = plan.sites.size() - 1;
  for (size_t at = (return_address >> 2) & mask;; at = (at + 1) & mask) {
    const SiteRule& site = plan.sites[at];
    if (site.return_address == return_address) return &site;
    if (site.return_address == 0) return nullptr;
  }
}

// The next one of the same return address; nullptr: there is none.
inline const SiteRule* NextSite(const LoadedPlan& plan, const SiteRule& site) {
  const size_t mask = plan.sites.size() - 1;
  for (size_t at = static_cast<size_t>(&site - plan.sites.data() + 1) & mask;;
       at = (at + 1) & mask) {
    const SiteRule& next = plan.sites[at];
    if (next.return_address == 0 || &next == &site) return nullptr;
    if (next.return_address == site.return_address) return &next;
  }
}

}  // namespace culprit::guard::runtime
