// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// Kernel stacks that were walked before, as remembered.h has it for user stacks.
// How the kernel walks its own stack these programs cannot see, so what is
// remembered is where each return address stood: so far from the leaf, and so far
// from where the thread entered the kernel. A stack on which all of them stand there
// again is the same one: frames have the size that their function gives them. Both
// distances are needed because kernels put a gap of random size between two frames
// of every system call (randomize_kstack_offset): frames on either side of it keep
// one of the two.
//
// Only threads in a system call, and kernel threads, not interrupts.
#ifndef CULPRIT_RECORD_BPF_REMEMBERED_KERNEL_H_
#define CULPRIT_RECORD_BPF_REMEMBERED_KERNEL_H_

#include "architecture.h"
#include "maps.h"

enum {
  kKernelWords = 512,  // of a stack that can be remembered
  kKernelFrames = 64,
};

struct KernelWords {
  uint64_t count;
  uint64_t entry;  // the address behind the last word
  uint64_t leaf;   // the address of the first
  uint64_t words[kKernelWords];
};

struct RememberedKernelStack {
  uint64_t key;
  uint64_t id;  // 0: nothing is remembered here
  uint32_t frames;
  uint32_t wanted;  // of them, not yet found
  uint32_t misses;  // since it was last of use
  uint32_t pad;
  uint64_t address[kKernelFrames];
  uint16_t from_leaf[kKernelFrames];   // in words
  uint16_t from_entry[kKernelFrames];  // in words
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 2);  // switches, wake-ups
  __type(key, uint32_t);
  __type(value, struct KernelWords);
} kernel_words SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct RememberedKernelStack);
} remembered_kernel_stacks SEC(".maps");

// What tells most places where a thread can be in the kernel apart.
static __always_inline uint64_t kernel_place(struct task_struct *task,
                                             const struct UserRegisters *user, uint64_t kind) {
  if (is_kernel_thread(task)) return ((uint64_t)task->pid << 8 | kind) * 0x9e3779b97f4a7c15ull;
  return ((user->program_counter << 2 | kind) ^ (uint64_t)task->tgid << 48) * 0x9e3779b97f4a7c15ull;
}

static __always_inline struct RememberedKernelStack *remembered_kernel_at(uint64_t key) {
  const uint32_t index =
      bpf_get_smp_processor_id() * kKernelPlaces + ((uint32_t)(key >> 40) & (kKernelPlaces - 1));
  return bpf_map_lookup_elem(&remembered_kernel_stacks, &index);
}

// The stack from its leaf up to where the thread entered the kernel; false: it is
// too large.
static __always_inline bool copy_kernel_stack(struct KernelWords *raw) {
  const uint64_t bytes = *(volatile uint64_t *)&raw->entry - *(volatile uint64_t *)&raw->leaf;
  if (bytes == 0 || bytes > sizeof(raw->words)) return false;
  uint64_t bounded = bytes & ~7ull;
  // The verifier must see the bound.
  asm volatile("%0 &= 0x1fff" : "+r"(bounded));
  if (bounded > sizeof(raw->words)) return false;
  raw->count = bounded / sizeof(uint64_t);
  return bpf_probe_read_kernel(raw->words, bounded, (const void *)raw->leaf) == 0;
}

static __always_inline uint64_t kernel_word(const struct KernelWords *raw, uint64_t index) {
  return kernel_address(raw->words[index & (kKernelWords - 1)]);
}

// 1: all return addresses stand where they stood.
__noinline int frames_stand(struct RememberedKernelStack *memory, struct KernelWords *raw) {
  if (!memory || !raw) return 0;
  const uint64_t count = raw->count;
  for (uint32_t i = 0; i < kKernelFrames; ++i) {
    if (i >= memory->frames) break;
    const uint64_t address = memory->address[i];
    if (kernel_word(raw, memory->from_leaf[i]) != address &&
        kernel_word(raw, count - memory->from_entry[i]) != address) {
      return 0;
    }
  }
  return 1;
}

// Looks for the return addresses of a walk from its frame `first` on, outermost
// first: what lies about of former calls lies nearer to the leaf. 1: all were found.
// What is left to find is kept in memory, where the verifier does not follow it.
__noinline int find_frames(struct RememberedKernelStack *memory, struct KernelWords *raw,
                           struct StackRecord *stack, uint32_t first, uint32_t count) {
  if (!memory || !raw || !stack) return 0;
  if (first > 1 || count <= first || count - first > kKernelFrames) return 0;
  const uint64_t words = raw->count;
  memory->frames = count - first;
  memory->wanted = count - first;
  for (uint32_t i = 1; i <= kKernelWords; ++i) {
    const uint32_t wanted = memory->wanted;
    if (i > words || wanted == 0) break;
    const uint32_t frame = (wanted - 1) & (kKernelFrames - 1);
    uint64_t index = frame + first;
    // The verifier must see the bound.
    asm volatile("%0 &= 0x7f" : "+r"(index));
    if (index >= kMaxStackFrames) return 0;
    const uint64_t address = stack->addresses[index];
    if (kernel_word(raw, words - i) != address) continue;
    memory->address[frame] = address;
    memory->from_leaf[frame] = words - i;
    memory->from_entry[frame] = i;
    memory->wanted = wanted - 1;
  }
  return memory->wanted == 0;
}

// Is it worth looking where its frames stand? Ever more rarely where that is of no use.
static __always_inline bool is_worth_remembering(struct RememberedKernelStack *memory) {
  const uint32_t misses = memory->misses;
  memory->misses = misses + 1;
  return (misses & (misses - 1)) == 0;
}

#endif  // CULPRIT_RECORD_BPF_REMEMBERED_KERNEL_H_
