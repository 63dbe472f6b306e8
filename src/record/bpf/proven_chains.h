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
// That a list is proven is known to all CPUs and all processes with the same code in the same
// places (proven_lists); which stacks were found with it, to each CPU (proven_chains).
//
// Lists that do not agree are walked by tables each time; processes of which that is
// so again and again are asked only now and then.
//
// Most waits and wake-ups come from a list that is proven, below a leaf whose stack was
// told of: proven_stack finds these, and does nothing else, so that the code and the
// memory that it takes are few lines of the caches that the recorded programs need.
#ifndef CULPRIT_RECORD_BPF_PROVEN_CHAINS_H_
#define CULPRIT_RECORD_BPF_PROVEN_CHAINS_H_

#include "maps.h"
#include "remembered.h"
#include "stack_window.h"
#include "unwind.h"

const volatile uint32_t prove_chains = 1;  // else frame pointers are never relied on
const volatile uint32_t chain_mask = 0;    // entries of a CPU and desk, less one

enum {
  kChainFailures = 16,     // in a row; then most stacks of the process are not tried
  kChainTrialsAgain = 64,  // one of so many is
  kKnownProcesses = 256,   // of a CPU and desk
  kKnownForNs = 10 * 1000 * 1000,
};

struct ProvenChain {
  uint64_t key;   // of the callers; 0: nothing is remembered here
  uint64_t told;  // the last stack with these callers that the recorder has heard of
  uint64_t told_before;
  uint64_t guesses;
};

// By callers. Two CPUs may write an entry at once: who reads it finds a key that was
// proven, or that of nobody.
struct ProvenList {
  uint64_t key;
  uint64_t guesses;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, kProvenLists);
  __type(key, uint32_t);
  __type(value, struct ProvenList);
} proven_lists SEC(".maps");

// What unwind_processes said a moment ago.
struct KnownProcess {
  uint64_t seed;      // user_seed
  uint64_t until_ns;  // then it is to be asked again
  uint32_t version;   // 0: its stacks are not tried
  uint32_t pad;
};
struct KnownProcesses {
  struct KnownProcess of[kKnownProcesses];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, kRuleDesks);
  __type(key, uint32_t);
  __type(value, struct KnownProcesses);
} known_processes SEC(".maps");

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
  uint64_t list;  // of its callers; 0: there is no such stack
  uint64_t key;   // the same, of this process
  uint64_t leaf;
  uint32_t count;
  uint32_t desk;
  uint32_t apart;  // the leaf is not part of the stack
  uint32_t slot;
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

// `callers`: a hash of the return addresses.
static __always_inline uint64_t list_key(uint64_t callers, uint32_t version) {
  return mix(callers, version) | 1;
}
static __always_inline uint64_t chain_key(uint64_t list, uint64_t seed) {
  return mix(list, seed) | 1;
}

static __always_inline struct ProvenList *list_at(uint64_t key) {
  const uint32_t index = (uint32_t)(key >> 40) & (kProvenLists - 1);
  return bpf_map_lookup_elem(&proven_lists, &index);
}

// The entry of a chain whose list is proven; 0: it is not.
static __always_inline struct ProvenChain *proven_chain(const struct Chain *chain) {
  struct ProvenChain *proven = chain_at(chain->key, chain->desk);
  if (!proven || proven->key == chain->key) return proven;
  const struct ProvenList *list = list_at(chain->list);
  if (!list || list->key != chain->list) return 0;
  proven->key = chain->key;
  proven->told = proven->told_before = 0;
  proven->guesses = list->guesses;
  return proven;
}

// The current thread's stack by frame pointers; false: it has none.
__noinline int find_chain(struct StackRecord *stack, struct Chain *chain) {
  struct task_struct *task = bpf_get_current_task_btf();
  const uint32_t tgid = task->tgid;
  if (!stack || !chain) return 0;
  struct UnwindProcess *process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  if (!process || !process->count || !is_worth_a_trial(process)) return 0;
  const struct UserRegisters registers = user_registers(task);
  struct UnwindState *state = begin_walk(chain->slot, tgid, process, &registers);
  if (!state) return 0;
  const uint64_t first = chain->apart ? 0 : registers.program_counter;
  stack->addresses[0] = first;
  if (!step_to_caller(state, 0) || !state->trusted || state->exact) return 0;
  const struct FrameLink leaf = {.address = state->program_counter,
                                 .frame = state->frame_pointer,
                                 .lowest = state->stack_pointer};
  const uint32_t desk = chain->desk;
  struct StackWindow *window = new_window(desk);
  if (!window) return 0;
  const uint64_t seed = user_seed(task);
  uint32_t callers = 0;
  const uint64_t hash = follow_frame_pointers(stack, window, &leaf, first_hash(0), &callers);
  chain->id = end_hash(hash, seed, first);
  chain->leaf = registers.program_counter;
  chain->list = list_key(hash, state->version);
  chain->key = chain_key(chain->list, seed);
  chain->count = callers + 1;
  return 1;
}

