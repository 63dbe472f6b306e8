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
// Only threads in a system call, and kernel threads, not interrupts. Network code that
// a thread runs inside its own system call does so on the CPU's stack for interrupts:
// the used parts of both are looked at one after the other, as if they were one stack.
#ifndef CULPRIT_RECORD_BPF_REMEMBERED_KERNEL_H_
#define CULPRIT_RECORD_BPF_REMEMBERED_KERNEL_H_

#include "architecture.h"
#include "maps.h"
#include "remembered.h"

enum {
  kKernelFrames = 64,  // of a stack that can be remembered
  kPieceBytes = 4096,  // of one of its stacks
  kKernelWords = 2 * kPieceBytes / 8,
  kThreadStack = 16384,  // bytes of a thread's stack, at least
  kLinkWords = 8,        // of the outermost, one leads from one stack to the other
  kTracerFrames = 3,     // at the leaf of a thread that runs
  kPatience = 256,       // misses
  kPlaceShift = 56,      // of a key, where it differs from process to process
};

struct KernelWords {
  uint64_t leaf;   // the address of the first
  uint64_t entry;  // behind the last word: where the thread entered the kernel
  uint32_t count;
  uint32_t first;  // of them, on the CPU's stack for interrupts
  uint32_t link;   // the one that leads from there to the thread's own
  uint32_t pad;
  uint64_t words[kKernelWords];
};

struct RememberedKernelStack {
  uint64_t key;
  uint64_t id;      // 0: nothing is remembered here
  uint32_t frames;  // whose places are known
  uint32_t misses;  // since it was last of use
  uint32_t first;   // as in KernelWords
  uint32_t link;
  uint32_t from_leaf_first;            // how they were looked for
  uint32_t unplaced;                   // not found yet
  uint64_t address[kKernelFrames];     // outermost first
  uint16_t from_leaf[kKernelFrames];   // in words
  uint16_t from_entry[kKernelFrames];  // in words
  uint8_t by_entry[kKernelFrames];     // that is where it was found last
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, kDesks);
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
  const uint64_t place = is_kernel_thread(task)
                             ? (uint64_t)task->pid << 8 | kind
                             : (user->program_counter << 2 | kind) ^ (uint64_t)task->tgid << 48;
  return (place * 0x9e3779b97f4a7c15ull) ^ epoch_seed();
}

static __always_inline struct RememberedKernelStack *remembered_kernel_at(uint64_t key,
                                                                          uint32_t desk) {
  const uint32_t index = (desk * remembered_cpus + bpf_get_smp_processor_id()) * kKernelPlaces +
                         ((uint32_t)(key >> kPlaceShift) & (kKernelPlaces - 1));
  return bpf_map_lookup_elem(&remembered_kernel_stacks, &index);
}

// The words from one address to another, behind those that are there; false: they are
// too many.
static __always_inline bool copy_words(struct KernelWords *raw, uint64_t from, uint64_t to) {
  uint64_t bytes = (to - from) & ~7ull;
  uint64_t offset = raw->count * 8ull;
  if (bytes == 0 || bytes > kPieceBytes || offset > kPieceBytes) return false;
  raw->count += bytes / 8;
  // The verifier must see the bounds.
  asm volatile("%0 &= 0x1fff" : "+r"(bytes));
  if (bytes > kPieceBytes) return false;
  asm volatile("%0 &= 0x1fff" : "+r"(offset));
  if (offset > kPieceBytes) return false;
  return bpf_probe_read_kernel((char *)raw->words + offset, bytes, (const void *)from) == 0;
}

static __always_inline bool is_on_own_stack(uint64_t address, uint64_t entry) {
  return entry - address < kThreadStack;
}

// The stack from raw->leaf up to raw->entry; false: it is too large. The CPU's stack for
// interrupts ends with a page, and where it ends there is a word that leads to the
// thread's own: the frame pointer (arm64), or the stack pointer (x86-64), with which
// that was left.
static __always_inline bool copy_kernel_stack(struct KernelWords *raw) {
  const uint64_t leaf = raw->leaf;
  const uint64_t entry = raw->entry;
  raw->count = raw->first = raw->link = 0;
  if (is_on_own_stack(leaf, entry)) return copy_words(raw, leaf, entry);
  if (!copy_words(raw, leaf, (leaf | (kPieceBytes - 1)) + 1)) return false;
  raw->first = raw->count;
  for (uint32_t i = 1; i <= kLinkWords; ++i) {
    const uint64_t link = (raw->first - i) & (kKernelWords - 1);
    const uint64_t word = raw->words[link];
    if (!is_on_own_stack(word, entry)) continue;
    raw->link = link;
    return copy_words(raw, word, entry);
  }
  return false;
}

// Since 6.2: memory of the kernel can be read as if it were a struct of it, at the
// price of a load. Programs that do so (`direct`) stand beside those that need not.
extern void *bpf_rdonly_cast(const void *object, uint32_t type) __ksym __weak;

static __always_inline uint64_t read_kernel_word(uint64_t address, bool direct) {
  uint64_t word = 0;
  if (direct) {
    word =
        first_word(bpf_rdonly_cast((const void *)address, bpf_core_type_id_kernel(struct pt_regs)));
  } else {
    bpf_probe_read_kernel(&word, sizeof(word), (const void *)address);
  }
  return kernel_address(word);
}

