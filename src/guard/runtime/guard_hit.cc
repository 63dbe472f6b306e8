// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/guard_hit.h"

#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/rare_hit.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/vector_state.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {
namespace {

// Where reading the counter is dear it is read at some hits only.
#if defined(__aarch64__)
constexpr uint64_t kClockMask = 0;
#else
constexpr uint64_t kClockMask = 7;
#endif

__attribute__((noinline, cold)) void TakeRareHit(const ContextRule* rule, uint64_t sp,
                                                 uint64_t return_address,
                                                 const GuardRecord& guard) {
  RareHit hit = {&guard, rule, sp, return_address};
  CallSavingVectors(HandleRareHit, &hit);
}

}  // namespace

void GuardHit(void* slot_pointer, uint64_t sp, uint64_t return_address, const void* record) {
  auto& slot = *static_cast<wire::UnitSlot*>(slot_pointer);
  const auto& guard = *static_cast<const GuardRecord*>(record);
  const auto depth = static_cast<int32_t>(slot.base_sp - (sp & ~uint64_t{15}));
  const uint64_t hits = ++slot.hits;
  const ContextRule* rule = guard.rules;
  for (const ContextRule* end = rule + guard.count;; ++rule) {
    if (rule == end) {
      if (__builtin_expect(hits % kChargeHits == 0, 0)) {
        TakeRareHit(nullptr, sp, return_address, guard);
      }
      return;
    }
    if (rule->depth == depth &&
        (rule->return_address == 0 || rule->return_address == return_address)) {
      break;
    }
  }
  if (__builtin_expect(rule->flags == 0, 1)) {
    slot.contexts[rule->bit / 64] |= uint64_t{1} << rule->bit % 64;
    if (__builtin_expect((hits & kClockMask) != 0 || ReadTicks() <= slot.deadline_ticks, 1) &&
        __builtin_expect(hits % kChargeHits != 0, 1)) {
      return;
    }
  }
  TakeRareHit(rule, sp, return_address, guard);
}

}  // namespace culprit::guard::runtime