// ---- what is met most often -------------------------------------------------

__noinline uint32_t ask_version(uint32_t tgid) {
  const struct UnwindProcess *process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  if (!process || !process->count || process->chain_failures >= kChainFailures) return 0;
  return process->version;
}

static __always_inline uint32_t known_version(uint32_t tgid, uint64_t seed, uint32_t desk,
                                              uint64_t now) {
  struct KnownProcesses *known = bpf_map_lookup_elem(&known_processes, &desk);
  if (!known) return 0;
  struct KnownProcess *process = &known->of[tgid % kKnownProcesses];
  if (process->seed == seed && now < process->until_ns) return process->version;
  process->seed = seed;
  process->until_ns = now + kKnownForNs;
  process->version = ask_version(tgid);
  return process->version;
}

// The leaf's caller by a rule that is remembered and plain; false: it is not.
static __always_inline bool plain_caller(const struct UserRegisters *leaf, uint32_t version,
                                         uint32_t desk, struct StackWindow *window,
                                         struct FrameLink *caller) {
  const struct RememberedRule *memory = remembered_rule_at(leaf->program_counter, version, desk);
  if (!memory || memory->address != leaf->program_counter || memory->version != version) {
    return false;
  }
  const struct UnwindRule *rule = &memory->rule;
  if (rule->cfa != kCfaStack && rule->cfa != kCfaFrame) return false;
  const uint64_t cfa = (rule->cfa == kCfaStack ? leaf->stack_pointer : leaf->frame_pointer) +
                       (int64_t)rule->cfa_offset;
  uint64_t saved[2] = {leaf->frame_pointer, leaf->link_register};
  if (rule->return_place == kPlaceCfa) {
    if (rule->frame_place == kPlaceCfa && rule->return_offset == rule->frame_offset + 8) {
      if (!read_pair(window, cfa + (int64_t)rule->frame_offset, saved)) return false;
    } else if (rule->frame_place == kPlaceSame) {
      if (!read_pair(window, cfa + (int64_t)rule->return_offset - 8, saved)) return false;
      saved[0] = leaf->frame_pointer;
    } else {
      return false;
    }
  } else if (rule->return_place != kPlaceSame || rule->frame_place != kPlaceSame) {
    return false;
  }
  caller->address = without_signature(saved[1]);
  caller->frame = saved[0];
  caller->lowest = cfa;
  return caller->address && cfa >= leaf->stack_pointer;
}

// The current thread's stack, if its callers are proven and the recorder has heard of it;
// 0: it has to be found in another way.
__noinline uint64_t proven_stack(uint32_t desk, uint64_t now) {
  struct task_struct *task = bpf_get_current_task_btf();
  const uint64_t seed = user_seed(task);
  const uint32_t version = known_version(task->tgid, seed, desk, now);
  struct FrameLink caller = {};
  uint32_t callers = 0;
  if (!version) return 0;
  const struct UserRegisters leaf = user_registers(task);
  struct StackWindow *window = new_window(desk);
  if (!window || !plain_caller(&leaf, version, desk, window, &caller)) return 0;
  const uint64_t hash = follow_frame_pointers(0, window, &caller, first_hash(0), &callers);
  const uint64_t key = chain_key(list_key(hash, version), seed);
  const uint64_t id = end_hash(hash, seed, leaf.program_counter);
  const struct ProvenChain *proven = chain_at(key, desk);
  if (!proven || proven->key != key) return 0;
  if (proven->told != id && proven->told_before != id) return 0;
  struct Counters *counters = cpu_counters();
  if (counters) {
    counters->chains += 1;
    counters->chain_frames += callers + 1;
    if (proven->guesses) counters->chain_guesses += proven->guesses;
  }
  return id;
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
  struct ProvenList *list = list_at(chain->list);
  if (!list) return;
  list->key = 0;
  list->guesses = end->guesses;
  list->key = chain->list;
  struct ProvenChain *proven = chain_at(chain->key, chain->desk);
  if (!proven) return;
  proven->key = chain->key;
  proven->told = told ? id : 0;
  proven->told_before = 0;
  proven->guesses = end->guesses;
}

#endif  // CULPRIT_RECORD_BPF_PROVEN_CHAINS_H_