// 1: all return addresses stand where they stood.
static __always_inline int all_frames_stand(struct RememberedKernelStack *memory,
                                            struct KernelWords *raw, bool direct) {
  if (!memory || !raw) return 0;
  const uint64_t leaf = raw->leaf;
  const uint64_t entry = raw->entry;
  const uint32_t first = memory->first;
  uint64_t own = leaf;
  if (is_on_own_stack(leaf, entry) != (first == 0)) return 0;
  if (first) {
    own = read_kernel_word(leaf + memory->link * 8ull, direct);
    if (!is_on_own_stack(own, entry)) return 0;
    own -= first * 8ull;
  }
  for (uint32_t i = 0; i < kKernelFrames; ++i) {
    if (i >= memory->frames) break;
    const uint32_t index = memory->from_leaf[i];
    const uint64_t by_leaf = (index < first ? leaf : own) + index * 8ull;
    const uint64_t by_entry = index < first ? by_leaf : entry - memory->from_entry[i] * 8ull;
    const bool was_by_entry = memory->by_entry[i];
    const uint64_t address = memory->address[i];
    if (read_kernel_word(was_by_entry ? by_entry : by_leaf, direct) == address) continue;
    if (read_kernel_word(was_by_entry ? by_leaf : by_entry, direct) != address) return 0;
    memory->by_entry[i] = !was_by_entry;
  }
  return 1;
}

__noinline int frames_stand(struct RememberedKernelStack *memory, struct KernelWords *raw) {
  return all_frames_stand(memory, raw, false);
}

__noinline int frames_stand_direct(struct RememberedKernelStack *memory, struct KernelWords *raw) {
  return all_frames_stand(memory, raw, true);
}

// 1 or 0 without a branch: a loop with one has several ways through every turn, and all of them
// are followed by the verifier.
static __always_inline uint64_t are_equal(uint64_t a, uint64_t b) {
  const uint64_t difference = a ^ b;
  uint64_t negative = 0 - difference;
  // Else the compiler sees what it is.
  asm volatile("" : "+r"(negative));
  return 1 - ((difference | negative) >> 63);
}

static __always_inline void place_frame(struct RememberedKernelStack *memory, uint32_t frame,
                                        uint32_t words, uint32_t from_leaf) {
  frame &= kKernelFrames - 1;
  memory->from_leaf[frame] = from_leaf;
  memory->from_entry[frame] = words - from_leaf;
  memory->by_entry[frame] = 0;
}

// Looks for the return addresses of a walk, outermost first. 1: all were found, but for
// `tolerated` at the leaf. How many are found is kept in memory, where the verifier does
// not follow it.
__noinline int find_frames(struct RememberedKernelStack *memory, struct KernelWords *raw,
                           struct StackRecord *stack, uint32_t count, uint32_t tolerated) {
  if (!memory || !raw || !stack) return 0;
  if (count <= tolerated || count > kKernelFrames || !copy_kernel_stack(raw)) return 0;
  const uint32_t words = raw->count;
  memory->first = raw->first;
  memory->link = raw->link;
  memory->frames = 0;
  for (uint32_t i = 1; i <= kKernelWords; ++i) {
    const uint32_t found = memory->frames;
    if (i > words || found >= count) break;
    uint64_t index = count - 1 - found;
    // The verifier must see the bound.
    asm volatile("%0 &= 0x3f" : "+r"(index));
    const uint64_t address = stack->addresses[index];
    const uint64_t word = kernel_address(raw->words[(words - i) & (kKernelWords - 1)]);
    memory->address[found & (kKernelFrames - 1)] = address;
    place_frame(memory, found, words, words - i);
    memory->frames = found + are_equal(word, address);
  }
  return count - memory->frames <= tolerated;
}

// The same frames, innermost first. Return addresses of former calls lie about where nothing was
// written since: in the gap, and in frames. In the gap the outermost that is found is one of them,
// in a frame it may be one or the other.
__noinline int find_frames_from_leaf(struct RememberedKernelStack *memory,
                                     struct KernelWords *raw) {
  if (!memory || !raw) return 0;
  const uint32_t words = raw->count;
  memory->unplaced = memory->frames;
  for (uint32_t i = 0; i < kKernelWords; ++i) {
    const uint32_t left = memory->unplaced;
    if (i >= words || left == 0) break;
    const uint32_t frame = (left - 1) & (kKernelFrames - 1);
    const uint64_t word = kernel_address(raw->words[i & (kKernelWords - 1)]);
    place_frame(memory, frame, words, i);
    memory->unplaced = left - are_equal(word, memory->address[frame]);
  }
  return memory->unplaced == 0;
}

// Whether it was right shows when the stack is met again.
static __always_inline bool remember_frames(struct RememberedKernelStack *memory,
                                            struct KernelWords *raw, struct StackRecord *stack,
                                            uint32_t count, uint32_t tolerated) {
  if (!find_frames(memory, raw, stack, count, tolerated)) return false;
  memory->from_leaf_first = !memory->from_leaf_first;
  return !memory->from_leaf_first || find_frames_from_leaf(memory, raw);
}

// Is it worth looking where its frames stand? Ever more rarely where that is of no use.
static __always_inline bool is_worth_remembering(struct RememberedKernelStack *memory) {
  const uint32_t misses = memory->misses;
  memory->misses = misses + 1;
  return (misses & (misses - 1)) == 0 || misses % kPatience == 0;
}

#endif  // CULPRIT_RECORD_BPF_REMEMBERED_KERNEL_H_
