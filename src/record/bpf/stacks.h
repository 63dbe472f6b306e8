// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// Stacks as 64-bit hashes. A stack is captured into a scratch area of the CPU,
// hashed, and told to the recorder once by a StackRecord; the set of those told
// is bounded, what falls out of it is told again. 0 is no stack.
//
// capture_user_stack is the one place that knows how user frames are found: by
// frame pointers that are known to be right (proven_chains.h), by unwind tables
// (unwind.h) or, of processes not known yet, by frame pointers, as the kernel does it.
#ifndef CULPRIT_RECORD_BPF_STACKS_H_
#define CULPRIT_RECORD_BPF_STACKS_H_

#include "kernel_chains.h"
#include "maps.h"
#include "remembered_kernel.h"
#include "user_walk.h"

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 2 * kScratchSlots);  // the second half is for comparing
  __type(key, uint32_t);
  __type(value, struct StackRecord);
} scratch SEC(".maps");

// The last two that fall on the same entry. CPUs that write one at once may forget what was
// told, which is then told again.
struct ToldStacks {
  uint64_t id[2];
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, kToldStacks);
  __type(key, uint32_t);
  __type(value, struct ToldStacks);
} told_stacks SEC(".maps");

const volatile struct AddressRange irq_ranges[kMaxIrqRanges] = {};
const volatile uint32_t irq_range_count = 0;

// An interrupt's stack goes on into the code it interrupted, which has nothing
// to do with it: the number of frames up to where the interrupt came in.
__noinline uint32_t frames_of_interrupt(struct StackRecord *stack, uint32_t count) {
  if (!stack) return 0;
  for (uint32_t i = 0; i < kMaxStackFrames; ++i) {
    if (i >= count) break;
    const uint64_t address = stack->addresses[i];
    for (uint32_t k = 0; k < kMaxIrqRanges; ++k) {
      if (k >= irq_range_count) break;
      if (address - irq_ranges[k].start < irq_ranges[k].end - irq_ranges[k].start) return i + 1;
    }
  }
  return count;
}

// Tells the recorder of a stack, unless it has heard of it; true: it has now.
static __noinline bool tell_stack(struct StackRecord *stack, uint32_t count, uint64_t id,
                                  uint32_t tgid) {
  if (!stack) return false;
  if (count > kMaxStackFrames) count = kMaxStackFrames;
  const uint32_t place = (uint32_t)(id >> 40) & (kToldStacks - 1);
  struct ToldStacks *told = bpf_map_lookup_elem(&told_stacks, &place);
  if (!told) return false;
  if (told->id[0] == id || told->id[1] == id) return true;
  fill_head(&stack->head, kStackRecord, clock_ns(), (uint32_t)bpf_get_current_pid_tgid());
  stack->id = id;
  stack->tgid = tgid;
  stack->count = count;
  uint64_t bytes = sizeof(struct StackRecord) - (kMaxStackFrames - count) * sizeof(uint64_t);
  // The verifier must see the bound.
  asm volatile("%0 &= 0x7ff" : "+r"(bytes));
  if (bytes > sizeof(struct StackRecord)) bytes = sizeof(struct StackRecord);
  // Only what was really told counts as told.
  if (!put(stack, bytes)) return false;
  told->id[1] = told->id[0];
  told->id[0] = id;
  count_new_stack();
  return true;
}

// `told`: the recorder has surely heard of it.
static __noinline uint64_t name_stack(struct StackRecord *stack, uint32_t count, uint64_t seed,
                                      uint32_t tgid, bool *told) {
  if (!stack) return 0;
  if (count > kMaxStackFrames) count = kMaxStackFrames;
  const uint64_t id = end_hash(hash_of_frames(stack, 1, count, 0), seed, stack->addresses[0]);
  count_stack();
  *told = tell_stack(stack, count, id, tgid);
  return id;
}

static __always_inline struct StackRecord *scratch_of(uint32_t slot) {
  return bpf_map_lookup_elem(&scratch, &slot);
}

// The kernel's own walk: the number of frames, of the current thread.
static __always_inline uint32_t kernel_frames(void *ctx, struct StackRecord *stack) {
  const long bytes = bpf_get_stack(ctx, stack->addresses, sizeof(stack->addresses), 0);
  if (bytes > 0) return (uint32_t)bytes / sizeof(uint64_t);
  count_failed_stack();
  return 0;
}

