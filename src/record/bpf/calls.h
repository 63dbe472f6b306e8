// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// System calls: each as a record, or all of them as counts by process name, call,
// operation and error, where nobody wants to know more (culprit infer --live).
// Counting puts nothing into the ring, so nothing can be lost but for want of
// entries in the map.
#ifndef CULPRIT_RECORD_BPF_CALLS_H_
#define CULPRIT_RECORD_BPF_CALLS_H_

#include "architecture.h"
#include "maps.h"
#include "pauses.h"
#include "stacks.h"

enum { kMaxError = 4095 };

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 16384);
  __type(key, struct CallKey);
  __type(value, struct CallCount);
} call_counts SEC(".maps");

static __always_inline uint32_t operation_of(struct pt_regs *regs, uint64_t number) {
  if (number >= kSyscallNumbers) return 0;
  switch (operation_argument[number]) {
    case 1:
      return syscall_arguments(regs).first;
    case 2:
      return syscall_arguments(regs).second;
    case 3:
      return syscall_arguments(regs).third;
    default:
      return 0;
  }
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long number) {
  const uint64_t now = clock_ns();
  struct task_struct *task = bpf_get_current_task_btf();
  if (!is_recorded_at(now) || !is_target(task)) return 0;
  struct ThreadState *state = state_of(task, true, now);
  if (!state) return 0;
  state->syscall_ns = now;
  state->syscall_number = number;
  state->syscall_operation = operation_of(regs, number);
  end_run(kEnterMeter, now);
  return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result) {
  struct task_struct *task = bpf_get_current_task_btf();
  struct ThreadState *state = bpf_task_storage_get(&threads, task, 0, 0);
  if (!state || !state->syscall_ns) return 0;
  const uint64_t now = clock_ns();
  const uint64_t enter_ns = state->syscall_ns;
  state->syscall_ns = 0;
  if (!is_recorded_at(now) || now - enter_ns < policy.min_syscall_ns) return 0;
  const uint64_t user_stack = policy.syscall_stacks ? capture_user_stack(ctx, kSyscallSlot, 0) : 0;
  struct SyscallRecord *record = reserve(sizeof(*record));
  if (record) {
    fill_head(&record->head, kSyscallRecord, now, task->pid);
    record->enter_ns = enter_ns;
    record->result = result;
    record->user_stack = user_stack;
    record->number = state->syscall_number;
    record->operation = state->syscall_operation;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  }
  end_run(kExitMeter, now);
  return 0;
}

static __always_inline struct CallCount *count_of(const struct CallKey *key) {
  struct CallCount *count = bpf_map_lookup_elem(&call_counts, key);
  if (count) return count;
  const struct CallCount zero = {};
  bpf_map_update_elem(&call_counts, key, &zero, BPF_NOEXIST);
  return bpf_map_lookup_elem(&call_counts, key);
}

// Without switches, what threads used is known from the kernel's own totals.
static __always_inline void count_busy(struct ThreadState *state, struct task_struct *task) {
  const uint64_t total_ns = task->se.sum_exec_runtime;
  COUNT(busy_ns, since(total_ns, state->kernel_run_ns));
  state->kernel_run_ns = total_ns;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_counted_exit, struct pt_regs *regs, long result) {
  struct task_struct *task = bpf_get_current_task_btf();
  struct ThreadState *state = bpf_task_storage_get(&threads, task, 0, 0);
  if (!state || !state->syscall_ns) return 0;
  const uint64_t now = clock_ns();
  const uint64_t dur_ns = now - state->syscall_ns;
  state->syscall_ns = 0;
  if (!is_recorded_at(now)) return 0;
  count_busy(state, task);
  struct CallKey key = {.number = state->syscall_number, .operation = state->syscall_operation};
  if (result < 0 && result >= -kMaxError) key.error = (uint32_t)-result;
  bpf_probe_read_kernel_str(key.process, sizeof(key.process), task->group_leader->comm);
  struct CallCount *count = count_of(&key);
  if (count) {
    count->calls += 1;
    count->dur_ns += dur_ns;
  } else {
    COUNT(lost_records, 1);
  }
  end_run(kExitMeter, now);
  return 0;
}

#endif  // CULPRIT_RECORD_BPF_CALLS_H_
