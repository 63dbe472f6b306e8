// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// User stacks: from the registers with which a thread entered the kernel, frame by
// frame (unwind.h), to the outermost; of a thread that can be anywhere only to a frame
// whose callers are remembered.
#ifndef CULPRIT_RECORD_BPF_USER_WALK_H_
#define CULPRIT_RECORD_BPF_USER_WALK_H_

#include "proven_chains.h"
#include "unwind.h"

static __always_inline struct UnwindCounters *count_walk(uint32_t frames, uint32_t complete,
                                                         uint32_t guesses) {
  const uint32_t zero = 0;
  struct UnwindCounters *counters = bpf_map_lookup_elem(&unwind_counters, &zero);
  if (!counters) return 0;
  counters->walked += 1;
  counters->complete += complete;
  counters->frames += frames;
  counters->guessed += guesses;
  return counters;
}

static __always_inline const struct UnwindProcess *tables_of(uint32_t tgid) {
  const struct UnwindProcess *process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  if (process && process->count) return process;
  COUNT_UNWIND(unlisted, 1);
  ask_about_process(tgid);
  return 0;
}

// The number of frames of the current thread's user stack; 0: nothing is known of
// its process yet. `memory` is of this place and empty.
__noinline int walk_user_stack(struct StackRecord *stack, struct RememberedStack *memory,
                               uint32_t slot) {
  struct task_struct *task = bpf_get_current_task_btf();
  if (!stack || !memory) return 0;
  const struct UnwindProcess *process = tables_of(task->tgid);
  if (!process) return 0;
  const struct UserRegisters registers = user_registers(task);
  struct UnwindState *state = begin_walk(slot, task->tgid, process, &registers);
  if (!state) return 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < kMaxStackFrames; ++i) {
    stack->addresses[i] = state->program_counter;
    count = i + 1;
    if (!step_to_caller(state, memory)) break;
  }
  memory->frames = count;
  memory->guesses = state->guesses;
  memory->complete = state->complete;
  memory->by_rule = state->by_rule;
  count_walk(count, state->complete, state->guesses);
  return count;
}

static __always_inline struct RememberedPart *part_of(const struct UnwindState *state) {
  const uint32_t key = state->part - 1;
  return state->part ? bpf_map_lookup_elem(&remembered_callers, &key) : 0;
}

// 1: the part of the stack from this frame, number `count`, on is remembered; else it is
// from now on.
__noinline int meet_anchor(struct UnwindState *state, uint32_t count) {
  if (!state) return 0;
  struct task_struct *task = bpf_get_current_task_btf();
  const struct UserRegisters anchor = {.program_counter = state->program_counter,
                                       .stack_pointer = state->stack_pointer,
                                       .frame_pointer = state->frame_pointer};
  const uint64_t seed = user_seed(task);
  state->part = part_key(&anchor, seed, state->desk) + 1;
  state->part_first = count;
  struct RememberedPart *part = part_of(state);
  if (!part) return 0;
  if (is_of_place(&part->stack, &anchor, seed, state->version) &&
      !what_differs(&part->stack, &anchor, state->desk)) {
    return 1;
  }
  begin_to_remember(&part->stack, &anchor, seed, state->version);
  // From here on it counts as if it were in the register.
  state->frame_address = 0;
  return 0;
}

// The walk is over, after `count` frames; how many there are with those remembered.
__noinline int use_part(struct StackRecord *stack, struct UnwindState *state, uint32_t count,
                        uint32_t stands) {
  if (!stack || !state) return 0;
  struct RememberedPart *part = part_of(state);
  if (!part) return count;
  if (stands) {
    state->complete = part->stack.complete;
    state->by_rule = part->stack.by_rule;
    return append_part(stack, part, count);
  }
  const uint32_t frames = count - state->part_first;
  if (state->trusted && frames && frames <= kRememberedCallers &&
      part->stack.count <= kRememberedWords) {
    keep_part(part, stack, state->part_first, frames);
    part->stack.complete = state->complete;
    part->stack.by_rule = state->by_rule;
    part->stack.id = 1;
  }
  return count;
}

// The same of a thread that can be anywhere.
__noinline int walk_user_stack_anywhere(struct StackRecord *stack, struct WalkEnd *end,
                                        uint32_t slot) {
  struct task_struct *task = bpf_get_current_task_btf();
  if (!stack || !end) return 0;
  const struct UnwindProcess *process = tables_of(task->tgid);
  if (!process) return 0;
  const struct UserRegisters registers = user_registers(task);
  struct UnwindState *state = begin_walk(slot, task->tgid, process, &registers);
  if (!state) return 0;
  uint32_t count = 0;
  uint32_t stands = 0;
  for (uint32_t i = 0; i < kMaxStackFrames; ++i) {
    stack->addresses[i] = state->program_counter;
    count = i + 1;
    struct RememberedPart *part = part_of(state);
    if (!step_to_caller(state, part ? &part->stack : 0)) break;
    const bool meets = !state->part && remember_stacks && state->trusted && !state->exact &&
                       is_anchor(state->program_counter);
    if (meets && meet_anchor(state, count)) {
      stands = 1;
      break;
    }
  }
  COUNT_UNWIND(joined, stands);
  count = use_part(stack, state, count, stands);
  if (count > kMaxStackFrames) count = kMaxStackFrames;
  end->by_rule = state->by_rule;
  end->guesses = state->guesses;
  count_walk(count, state->complete, state->guesses);
  return count;
}

// ---- comparing --------------------------------------------------------------

static __always_inline void count_comparison(uint32_t tables, uint32_t pointers, uint32_t same,
                                             uint32_t same_but_caller) {
  if (same == tables && same == pointers) {
    COUNT_UNWIND(same, 1);
  } else if (pointers + 1 == tables && same_but_caller == pointers) {
    COUNT_UNWIND(no_caller, 1);
  } else if (same == pointers) {
    COUNT_UNWIND(cut_short, 1);
  } else if (same == tables) {
    COUNT_UNWIND(cut_long, 1);
  } else {
    COUNT_UNWIND(different, 1);
  }
}

__noinline int compare_stacks(struct StackRecord *tables, uint32_t table_count,
                              struct StackRecord *pointers, uint32_t pointer_count) {
  uint32_t same = 0;
  uint32_t same_but_caller = 0;
  bool is_same = true;
  bool is_same_but_caller = true;
  if (!tables || !pointers) return 0;
  for (uint32_t i = 0; i < kMaxStackFrames; ++i) {
    if (i >= pointer_count) break;
    const uint64_t address = pointers->addresses[i];
    if (is_same && i < table_count && address == tables->addresses[i]) {
      same += 1;
    } else {
      is_same = false;
    }
    const uint32_t shifted = i == 0 ? 0 : i + 1;
    if (is_same_but_caller && shifted < table_count && shifted < kMaxStackFrames &&
        address == tables->addresses[shifted]) {
      same_but_caller += 1;
    } else {
      is_same_but_caller = false;
    }
  }
  count_comparison(table_count, pointer_count, same, same_but_caller);
  return 0;
}

#endif  // CULPRIT_RECORD_BPF_USER_WALK_H_