// The same of a thread that does not run.
static __always_inline uint32_t kernel_frames_of(struct task_struct *task,
                                                 struct StackRecord *stack) {
  const long bytes = bpf_get_task_stack(task, stack->addresses, sizeof(stack->addresses), 0);
  if (bytes > 0) return (uint32_t)bytes / sizeof(uint64_t);
  count_failed_stack();
  return 0;
}

static __noinline uint64_t capture_kernel_stack(void *ctx, uint32_t slot, bool interrupt) {
  struct StackRecord *stack = scratch_of(slot);
  if (!stack || !policy.kernel_stacks) return 0;
  uint32_t count = kernel_frames(ctx, stack);
  if (!count) return 0;
  if (interrupt) count = frames_of_interrupt(stack, count);
  bool told = false;
  return name_stack(stack, count, epoch_seed(), 0, &told);
}

// Of a thread that does not run.
static __noinline uint64_t capture_kernel_stack_of(struct task_struct *task, uint32_t slot) {
  struct StackRecord *stack = scratch_of(slot);
  if (!stack || !policy.kernel_stacks) return 0;
  const uint32_t count = kernel_frames_of(task, stack);
  bool told = false;
  return count ? name_stack(stack, count, epoch_seed(), 0, &told) : 0;
}

static __always_inline bool is_recalled(struct RememberedKernelStack *memory, uint64_t key,
                                        struct KernelWords *raw, bool direct) {
  if (!memory->id || memory->key != key) return false;
  if (!(direct ? frames_stand_direct(memory, raw) : frames_stand(memory, raw))) return false;
  memory->misses = 0;
  count_recalled_stack();
  return true;
}

// A list that is not proven yet.
static __noinline uint64_t walk_sleeper(struct task_struct *task, uint32_t slot, uint64_t key) {
  struct StackRecord *stack = scratch_of(slot);
  if (!stack) return 0;
  const uint32_t count = kernel_frames_of(task, stack);
  if (!count) return 0;
  bool told = false;
  const uint64_t id = name_stack(stack, count, epoch_seed(), 0, &told);
  if (told && is_stack_of_sleeper(stack, count, kernel_frame_pointer(task),
                                  kernel_address(kernel_program_counter(task)))) {
    prove_kernel_chain(key, kSwitchDesk, id);
  }
  return id;
}

static __always_inline uint64_t kernel_chain_of(struct task_struct *task, uint32_t slot) {
  if (!policy.kernel_stacks) return 0;
  const uint64_t key =
      key_of_sleeper(kernel_frame_pointer(task), kernel_address(kernel_program_counter(task)));
  const uint64_t proven = id_of_kernel_chain(key, kSwitchDesk);
  return proven ? proven : walk_sleeper(task, slot, key);
}

// The same where threads come again and again.
static __always_inline uint64_t recall_kernel_stack_of(struct task_struct *task, uint32_t slot,
                                                       bool direct) {
  if (has_kernel_chains(direct)) return kernel_chain_of(task, slot);
  const uint32_t desk = kSwitchDesk;
  struct StackRecord *stack = scratch_of(slot);
  struct KernelWords *raw = bpf_map_lookup_elem(&kernel_words, &desk);
  if (!stack || !raw || !policy.kernel_stacks) return 0;
  if (!remember_stacks) return capture_kernel_stack_of(task, slot);
  // A pointer that is stored and read again is a number to the verifier.
  *(volatile uint64_t *)&raw->entry = (uint64_t)bpf_task_pt_regs(task);
  *(volatile uint64_t *)&raw->leaf = kernel_stack_pointer(task);
  const struct UserRegisters user = user_registers(task);
  const uint64_t key = kernel_place(task, &user, 0);
  struct RememberedKernelStack *memory = remembered_kernel_at(key, desk);
  if (!memory) return 0;
  if (is_recalled(memory, key, raw, direct)) return memory->id;
  const uint32_t count = kernel_frames_of(task, stack);
  if (!count) return 0;
  bool told = false;
  const uint64_t id = name_stack(stack, count, epoch_seed(), 0, &told);
  if (told && is_worth_remembering(memory)) {
    memory->key = key;
    memory->id = remember_frames(memory, raw, stack, count, 0) ? id : 0;
  }
  return id;
}

