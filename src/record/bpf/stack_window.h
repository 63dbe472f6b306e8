// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// The user stack of the current thread, a piece at a time, and frame pointers through it.
// A call that reads memory of the program takes 40 ns, for 16 bytes as for 256, and 65 for
// 1,024 (Neoverse V1): so as much is read as may hold several frames, but not beyond the
// page, because the next one need not be there.
#ifndef CULPRIT_RECORD_BPF_STACK_WINDOW_H_
#define CULPRIT_RECORD_BPF_STACK_WINDOW_H_

#include "architecture.h"
#include "maps.h"

enum { kWindowWords = 128, kPageBytes = 4096 };

struct StackWindow {
  uint64_t start;
  uint64_t last;  // where the last pair begins, from `start` on
  uint64_t words[kWindowWords + 1];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, kRuleDesks);
  __type(key, uint32_t);
  __type(value, struct StackWindow);
} stack_windows SEC(".maps");

// What a window holds is only good for one walk. It begins with none: no address is 1.
static __always_inline struct StackWindow *new_window(uint32_t desk) {
  struct StackWindow *window = bpf_map_lookup_elem(&stack_windows, &desk);
  if (!window) return 0;
  window->start = 1;
  window->last = 0;
  return window;
}

static __always_inline bool move_window(struct StackWindow *window, uint64_t address) {
  uint64_t bytes = kPageBytes - (address & (kPageBytes - 1));
  if (bytes < 16) bytes = 16;
  if (bytes > kWindowWords * 8) bytes = kWindowWords * 8;
  window->start = address;
  window->last = bytes - 16;
  return bpf_probe_read_user(window->words, bytes, (const void *)address) == 0;
}

// Other words than those that a walk moves on to: so many, up to kWindowWords.
static __always_inline bool read_words(struct StackWindow *window, uint64_t address,
                                       uint32_t words) {
  uint64_t bytes = words * 8ull;
  // The verifier must see the bound.
  asm volatile("%0 &= 0x7ff" : "+r"(bytes));
  if (bytes > kWindowWords * 8) return false;
  return bpf_probe_read_user(window->words, bytes, (const void *)address) == 0;
}

static __always_inline bool read_pair(struct StackWindow *window, uint64_t address,
                                      uint64_t *pair) {
  if (address & 7) return false;
  if (address - window->start > window->last && !move_window(window, address)) return false;
  const uint64_t index = ((address - window->start) >> 3) & (kWindowWords - 1);
  pair[0] = window->words[index];
  pair[1] = window->words[index + 1];
  return true;
}

// Where a frame returns to, and its caller's frame.
struct FrameLink {
  uint64_t address;
  uint64_t frame;   // the frame pointer
  uint64_t lowest;  // it cannot be below this
};

// From the leaf's caller on. Returns a hash of all return addresses, beginning with
// `hash`, and their number in `count`; they are put into `stack`, unless it is 0.
static __always_inline uint64_t follow_frame_pointers(struct StackRecord *stack,
                                                      struct StackWindow *window,
                                                      const struct FrameLink *leaf, uint64_t hash,
                                                      uint32_t *count) {
  uint64_t address = leaf->address;
  uint64_t frame = leaf->frame;
  uint64_t lowest = leaf->lowest;
  uint32_t frames = 0;
  for (uint32_t i = 1; i < kMaxStackFrames; ++i) {
    uint64_t saved[2] = {};
    if (stack) stack->addresses[i] = address;
    hash = add_frame(hash, address);
    frames = i;
    if (frame < lowest || !read_pair(window, frame, saved)) break;
    address = without_signature(saved[1]);
    if (!address) break;
    lowest = frame + sizeof(saved);
    frame = saved[0];
  }
  *count = frames;
  return hash;
}

#endif  // CULPRIT_RECORD_BPF_STACK_WINDOW_H_
