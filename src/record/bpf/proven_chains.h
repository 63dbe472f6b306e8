// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// Frame pointers, where they were found to be right. Many programs keep them, in all
// functions but leaves, and to follow them costs a fifth of what tables cost and
// touches nothing but the stack. But a function that uses the register for something
// else, or has no frame, cannot be told from its words on the stack.
//
// So the leaf's caller is found by its table, further callers by frame pointers, and the
// first time that this gives some list of callers the stack is walked by tables as well.
// If both agree, the list is remembered as proven: whether the register holds the frame
// pointer is the same whenever a function returns to the same place, just as the rows of
// a table are, so the same list is right again, for every thread and below every leaf.
//
// Lists that do not agree are walked by tables each time; processes of which that is
// so again and again are asked only now and then.
#ifndef CULPRIT_RECORD_BPF_PROVEN_CHAINS_H_
#define CULPRIT_RECORD_BPF_PROVEN_CHAINS_H_

#include "maps.h"
#include "remembered.h"
#include "unwind.h"

const volatile uint32_t prove_chains = 1;  // else frame pointers are never relied on
const volatile uint32_t chain_mask = 0;    // entries of a CPU and desk, less one

enum {
  kChainFailures = 16,     // in a row; then most stacks of the process are not tried
  kChainTrialsAgain = 64,  // one of so many is
};

struct ProvenChain {
  uint64_t key;   // of the callers; 0: nothing is remembered here
  uint64_t told;  // the last stack with these callers that the recorder has heard of
  uint64_t guesses;
  uint64_t pad;
};

// By desk, CPU and callers. How many is set by the recorder.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct ProvenChain);
} proven_chains SEC(".maps");

// A stack as the leaf's table and frame pointers have it.
struct Chain {
  uint64_t id;
  uint64_t key;  // of its callers; 0: there is no such stack
  uint32_t count;
  uint32_t desk;
};

// Of a walk by tables.
struct WalkEnd {
  uint32_t by_rule;  // a table says that the last frame has no caller
  uint32_t guesses;
};

static __always_inline struct ProvenChain *chain_at(uint64_t key, uint32_t desk) {
  const uint32_t index = (desk * remembered_cpus + bpf_get_smp_processor_id()) * (chain_mask + 1) +
                         ((uint32_t)(key >> 40) & chain_mask);
  return bpf_map_lookup_elem(&proven_chains, &index);
}

static __always_inline bool is_worth_a_trial(struct UnwindProcess *process) {
  const uint32_t failures = process->chain_failures;
  if (failures < kChainFailures) return true;
  process->chain_failures = failures + 1;
  return failures % kChainTrialsAgain == 0;
}

// From the leaf's caller on, which is where `state` is.
__noinline int follow_frame_pointers(struct StackRecord *stack, struct UnwindState *state,
                                     struct Chain *chain) {
  if (!stack || !state || !chain) return 0;
  uint64_t address = state->program_counter;
  uint64_t frame = state->frame_pointer;
  uint64_t lowest = state->stack_pointer;
  uint64_t id = chain->id;
  uint64_t key = chain->key;
  uint32_t count = 1;
  for (uint32_t i = 1; i < kMaxStackFrames; ++i) {
    uint64_t saved[2] = {};
    stack->addresses[i] = address;
    id = add_frame(id, address);
    key = add_frame(key, address);
    count = i + 1;
    if ((frame & 7) || frame < lowest || !read_user(saved, sizeof(saved), frame)) break;
    address = without_signature(saved[1]);
    if (!address) break;
    lowest = frame + sizeof(saved);
    frame = saved[0];
  }
  chain->id = id ? id : 1;
  chain->key = key ? key : 1;
  chain->count = count;
  return 1;
}

// The current thread's stack by frame pointers; false: it has none.
__noinline int find_chain(struct StackRecord *stack, struct Chain *chain) {
  struct task_struct *task = bpf_get_current_task_btf();
  const uint32_t tgid = task->tgid;
  if (!stack || !chain) return 0;
  struct UnwindProcess *process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  if (!process || !process->count || !is_worth_a_trial(process)) return 0;
  struct UnwindState state = {
      .tgid = tgid, .desk = chain->desk, .exact = 1, .trusted = 1, .has_stack_pointer = 1};
  const struct UserRegisters registers = user_registers(task);
  begin_walk(&state, process, &registers);
  stack->addresses[0] = registers.program_counter;
  if (!step_to_caller(&state, 0) || !state.trusted || state.exact) return 0;
  const uint64_t seed = user_seed(task);
  chain->id = add_frame(first_hash(seed), registers.program_counter);
  chain->key = first_hash(mix(seed, state.version));
  return follow_frame_pointers(stack, &state, chain);
}

// Both kinds of walk are over: `id` is what tables say.
static __always_inline void judge_chain(const struct Chain *chain, uint64_t id, bool told,
                                        const struct WalkEnd *end) {
  const uint32_t tgid = bpf_get_current_task_btf()->tgid;
  struct UnwindProcess *process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  if (!chain->key || !process) return;
  if (chain->id != id) {
    process->chain_failures += 1;
    return;
  }
  if (process->chain_failures) process->chain_failures = 0;
  // What ended for another reason may be longer the next time.
  if (!end->by_rule) return;
  struct ProvenChain *proven = chain_at(chain->key, chain->desk);
  if (!proven) return;
  proven->key = chain->key;
  proven->told = told ? id : 0;
  proven->guesses = end->guesses;
}

#endif  // CULPRIT_RECORD_BPF_PROVEN_CHAINS_H_
