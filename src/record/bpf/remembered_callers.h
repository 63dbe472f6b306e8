// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// The outer part of user stacks that were walked before, for samples and for threads
// that were preempted: their leaf is hardly ever in the same place twice, but the
// callers further out are. Some return addresses, chosen by their bits so that all
// walks choose the same ones, are anchors. From the first anchor of a walk on, its
// frames are remembered, with the words of the stack that the walk believed, as
// remembered.h has it for whole stacks; a walk that comes to an anchor with the same
// stack and frame pointer, and finds all those words as they were, has the rest of its
// frames. Entries are of one CPU and one desk, the last one of those that fall on the
// same.
#ifndef CULPRIT_RECORD_BPF_REMEMBERED_CALLERS_H_
#define CULPRIT_RECORD_BPF_REMEMBERED_CALLERS_H_

#include "architecture.h"
#include "maps.h"
#include "remembered.h"

enum {
  kRememberedCallers = kRememberedWords,  // at most; more are not remembered
  kAnchorMask = 3,                        // one of four return addresses
};

struct RememberedPart {
  struct RememberedStack stack;  // its leaf is the anchor
  uint64_t addresses[kRememberedCallers];
};

// By desk, CPU and anchor. How many is set by the recorder.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct RememberedPart);
} remembered_callers SEC(".maps");

const volatile uint32_t callers_mask = 0;  // entries of a CPU and desk, less one

static __always_inline bool is_anchor(uint64_t address) {
  return ((address >> 2) & kAnchorMask) == 0;
}

static __always_inline uint32_t part_key(const struct UserRegisters *anchor, uint64_t seed,
                                         uint32_t desk) {
  const uint64_t hash = mix(mix(seed, anchor->program_counter), anchor->stack_pointer);
  return (desk * remembered_cpus + bpf_get_smp_processor_id()) * (callers_mask + 1) +
         ((uint32_t)(hash >> 40) & callers_mask);
}

// Puts the frames of a part behind the first `count` of a stack; how many there are then.
__noinline int append_part(struct StackRecord *stack, struct RememberedPart *part, uint32_t count) {
  if (!stack || !part) return 0;
  for (uint32_t i = 0; i < kRememberedCallers; ++i) {
    if (i >= part->stack.frames || count + i >= kMaxStackFrames) break;
    uint64_t index = count + i;
    // The verifier must see the bound.
    asm volatile("%0 &= 0x7f" : "+r"(index));
    if (index >= kMaxStackFrames) break;
    stack->addresses[index] = part->addresses[i];
  }
  return count + part->stack.frames;
}

// Keeps `frames` frames of a walk, from number `first` on.
__noinline int keep_part(struct RememberedPart *part, struct StackRecord *stack, uint32_t first,
                         uint32_t frames) {
  if (!stack || !part) return 0;
  for (uint32_t i = 0; i < kRememberedCallers; ++i) {
    if (i >= frames) break;
    uint64_t index = first + i;
    asm volatile("%0 &= 0x7f" : "+r"(index));
    if (index >= kMaxStackFrames) break;
    part->addresses[i] = stack->addresses[index];
  }
  part->stack.frames = frames;
  return 0;
}

#endif  // CULPRIT_RECORD_BPF_REMEMBERED_CALLERS_H_