static __noinline uint64_t walk_waker(void *ctx, struct KernelStart *start, uint32_t slot,
                                      uint32_t kind, uint64_t key) {
  struct StackRecord *stack = scratch_of(slot);
  if (!stack || !start) return 0;
  uint32_t count = kernel_frames(ctx, stack);
  if (!count) return 0;
  uint64_t end = count;
  // The verifier must see the bound.
  asm volatile("%0 &= 0x7f" : "+r"(end));
  if (end < kMaxStackFrames) stack->addresses[end] = 0;
  if (kind) count = frames_of_interrupt(stack, count);
  bool told = false;
  const uint64_t id = name_stack(stack, count, epoch_seed(), 0, &told);
  if (!told) return id;
  if (start->words) {
    start->least = count;
    if (is_stack_of_waker(stack, start, kWakerSeed + kind, key)) {
      prove_kernel_chain(key, desk_of(slot), id);
    }
  } else if (!kind && is_worth_a_search(start)) {
    find_kernel_start(start, stack, start->above, count);
  }
  return id;
}

// Of a thread that wakes another, or uses a disk; `kind`: 1 in a soft interrupt, 2 in a hard one.
static __always_inline uint64_t kernel_chain(void *ctx, uint32_t slot, uint32_t kind) {
  struct KernelStart *start = bpf_map_lookup_elem(&kernel_starts, &slot);
  if (!start || !policy.kernel_stacks) return 0;
  // A pointer that is stored and read again is a number to the verifier.
  *(volatile uint64_t *)&start->above = (uint64_t)ctx;
  const uint64_t first = *(volatile uint64_t *)&start->above + start->words * 8ull;
  const uint64_t key = start->words ? key_of_waker(first, kWakerSeed + kind) : 0;
  const uint64_t proven = id_of_kernel_chain(key, desk_of(slot));
  return proven ? proven : walk_waker(ctx, start, slot, kind, key);
}

// As capture_kernel_stack, of threads that wake others or use a disk; `soft`: out of network code
// that the thread runs in its own system call, or that an interrupt made it run. The walk begins
// with frames of the tracer. Where these stand nobody can see, but they are always the same, and
// the recorder cuts them off.
static __always_inline uint64_t recall_kernel_stack(void *ctx, uint32_t slot, bool soft,
                                                    bool direct) {
  if (has_kernel_chains(direct)) return kernel_chain(ctx, slot, soft ? 1 : 0);
  const uint32_t desk = desk_of(slot);
  struct task_struct *task = bpf_get_current_task_btf();
  struct StackRecord *stack = scratch_of(slot);
  struct KernelWords *raw = bpf_map_lookup_elem(&kernel_words, &desk);
  if (!stack || !raw || !policy.kernel_stacks) return 0;
  const struct UserRegisters user = user_registers(task);
  const uint64_t key = kernel_place(task, &user, soft ? 2 : 1);
  struct RememberedKernelStack *memory = 0;
  if (remember_stacks && (is_kernel_thread(task) || user.in_syscall)) {
    memory = remembered_kernel_at(key, desk);
  }
  *(volatile uint64_t *)&raw->entry = (uint64_t)bpf_task_pt_regs(task);
  // What a tracepoint hands over stands on the stack, just above the tracer.
  *(volatile uint64_t *)&raw->leaf = (uint64_t)ctx;
  if (memory && is_recalled(memory, key, raw, direct)) return memory->id;
  const uint32_t all = kernel_frames(ctx, stack);
  if (!all) return 0;
  const uint32_t count = soft ? frames_of_interrupt(stack, all) : all;
  bool told = false;
  const uint64_t id = name_stack(stack, count, epoch_seed(), 0, &told);
  if (memory && told && count == all && is_worth_remembering(memory)) {
    memory->key = key;
    memory->id = remember_frames(memory, raw, stack, count, kTracerFrames) ? id : 0;
  }
  return id;
}

static __always_inline uint32_t frames_by_pointers(void *ctx, struct StackRecord *stack) {
  const long bytes =
      bpf_get_stack(ctx, stack->addresses, sizeof(stack->addresses), BPF_F_USER_STACK);
  return bytes <= 0 ? 0 : (uint32_t)bytes / sizeof(uint64_t);
}

static __always_inline uint64_t name_user_stack(struct StackRecord *stack, uint32_t count,
                                                struct task_struct *task, bool *told) {
  if (!count) {
    count_failed_stack();
    return 0;
  }
  return name_stack(stack, count, user_seed(task), task->tgid, told);
}

// The stack of proven frame pointers (proven_chains.h); 0: there is none, and `chain` is
// to be judged.
static __always_inline uint64_t stack_of_chain(struct StackRecord *stack, struct Chain *chain) {
  if (!remember_stacks || !prove_chains || !find_chain(stack, chain)) return 0;
  const uint64_t id = chain->id;
  struct ProvenChain *proven = proven_chain(chain);
  if (!proven) return 0;
  count_stack();
  struct UnwindCounters *counters = count_walk(chain->count, 1, proven->guesses);
  if (counters) counters->proven += 1;
  if (proven->told != id && tell_stack(stack, chain->count, id, bpf_get_current_task_btf()->tgid)) {
    proven->told_before = proven->told;
    proven->told = id;
  }
  return id;
}

