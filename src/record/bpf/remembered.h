// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// User stacks that were walked before. Where a walk leads is decided by the
// registers that it begins with, the tables, and the words of the stack that it
// believes. Who finds all of these as they were has the same stack, and need not
// walk. Nothing is taken on trust, so a remembered stack is always the one that a walk
// would find. To read memory of the program costs as much for a word as for many, so
// words that stand near each other are read together.
//
// Threads come back to the same places to wait, to wake others and to use disks; a
// place is known by its program counter and stack pointer. Several paths can lead to
// it: a stack that differs from the one remembered in some word is looked for where
// that word leads, and so on, a few times. Every CPU has entries of its own for each
// desk, and only programs that cannot interrupt each other share a desk.
#ifndef CULPRIT_RECORD_BPF_REMEMBERED_H_
#define CULPRIT_RECORD_BPF_REMEMBERED_H_

#include "architecture.h"
#include "maps.h"
#include "stack_window.h"

enum {
  kRememberedWords = 64,
  kRememberedPaths = 4,  // entries that are looked at
  // Words that stand no farther apart are read at once, with what lies between them.
  kReadTogether = 32,
  kPlaceBits = 24,
};

struct RememberedStack {
  uint64_t program_counter;
  uint64_t stack_pointer;
  uint64_t frame_pointer;
  uint64_t link_register;
  uint64_t seed;     // whose addresses
  uint64_t id;       // 0: nothing is remembered here
  uint32_t version;  // of the process's tables
  uint32_t count;    // of words that the walk believed; too many: it is not remembered
  uint32_t frames;
  uint32_t guesses;
  uint8_t complete;
  uint8_t uses_frame_pointer;  // as it was in the register
  uint8_t uses_link_register;
  uint8_t by_rule;  // complete, because a table says so
  uint8_t reading;  // the word with which the last reading begins
  uint8_t pad[3];
  // Of each word, how many stand between it and the stack pointer; in the bits from kPlaceBits on
  // how many are read from there on, 0 where it is read with one before.
  uint32_t places[kRememberedWords];
  uint64_t words[kRememberedWords];
};

// By desk, CPU and place. How many is set by the recorder.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct RememberedStack);
} remembered_stacks SEC(".maps");

const volatile uint32_t remember_stacks = 1;  // else every one is walked
const volatile uint32_t remembered_mask = 0;  // entries of a CPU, less one
const volatile uint32_t remembered_cpus = 1;

static __always_inline uint64_t mix(uint64_t hash, uint64_t word) {
  return (hash ^ word) * 0xff51afd7ed558ccdull;
}

static __always_inline struct RememberedStack *remembered_at(uint64_t hash, uint32_t desk) {
  const uint32_t entries = remembered_mask + 1;
  const uint32_t key = (desk * remembered_cpus + bpf_get_smp_processor_id()) * entries +
                       ((uint32_t)(hash >> 40) & remembered_mask);
  return bpf_map_lookup_elem(&remembered_stacks, &key);
}

static __always_inline void do_not_remember(struct RememberedStack *memory) {
  if (memory) memory->count = kRememberedWords + 1;
}

// The reading that the word is part of gets so many words; 0: the word stands too far from it.
static __always_inline uint32_t words_with(const struct RememberedStack *memory, uint32_t place) {
  const uint32_t reading = memory->reading;
  if (!memory->count || reading >= kRememberedWords) return 0;
  const uint32_t words = memory->places[reading] >> kPlaceBits;
  const uint32_t index = place - (memory->places[reading] & ((1 << kPlaceBits) - 1));
  if (index >= kWindowWords || index >= words + kReadTogether) return 0;
  return index < words ? words : index + 1;
}

static __always_inline void remember_word(struct RememberedStack *memory, uint64_t address,
                                          uint64_t value) {
  if (!memory) return;
  const uint32_t count = memory->count;
  const uint64_t above = address - memory->stack_pointer;
  if ((above & 7) || above >> 3 >= 1 << kPlaceBits || count >= kRememberedWords) {
    return do_not_remember(memory);
  }
  uint32_t place = (uint32_t)(above >> 3);
  const uint32_t words = words_with(memory, place);
  if (words) {
    const uint32_t reading = memory->reading & (kRememberedWords - 1);
    memory->places[reading] =
        (memory->places[reading] & ((1 << kPlaceBits) - 1)) | words << kPlaceBits;
  } else {
    memory->reading = count;
    place |= 1 << kPlaceBits;
  }
  memory->places[count] = place;
  memory->words[count] = value;
  memory->count = count + 1;
}

static __always_inline void begin_to_remember(struct RememberedStack *memory,
                                              const struct UserRegisters *now, uint64_t seed,
                                              uint32_t version) {
  memory->id = 0;
  memory->program_counter = now->program_counter;
  memory->stack_pointer = now->stack_pointer;
  memory->frame_pointer = now->frame_pointer;
  memory->link_register = now->link_register;
  memory->seed = seed;
  memory->version = version;
  memory->count = 0;
  memory->reading = 0;
  memory->uses_frame_pointer = 0;
  memory->uses_link_register = 0;
}

// 0: all words are what they were; else a hash of the first that is not.
__noinline uint64_t differing_word(struct RememberedStack *memory, uint32_t desk) {
  struct StackWindow *window = bpf_map_lookup_elem(&stack_windows, &desk);
  if (!memory || !window) return 1;
  uint32_t first = 0;
  for (uint32_t i = 0; i < kRememberedWords; ++i) {
    if (i >= memory->count) break;
    const uint32_t place = memory->places[i] & ((1 << kPlaceBits) - 1);
    const uint32_t words = memory->places[i] >> kPlaceBits;
    if (words) {
      first = place;
      if (!read_words(window, memory->stack_pointer + place * 8ull, words)) return 1;
    }
    const uint64_t value = window->words[(place - first) & (kWindowWords - 1)];
    if (value != memory->words[i]) return mix(i + 1, value) | 1;
  }
  return 0;
}

static __always_inline bool is_of_place(const struct RememberedStack *memory,
                                        const struct UserRegisters *now, uint64_t seed,
                                        uint32_t version) {
  return memory->id && memory->seed == seed && memory->version == version &&
         memory->program_counter == now->program_counter &&
         memory->stack_pointer == now->stack_pointer;
}

static __always_inline uint64_t what_differs(struct RememberedStack *memory,
                                             const struct UserRegisters *now, uint32_t desk) {
  if (memory->uses_frame_pointer && memory->frame_pointer != now->frame_pointer) {
    return now->frame_pointer | 1;
  }
  if (memory->uses_link_register && memory->link_register != now->link_register) {
    return now->link_register | 1;
  }
  return differing_word(memory, desk);
}

// The entry of the stack that a thread now has; `stands`: it is remembered there, else
// it may be.
static __always_inline struct RememberedStack *find_remembered(const struct UserRegisters *now,
                                                               uint64_t seed, uint32_t version,
                                                               uint32_t desk, bool *stands) {
  uint64_t hash = (now->program_counter ^ seed) * 0x9e3779b97f4a7c15ull;
  struct RememberedStack *memory = 0;
  hash = mix(hash, now->stack_pointer);
  for (uint32_t i = 0; i < kRememberedPaths; ++i) {
    memory = remembered_at(hash, desk);
    if (!memory || !is_of_place(memory, now, seed, version)) break;
    const uint64_t difference = what_differs(memory, now, desk);
    if (!difference) {
      *stands = true;
      break;
    }
    hash = mix(hash, difference);
  }
  return memory;
}

#endif  // CULPRIT_RECORD_BPF_REMEMBERED_H_
