// SPDX-License-Identifier: Apache-2.0
//
// What happens at a patched function entry. The trampoline of an entry does the
// hook's part, then the displaced instructions, then jumps back behind them. All
// registers and flags that the program can see are as before, the stack below
// the entry's stack pointer excepted (dead at a function entry by both ABIs).
//
// The functions called by kTraining and kGuard run between two instructions of
// the program. They must be compiled without floating point and SIMD
// (-mgeneral-regs-only), because the trampoline saves general registers only;
// a slow path that needs more (anything of the C library) is called through
// CallSavingVectors of vector_state.h. On arm64 they must besides preserve x8-x15
// and x18 themselves (guard_entry_flags of cmake/guard.cmake); they mostly use
// none of them, and the trampoline saves x0-x7, x29, x30 and the flags alone.
//
// "sp" is the stack pointer as the caller's call instruction left it: on arm64
// sp at the first instruction, on x86-64 rsp at the first instruction (it points
// to the return address), also where a leading landing pad or push was kept in
// place and the patch stands behind it.
#pragma once

#include <cstdint>

namespace culprit::guard::runtime {

// return_address has no pointer authentication bits.
using TrainingFunction = void (*)(uint64_t id, uint64_t sp, uint64_t return_address);
using GuardFunction = void (*)(void* slot, uint64_t sp, uint64_t return_address,
                               const void* record);
// What the record says of the context is in `cut` already (InlineContext::cut): where units are
// far apart, each word that need not be loaded is a line of the cache. `thread`: the thread's
// other word in TLS (SlotLayout::thread_offset).
using CutFunction = void (*)(void* slot, uint64_t sp, uint64_t return_address, const void* record,
                             uint64_t cut, void* thread);

enum class HookKind : uint32_t {
  kTraining,    // TrainingFunction(id, sp, return address) at every entry
  kGuard,       // slot = the thread's pointer in TLS; null: nothing (but see Hook::outside); else
                // GuardFunction, which counts the hit
  kOneContext,  // the same test inline: slot->base_sp - (sp & ~15) == depth sets `bit` in
                // slot->contexts (wire::UnitSlot); no call
  kDetour,      // `function` runs instead; *original calls the displaced function
  kNothing,     // the way through the trampoline alone: the place of a hook that may come
};

// A context that sets a bit and does no more, or one that cuts units.
struct InlineContext {
  int32_t depth = 0;
  uint32_t bit = 0;
  uint64_t return_address = 0;  // 0: any
  uint64_t cut = 0;             // not 0: given to Hook::cut, which does all
};
inline constexpr uint32_t kMaxInlineContexts = 12;
// Of the hits that are counted one in so many calls the function, which then reads the clock.
inline constexpr uint32_t kHitsToACall = 16;

struct Hook {
  HookKind kind = HookKind::kNothing;
  uint64_t function = 0;         // address of a TrainingFunction, GuardFunction or replacement
  uint64_t argument = 0;         // id, or address of the record
  int32_t depth = 0;             // kOneContext
  uint32_t bit = 0;              // kOneContext
  uint64_t* original = nullptr;  // kDetour: receives the address of the callable original
  // kGuard: all contexts of the function, if they are so simple that the trampoline
  // may look for them itself. The first hit of one in a unit only sets its bit; the others it
  // counts, but for each of kHitsToACall at which it calls the function, which counts it.
  const InlineContext* contexts = nullptr;
  uint32_t context_count = 0;
  uint64_t cut = 0;      // address of a CutFunction
  bool outside = false;  // kGuard: the function is called without a slot, too
};

}  // namespace culprit::guard::runtime
