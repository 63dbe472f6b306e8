// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// From a frame to its caller, by the rule that stands in its module's table for that
// place; by frame pointers where no table is (just-in-time compiled code, a module
// whose table is still being made). The recorder makes the tables and says which
// process has which code where (unwind_feed.h); here nothing is made, only asked
// for.
//
// Functions that are not static are verified one by one, whoever calls them, which
// keeps loops within loops small enough for the verifiers of older kernels.
#ifndef CULPRIT_RECORD_BPF_UNWIND_H_
#define CULPRIT_RECORD_BPF_UNWIND_H_

#include "architecture.h"
#include "maps.h"
#include "remembered.h"
#include "remembered_callers.h"
#include "remembered_rules.h"
#include "unwind_layout.h"

const volatile uint32_t unwind_tables = 0;
// Both kinds of walk, to be compared: for tests.
const volatile uint32_t unwind_compare = 0;

struct UnwindChunk {
  uint32_t words[kUnwindChunkWords];
};

struct UnwindChunkMap {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(uint32_t));
  __uint(value_size, sizeof(struct UnwindChunk));
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, kUnwindChunks);
  __type(key, uint32_t);
  __array(values, struct UnwindChunkMap);
} unwind_chunks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, kUnwindRules);
  __type(key, uint32_t);
  __type(value, struct UnwindRule);
} unwind_rules SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, kUnwindRanges);
  __type(key, uint32_t);
  __type(value, struct UnwindRange);
} unwind_ranges SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, kUnwindProcesses);
  __type(key, uint32_t);
  __type(value, struct UnwindProcess);
} unwind_processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, kUnwindRequestBytes);
} unwind_requests SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct UnwindCounters);
} unwind_counters SEC(".maps");

#define COUNT_UNWIND(field, amount)                                                   \
  do {                                                                                \
    const uint32_t zero_ = 0;                                                         \
    struct UnwindCounters *counters_ = bpf_map_lookup_elem(&unwind_counters, &zero_); \
    if (counters_) counters_->field += (amount);                                      \
  } while (0)

enum { kAskAgainNs = 10000000 };

struct UnwindState {
  uint64_t program_counter;
  uint64_t stack_pointer;  // or, if it is not known, the least it can be
  uint64_t frame_pointer;
  uint64_t link_register;    // 0: not known any more
  uint64_t frame_address;    // where frame_pointer was read; 0: in the register
  struct UnwindRange range;  // where the last frame was; empty at first
  uint32_t tgid;
  uint32_t first;
  uint32_t count;
  uint32_t guesses;
  uint8_t exact;     // program_counter is where it ran, not where it returns to
  uint8_t complete;  // the outermost frame was reached
  uint8_t trusted;   // no frame pointer has been believed so far
  uint8_t has_stack_pointer;
  uint32_t version;  // of the process's tables
  uint32_t desk;
  uint32_t part;        // which entry of remembered_callers it is, from 1 on; 0: none yet
  uint32_t part_first;  // the frame with which that begins
  uint8_t by_rule;      // complete, because a table says that the frame has no caller
  uint8_t pad[3];
};

// By slot. All calls of a program together have 512 bytes of stack before Linux 6.13, so what
// is large stands elsewhere (bpf_layout_test.cc adds them up).
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, kScratchSlots);
  __type(key, uint32_t);
  __type(value, struct UnwindState);
} unwind_states SEC(".maps");

// ---- asking -----------------------------------------------------------------

static __always_inline void send_request(uint32_t tgid) {
  struct UnwindRequest *request = bpf_ringbuf_reserve(&unwind_requests, sizeof(*request), 0);
  if (!request) return;
  request->time_ns = clock_ns();
  request->tgid = tgid;
  request->pad = 0;
  bpf_ringbuf_submit(request, BPF_RB_FORCE_WAKEUP);
  COUNT_UNWIND(asked, 1);
}

const volatile struct UnwindProcess unknown_process = {};

__noinline int ask_about_process(uint32_t tgid) {
  // The recorder wakes others, too; but its own stacks are nobody's question.
  if (tgid == self_tgid) return 0;
  const uint64_t now = clock_ns();
  struct UnwindProcess *process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  if (!process) {
    bpf_map_update_elem(&unwind_processes, &tgid, (const void *)&unknown_process, BPF_NOEXIST);
    process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  }
  if (!process || now < process->ask_after_ns) return 0;
  process->ask_after_ns = now + kAskAgainNs;
  send_request(tgid);
  return 0;
}

