// SPDX-License-Identifier: Apache-2.0
//
// The quick way through the end of a unit and the begin of the next, for units that
// nothing is to be said of, which is nearly all of them. A part of an iteration (a
// handler, a command, a piece of the tail, or all of it) is quiet if it ends before
// ThreadState::quiet_until_ticks: by then neither it nor its tail nor its iteration
// can have been too slow, and the thread's times need not be read; and if nobody
// wants a sample of it. The counter is read once, for the end and the begin; no
// system call, no division, no lock, and no barrier but for the order of stores.
//
// This is also compiled into what runs at patched entries (hook.h), with general
// registers only: so everything is always inlined (a linker would take any of two
// copies), and words are stored one by one as atomics, which no compiler turns into
// a call of memset. In the unit's own thread; culprit reads the slot beside it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

// What was stored before is seen before what is stored after. A release fence would
// also wait for loads, which on arm64 costs more than all the rest of a unit.
[[gnu::always_inline]] inline void OrderStores() {
#if defined(__aarch64__)
  asm volatile("dmb ishst" : : : "memory");
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

// Keeps culprit from reading a slot that is being changed.
class SlotChange {
 public:
  [[gnu::always_inline]] explicit SlotChange(wire::UnitSlot& slot)
      : slot_(slot), sequence_(slot.sequence.load(std::memory_order_relaxed)) {
    slot_.sequence.store(sequence_ + 1, std::memory_order_relaxed);
    OrderStores();
  }
  [[gnu::always_inline]] ~SlotChange() {
    OrderStores();
    slot_.sequence.store(sequence_ + 2, std::memory_order_relaxed);
  }
  SlotChange(const SlotChange&) = delete;
  SlotChange& operator=(const SlotChange&) = delete;

 private:
  wire::UnitSlot& slot_;
  uint32_t sequence_;
};

[[gnu::always_inline]] inline void ClearWords(uint64_t* words, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) __atomic_store_n(words + i, uint64_t{0}, __ATOMIC_RELAXED);
}
[[gnu::always_inline]] inline void CopyWords(const uint64_t* from, uint64_t* to, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    __atomic_store_n(to + i, __atomic_load_n(from + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  }
}

[[gnu::always_inline]] inline uint64_t Saturated(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

[[gnu::always_inline]] inline bool IsTail(const wire::UnitSlot& slot) {
  return slot.kind == static_cast<uint32_t>(wire::UnitKind::kTail);
}

// The part's times and limits; its contexts are the caller's part. Within a
// SlotChange.
[[gnu::always_inline]] inline void BeginPart(ThreadState& state, wire::UnitSlot& slot,
                                             wire::UnitKind kind, uint64_t now) {
  uint64_t allowed = state.limits.smallest_ticks[static_cast<uint32_t>(kind)];
  if (kind == wire::UnitKind::kTail) {
    allowed = state.tail_allowed_ticks - std::min(state.tail_allowed_ticks, state.tail_ticks);
  }
  const uint64_t deadline = std::min(Saturated(now, allowed), state.iteration_deadline_ticks);
  slot.kind = static_cast<uint32_t>(kind);
  slot.begin_ticks = now;
  slot.deadline_ticks = deadline;
  slot.overdue_ticks = deadline;
  state.quiet_until_ticks = state.odd.loud ? 0 : std::min(deadline, state.refresh_ticks);
}

[[gnu::always_inline]] inline wire::UnitKind KindBegunBy(uint32_t function_flags) {
  return (function_flags & wire::PlanFunction::kCommand) != 0 ? wire::UnitKind::kCommand
                                                              : wire::UnitKind::kHandler;
}

// When the next reading of the thread's times is due, if units go on from now.
[[gnu::always_inline]] inline void SetRefresh(ThreadState& state, uint64_t now) {
  const uint64_t unread = state.unread_ticks + (now - state.unread_from_ticks);
  const uint64_t left = state.read_after_ticks - std::min(unread, state.read_after_ticks);
  state.refresh_ticks = std::min(now + left, state.clocks_until_ticks);
}

[[gnu::always_inline]] inline uint64_t TimesOrMax(uint64_t a, uint32_t n) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, uint64_t{n}, &product) ? UINT64_MAX : product;
}

