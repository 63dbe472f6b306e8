// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// Kernel stacks by frame pointers, where the kernel keeps them (arm64): to follow them
// costs two loads a frame. What the kernel's own walk does beyond that (return addresses
// that tracers have replaced, interrupts) cannot be told from the words on the stack, so,
// as proven_chains.h has it for user stacks: the first time that frame pointers give some
// list of return addresses the kernel walks the stack as well, and if both agree the list
// is proven, and names the same stack from then on. Of a thread that sleeps the kernel
// leaves out functions of the scheduler, the same ones of the same list.
//
// Only for programs that read the kernel's memory without a call, see read_kernel_word.
#ifndef CULPRIT_RECORD_BPF_KERNEL_CHAINS_H_
#define CULPRIT_RECORD_BPF_KERNEL_CHAINS_H_

#include "architecture.h"
#include "maps.h"
#include "proven_chains.h"
#include "remembered_kernel.h"

enum {
  kStartWords = 64,  // above what a tracepoint hands over, the first frame begins
  kStartFrames = 6,  // of the tracer, at most
  kSleeperSeed = 1,  // of the hash of a list
  kWakerSeed = 2,    // the same in a soft interrupt: 3, in a hard one: 4
};

struct KernelChain {
  uint64_t key;  // of the return addresses and the epoch; 0: nothing is remembered here
  uint64_t id;
};

// By desk, CPU and key. How many is set by the recorder.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct KernelChain);
} kernel_chains SEC(".maps");

// Where the first frame stands that is not the tracer's: the same for all stacks that one
// program meets.
struct KernelStart {
  uint32_t words;   // above what the tracepoint hands over; 0: not known
  uint32_t frames;  // of the tracer, which stand below
  uint32_t searches;
  uint32_t least;
  uint64_t above;  // what was handed over, last
};

// By slot.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, kScratchSlots);
  __type(key, uint32_t);
  __type(value, struct KernelStart);
} kernel_starts SEC(".maps");

static __always_inline bool has_kernel_chains(bool direct) {
  return kKernelKeepsFramePointers && direct && remember_stacks && prove_chains;
}

static __always_inline struct KernelChain *kernel_chain_at(uint64_t key, uint32_t desk) {
  const uint32_t index = (desk * remembered_cpus + bpf_get_smp_processor_id()) * kKernelChains +
                         ((uint32_t)(key >> 40) & (kKernelChains - 1));
  return bpf_map_lookup_elem(&kernel_chains, &index);
}

// A hash of the return addresses from a frame on; 0: they do not end as they should.
static __always_inline uint64_t follow_kernel_frames(uint64_t frame, uint64_t hash) {
  for (uint32_t i = 0; i < kKernelFrames; ++i) {
    if ((frame & 7) || !is_kernel_address(frame)) return 0;
    const struct pt_regs *words =
        bpf_rdonly_cast((const void *)frame, bpf_core_type_id_kernel(struct pt_regs));
    const uint64_t address = second_word(words);
    frame = first_word(words);
    if (!frame && !address) return hash | 1;
    hash = add_frame(hash, kernel_address(address));
  }
  return 0;
}

__noinline uint64_t key_of_sleeper(uint64_t frame, uint64_t program_counter) {
  return follow_kernel_frames(frame, add_frame(first_hash(kSleeperSeed), program_counter));
}

__noinline uint64_t key_of_waker(uint64_t frame, uint64_t seed) {
  return follow_kernel_frames(frame, first_hash(seed));
}

static __always_inline uint64_t id_of_kernel_chain(uint64_t addresses, uint32_t desk) {
  const uint64_t key = addresses ^ epoch_seed();
  const struct KernelChain *chain = kernel_chain_at(key, desk);
  if (!addresses || !chain || chain->key != key) return 0;
  count_recalled_stack();
  return chain->id;
}

static __always_inline void prove_kernel_chain(uint64_t addresses, uint32_t desk, uint64_t id) {
  const uint64_t key = addresses ^ epoch_seed();
  struct KernelChain *chain = kernel_chain_at(key, desk);
  if (!addresses || !chain) return;
  chain->key = key;
  chain->id = id;
}

// 1: all frames that the kernel's walk has found of a thread that sleeps are in the list,
// in this order. How many were found so far is kept in memory, where the verifier does not
// follow it.
__noinline int is_stack_of_sleeper(struct StackRecord *stack, uint32_t count, uint64_t frame,
                                   uint64_t program_counter) {
  if (!stack) return 0;
  uint64_t address = program_counter;
  stack->count = 0;
  for (uint32_t i = 0; i < kKernelFrames; ++i) {
    const uint32_t found = stack->count;
    if (found < kMaxStackFrames && stack->addresses[found] == address) stack->count = found + 1;
    if (stack->count == count) return 1;
    if ((frame & 7) || !is_kernel_address(frame)) return 0;
    const struct pt_regs *words =
        bpf_rdonly_cast((const void *)frame, bpf_core_type_id_kernel(struct pt_regs));
    address = kernel_address(second_word(words));
    frame = first_word(words);
  }
  return 0;
}

// Ever more rarely where it cannot be found.
static __always_inline bool is_worth_a_search(struct KernelStart *start) {
  const uint32_t searches = start->searches;
  start->searches = searches + 1;
  return (searches & (searches - 1)) == 0;
}

// 1: the list is the kernel's, from where it starts at least up to frame start->least. Frame
// pointers end where an interrupt came in, or go on into what it interrupted: a stack that
// is cut there is the same for the same list. Behind the kernel's last frame stands a 0.
// Bounds are read again and again so that the verifier does not follow them.
__noinline int is_stack_of_waker(struct StackRecord *stack, struct KernelStart *start,
                                 uint64_t seed, uint64_t key) {
  if (!stack || !start) return 0;
  uint64_t hash = first_hash(seed);
  for (uint32_t i = 0; i < kMaxStackFrames; ++i) {
    if (i < *(volatile uint32_t *)&start->frames) continue;
    if (!stack->addresses[i]) break;
    hash = add_frame(hash, stack->addresses[i]);
    if ((hash | 1) == key && i + 1 >= *(volatile uint32_t *)&start->least) return 1;
  }
  return 0;
}

// Looks for the first frame above what the tracepoint hands over. 1: it is known now.
__noinline int find_kernel_start(struct KernelStart *start, struct StackRecord *stack,
                                 uint64_t above, uint32_t count) {
  if (!start || !stack) return 0;
  for (uint32_t i = 0; i < kStartWords * kStartFrames; ++i) {
    const uint32_t frames = 1 + i / kStartWords;
    const uint32_t words = i % kStartWords;
    if (frames >= count) break;
    const uint64_t address = stack->addresses[frames];
    if (!words || read_kernel_word(above + words * 8ull + 8, true) != address) continue;
    if (key_of_waker(above + words * 8ull, kWakerSeed) !=
        (hash_of_frames(stack, frames, count, kWakerSeed) | 1)) {
      continue;
    }
    start->words = words;
    start->frames = frames;
    return 1;
  }
  return 0;
}

#endif  // CULPRIT_RECORD_BPF_KERNEL_CHAINS_H_