// `leaf`: where to put it, instead of into the stack; 0: it is part of the stack.
static __always_inline uint64_t walk_anywhere(void *ctx, uint32_t slot, struct StackRecord *stack,
                                              struct WalkEnd *end, bool *told, uint64_t *leaf) {
  uint32_t count = unwind_tables ? walk_user_stack_anywhere(stack, end, slot) : 0;
  if (!count) {
    count = frames_by_pointers(ctx, stack);
  } else if (unwind_compare) {
    struct StackRecord *other = scratch_of(slot + kScratchSlots);
    if (other) compare_stacks(stack, count, other, frames_by_pointers(ctx, other));
  }
  if (leaf) {
    *leaf = stack->addresses[0];
    stack->addresses[0] = 0;
  }
  return name_user_stack(stack, count, bpf_get_current_task_btf(), told);
}

static __always_inline bool is_walked_by_tables(void) { return unwind_tables && !unwind_compare; }

// Of the current thread, which must not be a kernel thread. `leaf`: as above.
static __noinline uint64_t capture_user_stack(void *ctx, uint32_t slot, uint64_t *leaf) {
  struct StackRecord *stack = scratch_of(slot);
  struct Chain chain = {.desk = desk_of(slot), .slot = slot, .apart = leaf != 0};
  struct WalkEnd end = {};
  bool told = false;
  if (!stack || !policy.user_stacks) return 0;
  uint64_t id = is_walked_by_tables() ? stack_of_chain(stack, &chain) : 0;
  if (id) {
    if (leaf) *leaf = chain.leaf;
    return id;
  }
  id = walk_anywhere(ctx, slot, stack, &end, &told, leaf);
  judge_chain(&chain, id, told, &end);
  return id;
}

// The same by what is remembered of the place where the thread is.
static __always_inline uint64_t recall_place(void *ctx, uint32_t slot, struct StackRecord *stack,
                                             struct WalkEnd *end, bool *told) {
  struct task_struct *task = bpf_get_current_task_btf();
  const uint32_t tgid = task->tgid;
  const struct UnwindProcess *process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  if (!process || !process->count) return walk_anywhere(ctx, slot, stack, end, told, 0);
  const uint32_t version = process->version;
  const struct UserRegisters registers = user_registers(task);
  const uint64_t seed = user_seed(task);
  const uint32_t desk = desk_of(slot);
  bool stands = false;
  struct RememberedStack *memory = find_remembered(&registers, seed, version, desk, &stands);
  if (!memory) return 0;
  uint64_t id = memory->id;
  if (stands) {
    count_stack();
    struct UnwindCounters *counters = count_walk(memory->frames, memory->complete, memory->guesses);
    if (counters) counters->recalled += 1;
    *told = true;
  } else {
    begin_to_remember(memory, &registers, seed, version);
    const uint32_t count = walk_user_stack(stack, memory, slot);
    id = name_user_stack(stack, count, task, told);
    if (*told && memory->count <= kRememberedWords) memory->id = id;
  }
  end->by_rule = memory->by_rule;
  end->guesses = memory->guesses;
  return id;
}

static __noinline uint64_t find_user_stack(void *ctx, uint32_t slot) {
  struct StackRecord *stack = scratch_of(slot);
  struct Chain chain = {.desk = desk_of(slot), .slot = slot};
  struct WalkEnd end = {};
  bool told = false;
  if (!stack) return 0;
  uint64_t id = stack_of_chain(stack, &chain);
  if (id) return id;
  id = recall_place(ctx, slot, stack, &end, &told);
  judge_chain(&chain, id, told, &end);
  return id;
}

// The same where threads come again and again.
static __always_inline uint64_t recall_user_stack(void *ctx, uint32_t slot, uint64_t now) {
  if (!remember_stacks || !is_walked_by_tables()) return capture_user_stack(ctx, slot, 0);
  if (!policy.user_stacks) return 0;
  const uint64_t proven = prove_chains ? proven_stack(desk_of(slot), now) : 0;
  return proven ? proven : find_user_stack(ctx, slot);
}

#endif  // CULPRIT_RECORD_BPF_STACKS_H_