// The iteration of the thread's loop that begins with so many ready events; all that
// is left of the one before is forgotten already.
[[gnu::always_inline]] inline void BeginIteration(ThreadState& state, uint32_t ready,
                                                  uint64_t now) {
  wire::UnitSlot& slot = *state.slot;
  SetRefresh(state, now);
  state.turned = false;
  state.iteration_deadline_ticks = UINT64_MAX;
  state.tail_ticks = 0;
  wire::UnitKind kind = wire::UnitKind::kIteration;
  if (state.limits.has_handlers) {
    kind = wire::UnitKind::kTail;
    if (state.iteration_allowed_ticks != 0) {
      state.iteration_deadline_ticks =
          Saturated(now, TimesOrMax(state.iteration_allowed_ticks, ready));
    }
    state.tail_allowed_ticks = TimesOrMax(
        state.limits.smallest_ticks[static_cast<uint32_t>(wire::UnitKind::kTail)], ready);
    ClearWords(state.tail_contexts, state.context_words);
  }
  const SlotChange change(slot);
  slot.ready = ready;
  slot.done = 0;
  slot.iteration_ticks = now;
  ClearWords(slot.contexts, state.context_words);
  BeginPart(state, slot, kind, now);
  state.owner->unit = &slot;
}

// The iteration that ends, quietly. False: nothing was changed.
[[gnu::always_inline]] inline bool EndQuietly(ThreadState& state, uint64_t now) {
  wire::UnitSlot& slot = *state.slot;
  if (now >= state.quiet_until_ticks || state.until_sample <= 2) return false;
  // The tail, and the handler behind it.
  const uint64_t ended = state.limits.has_handlers && !IsTail(slot) ? 2 : 1;
  slot.units += ended;
  state.until_sample -= ended;
  state.unread_ticks += now - state.unread_from_ticks;
  state.unread_from_ticks = now;
  return true;
}

// The same at a wait: after a turn it only shows that there was no work.
[[gnu::always_inline]] inline bool WaitQuietly(ThreadState& state, uint64_t now) {
  wire::UnitSlot& slot = *state.slot;
  if (state.turned) {
    if (now >= state.quiet_until_ticks) return false;
    state.unread_ticks += now - state.unread_from_ticks;
    state.unread_from_ticks = now;
  } else if (!EndQuietly(state, now)) {
    return false;
  }
  state.quiet_until_ticks = 0;
  state.owner->unit = nullptr;
  __atomic_store_n(&slot.begin_ticks, uint64_t{0}, __ATOMIC_RELAXED);
  return true;
}

// The loop turns without a wait: what was is a whole iteration, and so is what follows.
// False: the long way is due, and nothing was changed.
[[gnu::always_inline]] inline bool TurnQuietly(ThreadState& state, uint64_t now) {
  if (state.odd.Any() || !EndQuietly(state, now)) return false;
  BeginIteration(state, 1, now);
  state.turned = true;
  return true;
}

// Entering the context ends one iteration of the loop and begins the next.
[[gnu::always_inline]] inline bool IsTurn(const LoopLimits& limits, uint32_t context_flags) {
  return limits.has_turns && (context_flags & wire::PlanContext::kTurn) != 0;
}
// Entering it cuts iterations.
inline constexpr uint32_t kCuts = wire::PlanContext::kBoundary | wire::PlanContext::kTail;

// The handler or tail that a boundary ends, quietly, and the next, of that kind, begun. False: the
// long way (CrossBoundary) is due, and nothing was changed.
[[gnu::always_inline]] inline bool CutQuietly(ThreadState& state, uint32_t context_flags,
                                              wire::UnitKind begun, uint64_t now) {
  wire::UnitSlot& slot = *state.slot;
  if ((context_flags & kCuts) == 0) return true;
  if (now >= state.quiet_until_ticks || state.until_sample <= 1) return false;
  const bool to_tail = (context_flags & wire::PlanContext::kTail) != 0;
  if (!state.limits.has_handlers || (to_tail && (IsTail(slot) || slot.done == 0))) return true;
  if (IsTail(slot)) {
    state.tail_ticks += now - slot.begin_ticks;
    CopyWords(slot.contexts, state.tail_contexts, state.context_words);
  } else {
    ++slot.units;
    --state.until_sample;
  }
  const SlotChange change(slot);
  if (to_tail) {
    CopyWords(state.tail_contexts, slot.contexts, state.context_words);
    BeginPart(state, slot, wire::UnitKind::kTail, now);
    return true;
  }
  ++slot.done;
  ClearWords(slot.contexts, state.context_words);
  BeginPart(state, slot, begun, now);
  return true;
}

}  // namespace culprit::guard::runtime