// A child has its parent's code where the parent has it.
static __always_inline void inherit_unwinding(uint32_t parent_tgid, uint32_t tgid) {
  const struct UnwindProcess *parent = bpf_map_lookup_elem(&unwind_processes, &parent_tgid);
  if (parent) {
    const struct UnwindProcess child = *parent;
    bpf_map_update_elem(&unwind_processes, &tgid, &child, BPF_ANY);
  } else {
    bpf_map_delete_elem(&unwind_processes, &tgid);
  }
}

// ---- tables -----------------------------------------------------------------

static __always_inline bool is_in_range(const struct UnwindState *state, uint64_t address) {
  return address - state->range.start < state->range.end - state->range.start;
}

// Makes state->range the one that holds `address`; 0: there is none.
__noinline int find_unwind_range(struct UnwindState *state, uint64_t address) {
  if (!state) return 0;
  const uint32_t first = state->first;
  uint32_t low = first;
  uint32_t high = first + state->count;
  for (uint32_t i = 0; i < 17; ++i) {
    if (low >= high) break;
    const uint32_t middle = (low + high) / 2;
    const struct UnwindRange *range = bpf_map_lookup_elem(&unwind_ranges, &middle);
    if (!range) return 0;
    if (range->start <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == first) return 0;
  low -= 1;
  const struct UnwindRange *range = bpf_map_lookup_elem(&unwind_ranges, &low);
  if (!range || address < range->start || address >= range->end) return 0;
  state->range = *range;
  return 1;
}

// The rule for an address of state->range; 0: nothing is known.
__noinline uint32_t find_unwind_rule(struct UnwindState *state, uint64_t address) {
  const uint32_t zero = 0;
  if (!state) return 0;
  const uint32_t number = state->range.chunk;
  void *map = bpf_map_lookup_elem(&unwind_chunks, &number);
  if (!map) return 0;
  const struct UnwindChunk *chunk = bpf_map_lookup_elem(map, &zero);
  if (!chunk) return 0;
  const uint16_t *halves = (const uint16_t *)chunk;
  const uint64_t offset = address - state->range.origin;
  const uint32_t in_block = offset & ((1 << kUnwindBlockBits) - 1);
  const uint32_t block = 2 * state->range.index + (uint32_t)(offset >> kUnwindBlockBits);
  uint32_t low = halves[block & (2 * kUnwindChunkWords - 1)];
  uint32_t high = halves[(block + 1) & (2 * kUnwindChunkWords - 1)];
  for (uint32_t i = 0; i <= kUnwindBlockBits; ++i) {
    if (low >= high) break;
    const uint32_t middle = (low + high) / 2;
    if ((chunk->words[middle & (kUnwindChunkWords - 1)] & 0xffff) <= in_block) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return chunk->words[(low - 1) & (kUnwindChunkWords - 1)] >> 16;
}

// ---- steps ------------------------------------------------------------------

static __always_inline bool read_user(void *to, uint32_t bytes, uint64_t address) {
  return bpf_probe_read_user(to, bytes, (const void *)address) == 0;
}

// 1: there is a caller, and state is its; 0: the walk is over.
static __always_inline int go_to(struct UnwindState *state, uint64_t return_address,
                                 uint64_t stack_pointer) {
  return_address = without_signature(return_address);
  if (!return_address) {
    state->complete = 1;
    return 0;
  }
  state->program_counter = return_address;
  state->stack_pointer = stack_pointer;
  state->link_register = 0;
  state->exact = 0;
  return 1;
}

// The frame pointer is about to be believed. Many are carried along and never are:
// what a register holds that is used for something else is not worth remembering.
static __always_inline void believe_frame_pointer(const struct UnwindState *state,
                                                  struct RememberedStack *memory) {
  if (!memory) return;
  if (state->frame_address) {
    remember_word(memory, state->frame_address, state->frame_pointer);
  } else {
    memory->uses_frame_pointer = 1;
  }
}

static __always_inline void set_frame_pointer(struct UnwindState *state, uint64_t value,
                                              uint64_t address) {
  state->frame_pointer = value;
  state->frame_address = address;
}

// Frame pointers lead up the stack; what does not is no frame pointer.
static __always_inline int step_by_frame_pointer(struct UnwindState *state,
                                                 struct RememberedStack *memory) {
  const uint64_t frame = state->frame_pointer;
  uint64_t saved[2] = {};
  state->trusted = 0;
  believe_frame_pointer(state, memory);
  if (!frame) {
    state->complete = 1;
    return 0;
  }
  if ((frame & 7) || frame < state->stack_pointer || !read_user(saved, sizeof(saved), frame)) {
    return 0;
  }
  state->guesses += 1;
  state->has_stack_pointer = kFrameEndsAtPointer;
  remember_word(memory, frame + sizeof(saved[0]), saved[1]);
  set_frame_pointer(state, saved[0], frame);
  return go_to(state, saved[1], frame + sizeof(saved));
}

static __always_inline int step_out_of_signal(struct UnwindState *state,
                                              struct RememberedStack *memory) {
  struct UserRegisters saved = {};
  do_not_remember(memory);
  if (!read_signal_frame(state->stack_pointer, &saved)) return 0;
  if (!saved.program_counter) return 0;
  state->program_counter = saved.program_counter;
  state->stack_pointer = saved.stack_pointer;
  state->frame_pointer = saved.frame_pointer;
  state->link_register = saved.link_register;
  state->has_stack_pointer = 1;
  state->exact = 1;
  return 1;
}

// The canonical frame address; 0: it cannot be found.
static __always_inline uint64_t frame_address(const struct UnwindState *state,
                                              const struct UnwindRule *rule,
                                              struct RememberedStack *memory) {
  const int64_t offset = rule->cfa_offset;
  uint64_t address = state->stack_pointer + offset;
  if (rule->cfa == kCfaStack) return address;
  if (rule->cfa == kCfaPlt) {
    return address + ((state->program_counter & 15) >= rule->extra ? 8 : 0);
  }
  if (rule->cfa == kCfaFrame || rule->cfa == kCfaFrameDeref) {
    address = state->frame_pointer + offset;
    believe_frame_pointer(state, memory);
  }
  if (rule->cfa == kCfaFrame) return address;
  uint64_t word = 0;
  if (!read_user(&word, sizeof(word), address)) return 0;
  remember_word(memory, address, word);
  return word + rule->extra;
}

static __always_inline int step_by_rule(struct UnwindState *state, const struct UnwindRule *rule,
                                        struct RememberedStack *memory) {
  const uint64_t cfa = frame_address(state, rule, memory);
  // Stacks grow down: a caller's is never below.
  if (cfa < state->stack_pointer) return 0;
  const uint64_t frame = state->frame_pointer;
  uint64_t pair[2] = {};
  const int64_t return_offset = rule->return_offset;
  const int64_t frame_offset = rule->frame_offset;
  if (rule->return_place == kPlaceCfa && rule->frame_place == kPlaceCfa &&
      return_offset == frame_offset + 8) {
    if (!read_user(pair, sizeof(pair), cfa + frame_offset)) return 0;
    remember_word(memory, cfa + return_offset, pair[1]);
    set_frame_pointer(state, pair[0], cfa + frame_offset);
    return go_to(state, pair[1], cfa);
  }
  if (rule->frame_place == kPlaceFrame || rule->return_place == kPlaceFrame) {
    believe_frame_pointer(state, memory);
  }
  if (rule->frame_place == kPlaceCfa || rule->frame_place == kPlaceFrame) {
    const uint64_t address = (rule->frame_place == kPlaceCfa ? cfa : frame) + frame_offset;
    if (!read_user(&pair[1], sizeof(pair[1]), address)) return 0;
    set_frame_pointer(state, pair[1], address);
  } else if (rule->frame_place == kPlaceUnknown) {
    // What is not aligned is believed by nobody.
    set_frame_pointer(state, 1, 0);
  }
  if (rule->return_place == kPlaceSame) {
    if (memory) memory->uses_link_register = 1;
    if (!state->link_register) return 0;
    return go_to(state, state->link_register, cfa);
  }
  const uint64_t address = (rule->return_place == kPlaceCfa ? cfa : frame) + return_offset;
  if (!read_user(pair, sizeof(pair[0]), address)) return 0;
  remember_word(memory, address, pair[0]);
  return go_to(state, pair[0], cfa);
}

static __always_inline bool needs_stack_pointer(const struct UnwindRule *rule) {
  return rule->cfa != kCfaFrame && rule->cfa != kCfaFrameDeref;
}

// 0: nothing is known of that place. Code that is in no range is asked about.
static __always_inline const struct UnwindRule *find_rule(struct UnwindState *state,
                                                          uint64_t address, bool *in_range) {
  uint32_t number = 0;
  if (is_in_range(state, address) || find_unwind_range(state, address)) {
    *in_range = true;
    if (state->range.chunk != kNoChunk) number = find_unwind_rule(state, address);
  } else if (state->trusted) {
    ask_about_process(state->tgid);
  }
  return number ? bpf_map_lookup_elem(&unwind_rules, &number) : 0;
}

static __always_inline const struct UnwindRule *rule_of(struct UnwindState *state) {
  // A call may be the last instruction of a function, and return behind it.
  const uint64_t address = state->program_counter - (state->exact ? 0 : 1);
  const uint32_t version = state->version;
  bool in_range = false;
  if (!remember_stacks) return find_rule(state, address, &in_range);
  struct RememberedRule *memory = remembered_rule_at(address, version, state->desk);
  if (!memory) return 0;
  if (memory->address == address && memory->version == version) return &memory->rule;
  const struct UnwindRule *rule = find_rule(state, address, &in_range);
  if (in_range) {
    const struct UnwindRule none = {};
    memory->address = address;
    memory->version = version;
    memory->rule = rule ? *rule : none;
  }
  return rule;
}

// From a frame to its caller: 1; 0: there is none, or none can be found.
__noinline int step_to_caller(struct UnwindState *state, struct RememberedStack *memory) {
  if (!state) return 0;
  const struct UnwindRule *rule = rule_of(state);
  if (!rule || rule->cfa == kCfaUnknown) return step_by_frame_pointer(state, memory);
  if (rule->return_place == kPlaceEnd) {
    state->complete = 1;
    state->by_rule = 1;
    return 0;
  }
  if (!state->has_stack_pointer && needs_stack_pointer(rule)) {
    return step_by_frame_pointer(state, memory);
  }
  if (rule->cfa == kCfaSignal) return step_out_of_signal(state, memory);
  state->has_stack_pointer = 1;
  return step_by_rule(state, rule, memory);
}

// Equal addresses mean different code in another process, and after exec.
static __always_inline uint64_t user_seed(struct task_struct *task) {
  return ((uint64_t)task->tgid << 32) ^ task->self_exec_id ^ epoch_seed();
}

// The current thread's, at its leaf.
static __always_inline struct UnwindState *begin_walk(uint32_t slot, uint32_t tgid,
                                                      const struct UnwindProcess *process,
                                                      const struct UserRegisters *registers) {
  struct UnwindState *state = bpf_map_lookup_elem(&unwind_states, &slot);
  if (!state) return 0;
  __builtin_memset(state, 0, sizeof(*state));
  state->tgid = tgid;
  state->desk = desk_of(slot);
  state->exact = 1;
  state->trusted = 1;
  state->has_stack_pointer = 1;
  state->first = process->first;
  state->count = process->count;
  state->version = process->version;
  state->program_counter = registers->program_counter;
  state->stack_pointer = registers->stack_pointer;
  state->frame_pointer = registers->frame_pointer;
  state->link_register = registers->link_register;
  return state;
}

// ---- lives ------------------------------------------------------------------

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork_of_code, struct task_struct *parent, struct task_struct *child) {
  if (parent->tgid != child->tgid) inherit_unwinding(parent->tgid, child->tgid);
  return 0;
}

// Other code stands there from now on; that it is looked at soon is worth a wake-up
// of the recorder.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec_of_code, struct task_struct *task) {
  const uint64_t now = clock_ns();
  const uint32_t tgid = task->tgid;
  bpf_map_delete_elem(&unwind_processes, &tgid);
  if (is_target(task)) ask_about_process(tgid);
  end_run(kLifeMeter, now);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit_of_code, struct task_struct *task) {
  const uint32_t tgid = task->tgid;
  if (task->pid == task->tgid) bpf_map_delete_elem(&unwind_processes, &tgid);
  return 0;
}

#endif  // CULPRIT_RECORD_BPF_UNWIND_H_
