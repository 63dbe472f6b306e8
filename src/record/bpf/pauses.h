// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// Pauses: times in which no switch is looked at, because the budget does not
// allow it. The kernel goes on adding up how long every thread ran and was ready
// (sum_exec_runtime, run_delay), so what a pause hid is known per thread: it is
// left out like short waits are, as sums. Whoever did not run at all in a pause
// is still in the wait that it was in before, which is then known whole.
#ifndef CULPRIT_RECORD_BPF_PAUSES_H_
#define CULPRIT_RECORD_BPF_PAUSES_H_

#include "maps.h"

enum {
  kSinceCpuUnknown = 0xffff,
  kTotalsLagNs = 10000000,  // the totals of who runs are brought up to date at least so often
};

static __always_inline uint64_t kernel_ready_ns(struct task_struct *task) {
  if (!bpf_core_field_exists(task->sched_info.run_delay)) return 0;
  return task->sched_info.run_delay;
}

static __always_inline void note_totals(struct ThreadState *state, struct task_struct *task) {
  state->kernel_run_ns = task->se.sum_exec_runtime;
  state->kernel_ready_ns = kernel_ready_ns(task);
  state->kernel_switches = task->nvcsw + task->nivcsw;
}

static __always_inline uint64_t at_most(uint64_t value, uint64_t limit) {
  return value < limit ? value : limit;
}

static __always_inline uint64_t since(uint64_t later, uint64_t earlier) {
  return later > earlier ? later - earlier : 0;
}

// The time from what is known last to until_ns, as sums; from there on the thread
// is as it is now.
static __always_inline void leave_out_pause(struct ThreadState *state, struct task_struct *task,
                                            bool on_cpu, uint64_t until_ns, uint64_t now) {
  const uint64_t from_ns = state->out_ns ? state->out_ns : state->in_ns;
  const uint64_t elapsed_ns = since(until_ns, from_ns);
  const uint64_t total_ns = task->se.sum_exec_runtime;
  uint64_t run_ns = since(total_ns, state->kernel_run_ns);
  if (on_cpu) run_ns = since(run_ns, now - until_ns);
  run_ns = at_most(run_ns, elapsed_ns);
  const uint64_t ready_ns =
      at_most(since(kernel_ready_ns(task), state->kernel_ready_ns), elapsed_ns - run_ns);
  uint64_t lag_ns = 0;
  if (on_cpu) lag_ns = at_most(elapsed_ns - run_ns - ready_ns, kTotalsLagNs);
  run_ns += lag_ns;
  const uint64_t switches = since(task->nvcsw + task->nivcsw, state->kernel_switches);
  const uint32_t count = switches ? (uint32_t)switches : 1;
  note_totals(state, task);
  state->kernel_run_ns += lag_ns;
  if (!elapsed_ns) return;
  state->run_ns += run_ns;
  state->left_ready_ns += ready_ns;
  state->left_wait_ns += elapsed_ns - run_ns - ready_ns;
  state->left_count += count;
  state->left_waits += count;
  COUNT(left_out, count);
  COUNT(busy_ns, run_ns);
}

// After a pause the state of a thread is brought up to date when it is first met.
static __always_inline void catch_up(struct ThreadState *state, struct task_struct *task,
                                     bool on_cpu, uint64_t until_ns, uint64_t now) {
  state->pauses = policy.pauses;
  const bool slept_on =
      state->out_ns && !on_cpu && task->nvcsw + task->nivcsw == state->kernel_switches;
  if (slept_on) return;
  leave_out_pause(state, task, on_cpu, until_ns, now);
  state->user_stack = 0;
  state->kernel_stack = 0;
  state->wake_ns = 0;
  state->waker_tid = 0;
  state->wake_device = 0;
  state->waker_user_stack = 0;
  state->waker_kernel_stack = 0;
  state->holder_tid = 0;
  state->syscall_ns = 0;
  if (on_cpu) {
    state->in_ns = state->in_ns > until_ns ? state->in_ns : until_ns;
    state->out_ns = 0;
    state->flags = 0;
  } else {
    state->out_ns = state->out_ns > until_ns ? state->out_ns : until_ns;
    state->out_cpu = kSinceCpuUnknown;
    state->flags = kSinceBegin;
  }
}

#endif  // CULPRIT_RECORD_BPF_PAUSES_H_
