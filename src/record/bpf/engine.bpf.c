// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// The kernel side of the recorder: who runs when and where, who waits with
// which stack and is woken by whom, samples, system calls, disk requests, marks.
// records.h says what goes into the ring; the recorder (bpf_engine.cc) loads,
// steers and reads.
//
// A wait is one record, made when the thread gets a CPU again. The kernel part of its
// stack is taken at the switch-in, from the sleeping thread. The user part is taken at the
// switch-out, with the thread's memory in the caches, where all waits are recorded; else
// when the switch-in is over (on_resume) and its memory is at hand again, so that of a wait
// too short to be recorded neither part is taken. Older kernels do not tell when a
// switch is over: there it is always taken at the switch-out.
//
// What the recorded programs pay is not only the time of these programs but also what they
// drive out of the caches. So whatever is rare is a function of its own (__noinline), out
// of the way of what is done at every switch.
#include "architecture.h"
#include "disks.h"
#include "maps.h"
#include "marks.h"
#include "pauses.h"
#include "stacks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { kNoCpu = 0xffff, kHiddenNs = 2000000 };

// The kernel makes no storage while this CPU is at work on another's, which can
// happen under a switch: it is made beforehand (prepare_threads, on_fork) so that
// no switch needs it.
static __always_inline struct ThreadState *storage_of(struct task_struct *task) {
  struct ThreadState *state =
      bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!state) COUNT(no_storage, 1);
  return state;
}

// A thread that is met for the first time, made since the recording began, but not
// when it was made: that was in a pause, or the kernel had no memory for its state.
// What it did is known as sums: up to the end of the pause, else up to now.
static __always_inline void meet_late(struct ThreadState *state, struct task_struct *task,
                                      bool on_cpu, uint64_t now) {
  const bool in_pause = task->start_time < policy.resume_ns;
  state->out_ns = task->start_time;
  state->out_cpu = kNoCpu;
  state->told_ns = task->start_time;
  state->flags = kNewThread;  // unless it has run since
  catch_up(state, task, on_cpu, in_pause ? at_most(policy.resume_ns, now) : now, now);
}

// Some kernels hide switches. Who is met on a CPU, but has by the kernel's totals
// used far less since the recording began, has got it since: that time is known as
// sums. Totals that are not up to date do no harm: the sum is then the same.
static __always_inline void leave_out_hidden(struct ThreadState *state, struct task_struct *task,
                                             uint64_t now) {
  const uint64_t ran_ns = since(task->se.sum_exec_runtime, state->kernel_run_ns);
  if (!state->kernel_switches || ran_ns * 2 + kHiddenNs >= since(now, state->in_ns)) return;
  leave_out_pause(state, task, true, now, now);
  state->in_ns = now;
}

static __noinline void tell_resumed(struct ThreadState *state, uint32_t tid);

// One that was there before the recording began, and is met for the first time, has
// been as it is now since then.
static __noinline void meet_again(struct ThreadState *state, struct task_struct *task, bool on_cpu,
                                  uint64_t now) {
  if (!state) return;
  if (!state->known) {
    state->known = 1;
    state->pauses = policy.pauses;
    if (task->start_time > policy.begin_ns) {
      meet_late(state, task, on_cpu, now);
    } else if (on_cpu) {
      state->in_ns = policy.begin_ns;
      leave_out_hidden(state, task, now);
      note_totals(state, task);
    } else {
      state->out_ns = policy.begin_ns;
      state->out_cpu = kNoCpu;
      state->flags = kSinceBegin;
      note_totals(state, task);
    }
  }
  if (state->pauses != policy.pauses) {
    tell_resumed(state, task->pid);
    catch_up(state, task, on_cpu, at_most(policy.resume_ns, now), now);
  }
}

// The state of a thread.
static __always_inline struct ThreadState *state_of(struct task_struct *task, bool on_cpu,
                                                    uint64_t now) {
  struct ThreadState *state = storage_of(task);
  if (!state) return 0;
  if (!state->known || state->pauses != policy.pauses) meet_again(state, task, on_cpu, now);
  return state;
}

static __always_inline unsigned int state_bits(struct task_struct *task) {
  if (bpf_core_field_exists(task->__state)) return task->__state;
  return (unsigned int)BPF_CORE_READ((struct task_struct___state *)task, state);
}

static __always_inline void forget_wake_up(struct ThreadState *state) {
  state->wake_ns = 0;
  state->waker_tid = 0;
  state->wake_device = 0;
  state->waker_user_stack = 0;
  state->waker_kernel_stack = 0;
  state->flags &= ~(kWakeHardIrq | kWakeSoftIrq | kWakeEarly);
}

// ---- time that is not told by a record of its own ---------------------------

// Often enough that samples find their place.
enum { kTellLeftOutNs = 100000000 };

static __always_inline void leave_out(struct ThreadState *state, uint64_t now, bool lost) {
  uint64_t wake_ns = now;
  if (state->flags & kWasRunnable)
    wake_ns = state->out_ns;
  else if (state->wake_ns)
    wake_ns = state->wake_ns > state->out_ns ? state->wake_ns : state->out_ns;
  state->left_wait_ns += wake_ns - state->out_ns;
  state->left_ready_ns += now - wake_ns;
  state->left_count += 1;
  if (!(state->flags & kWasRunnable)) state->left_waits += 1;
  state->left_lost += lost;
  COUNT(left_out, 1);
}

// One of many that are left out, to be told in their place. Chance decides how much waiting
// lies between two of them: what waits by the clock must not be met at the same wait always.
static __always_inline bool is_stand_in(struct ThreadState *state, uint64_t now) {
  if (state->flags & kWasRunnable) return false;
  state->unseen_ns += now - state->out_ns;
  if (state->unseen_ns < kStandInNs) return false;
  state->unseen_ns = bpf_get_prandom_u32() % kStandInNs;
  state->stands = 1;
  return true;
}

// Of a wait that is told. A thread whose short waits are not even looked at has other ones.
static __always_inline void note_stand_in(struct ThreadState *state) {
  const bool is_chosen = state->stands;
  state->stands = 0;
  if (policy.min_wait_ns == 0 || (state->flags & (kWasRunnable | kNewThread))) return;
  if (state->left_epoch == (uint16_t)policy.epoch) {
    if (!is_chosen && state->left_is_chosen) return;
    // Who was not met in time has no user stack.
    if (!state->user_stack && state->left_user_stack) return;
  }
  state->left_epoch = policy.epoch;
  state->left_is_chosen = is_chosen;
  state->left_user_stack = state->user_stack;
  state->left_kernel_stack = state->kernel_stack;
}

static __noinline bool tell_sums(struct ThreadState *state, uint32_t tid, uint64_t end_ns,
                                 bool runs) {
  if (!state) return false;
  struct LeftOutRecord *record = reserve(sizeof(*record));
  if (!record) return false;
  fill_head(&record->head, kLeftOutRecord, end_ns, tid);
  if (!runs) record->head.cpu = kNoCpu;
  record->run_ns = state->run_ns;
  record->wait_ns = state->left_wait_ns;
  record->ready_ns = state->left_ready_ns;
  const bool is_told = state->left_epoch == (uint16_t)policy.epoch;
  record->user_stack = is_told ? state->left_user_stack : 0;
  record->kernel_stack = is_told ? state->left_kernel_stack : 0;
  record->count = state->left_count;
  record->waits = state->left_waits;
  record->lost = state->left_lost;
  record->pad = 0;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  state->left_wait_ns = 0;
  state->left_ready_ns = 0;
  state->left_count = 0;
  state->left_waits = 0;
  state->left_lost = 0;
  state->run_ns = 0;
  state->told_ns = end_ns;
  return true;
}

// `runs`: from end_ns on it is on this CPU.
static __always_inline bool tell_left_out(struct ThreadState *state, uint32_t tid, uint64_t end_ns,
                                          bool runs) {
  return !state->left_count || tell_sums(state, tid, end_ns, runs);
}

// ---- switches ---------------------------------------------------------------

static __always_inline void fill_wait(struct WaitRecord *record, struct ThreadState *state,
                                      uint64_t now, uint32_t tid) {
  fill_head(&record->head, kWaitRecord, now, tid);
  record->head.flags = state->flags;
  record->out_ns = state->out_ns;
  record->wake_ns = state->wake_ns;
  record->user_stack = state->user_stack;
  record->kernel_stack = state->kernel_stack;
  record->waker_user_stack = state->waker_user_stack;
  record->waker_kernel_stack = state->waker_kernel_stack;
  record->waker_tid = state->waker_tid;
  record->holder_tid = state->holder_tid;
  record->wake_device = state->wake_device;
  record->waker_cpu = state->waker_cpu;
  record->out_cpu = state->out_cpu;
}

static __noinline void tell_gone(struct ThreadState *state, uint64_t now, uint32_t tid) {
  if (!state) return;
  state->out_ns = now;
  state->gone = 1;
  if (!tell_left_out(state, tid, state->out_ns, false)) return;
  struct GoneRecord *record = reserve(sizeof(*record));
  if (!record) return;
  fill_head(&record->head, kGoneRecord, now, tid);
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

// Where only long waits are recorded, that somebody was preempted is, too, but not
// where.
static __always_inline bool is_worth_a_stack(bool was_runnable) {
  return !was_runnable || policy.min_wait_ns == 0;
}

static __always_inline bool has_user_stack(struct task_struct *task,
                                           const struct ThreadState *state) {
  return !is_kernel_thread(task) && !(state->flags & kNewThread) &&
         is_worth_a_stack(state->flags & kWasRunnable);
}

// Before it is known how long a wait is.
static __always_inline bool is_taken_at_switch_out(void) {
  return !sees_resumes || policy.min_wait_ns == 0;
}

// A process that has just begun has no unwind tables yet: what it does then is known by frame
// pointers, if it has any. Long waits are so few that each can be asked about.
enum { kAskForTablesNs = 2000000 };
static __noinline bool has_other_tables_since(uint32_t tgid, uint64_t time_ns) {
  const struct UnwindProcess *process = bpf_map_lookup_elem(&unwind_processes, &tgid);
  return process && process->listed_ns > time_ns;
}

// Under the name that it has now, by the tables of now.
static __always_inline bool is_user_stack_taken(struct task_struct *task,
                                                const struct ThreadState *state, uint64_t now) {
  if (!state->user_stack || state->stack_epoch != (uint16_t)policy.epoch) return false;
  if (now - state->out_ns < kAskForTablesNs || state->flags & kWasRunnable) return true;
  return !has_other_tables_since(task->tgid, state->out_ns);
}

// The wait that has ended at in_ns, when it got a CPU.
static __always_inline void tell_wait(struct ThreadState *state, uint64_t in_ns, uint32_t tid,
                                      uint16_t cpu) {
  note_stand_in(state);
  struct WaitRecord *record = 0;
  if (tell_left_out(state, tid, state->out_ns, false)) record = reserve(sizeof(*record));
  if (!record) {
    leave_out(state, in_ns, true);
    return;
  }
  fill_wait(record, state, in_ns, tid);
  record->head.cpu = cpu;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  state->run_ns = 0;
  state->told_ns = in_ns;
}

static __always_inline void end_wait(struct ThreadState *state) {
  forget_wake_up(state);
  state->flags = 0;
  state->out_ns = 0;
  state->holder_tid = 0;
}

// Who has got a CPU and was not met since the switch was over: without the user's stack.
static __noinline void tell_resumed(struct ThreadState *state, uint32_t tid) {
  if (!state || !state->resumes) return;
  state->resumes = 0;
  tell_wait(state, state->in_ns, tid, state->in_cpu);
  end_wait(state);
}

// `slept`: its registers are as it left them. `direct`: see read_kernel_word.
static __always_inline void get_cpu(struct task_struct *task, uint32_t prev_tid, uint64_t now,
                                    bool slept, bool direct) {
  struct ThreadState *state = state_of(task, false, now);
  if (!state) return;
  const uint32_t tid = task->pid;
  if (!state->out_ns) {
    state->out_ns = state->in_ns;
    state->flags |= kSwitchOutLost;
    state->run_ns = 0;
  }
  // Nobody woke it since: it was only waiting for a CPU.
  if ((state->flags & kSinceBegin) && !state->wake_ns) state->flags |= kWasRunnable;
  const bool is_short =
      now - state->out_ns < policy.min_wait_ns && !(state->flags & (kSinceBegin | kNewThread));
  if (is_short && !is_stand_in(state, now)) {
    leave_out(state, now, false);
    if (now - state->told_ns > kTellLeftOutNs) tell_left_out(state, tid, now, true);
  } else {
    if (!state->holder_tid) state->holder_tid = prev_tid;
    if (!(state->flags & kNewThread) && is_worth_a_stack(state->flags & kWasRunnable) &&
        !state->kernel_stack && slept) {
      state->kernel_stack = recall_kernel_stack_of(task, kSwitchSlot, direct);
    }
    if (sees_resumes && slept && !is_user_stack_taken(task, state, now) && has_user_stack(task, state)) {
      state->user_stack = 0;
      state->flags &= ~kLeafApart;
      state->in_ns = now;
      state->in_cpu = bpf_get_smp_processor_id();
      state->resumes = 1;
      note_totals(state, task);
      expect_resume();
      return;
    }
    tell_wait(state, now, tid, bpf_get_smp_processor_id());
  }
  end_wait(state);
  state->in_ns = now;
  note_totals(state, task);
}

// Of a thread that was believed to sleep.
static __noinline void get_cpu_unseen(struct task_struct *task, uint64_t now) {
  get_cpu(task, 0, now, false, false);
}

// Who is interrupted is so anywhere, and hardly twice in one place.
static __always_inline void find_interrupted(void *ctx, struct ThreadState *state, uint32_t slot) {
  uint64_t leaf = 0;
  state->user_stack = capture_user_stack(ctx, slot, &leaf);
  if (!state->user_stack) return;
  state->user_leaf = leaf;
  state->flags |= kLeafApart;
}

// The current thread's user stack, in a wait.
static __always_inline void find_waiter(void *ctx, struct task_struct *task,
                                        struct ThreadState *state, uint32_t slot, uint64_t now) {
  if (user_registers(task).in_syscall) {
    state->user_stack = recall_user_stack(ctx, slot, now);
  } else if (state->flags & kWasRunnable) {
    find_interrupted(ctx, state, slot);
  } else {
    state->user_stack = capture_user_stack(ctx, slot, 0);
  }
}

static __always_inline void leave_cpu(void *ctx, struct task_struct *task, uint32_t next_tid,
                                      uint64_t now, bool preempt) {
  struct ThreadState *state = state_of(task, true, now);
  if (!state) return;
  if (state->resumes) tell_resumed(state, task->pid);
  // The switch-in came just before the recording.
  if (state->out_ns) get_cpu_unseen(task, now);
  const uint64_t ran_ns = since(now, state->in_ns);
  state->run_ns += ran_ns;
  COUNT(busy_ns, ran_ns);
  const unsigned int bits = state_bits(task);
  if (bits & kTaskDead) {
    if (!state->gone) tell_gone(state, now, task->pid);
    return;
  }
  const bool runnable = preempt || bits == 0;
  if (runnable) forget_wake_up(state);
  note_totals(state, task);
  state->out_ns = now;
  state->out_cpu = bpf_get_smp_processor_id();
  state->flags =
      (state->flags & (kWakeHardIrq | kWakeSoftIrq | kWakeEarly)) | (runnable ? kWasRunnable : 0);
  state->holder_tid = runnable ? next_tid : 0;
  state->user_stack = 0;
  state->kernel_stack = 0;
  if (is_taken_at_switch_out() && has_user_stack(task, state)) {
    state->stack_epoch = policy.epoch;
    find_waiter(ctx, task, state, kSwitchSlot, now);
  }
}

static __always_inline int see_switch(void *ctx, bool preempt, struct task_struct *prev,
                                      struct task_struct *next, bool direct) {
  const uint64_t now = clock_ns();
  if (!is_recorded_at(now)) return 0;
  if (prev->pid && is_target(prev)) leave_cpu(ctx, prev, next->pid, now, preempt);
  if (next->pid && is_target(next)) get_cpu(next, prev->pid, now, true, direct);
  end_run(kSwitchMeter, now);
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next) {
  return see_switch(ctx, preempt, prev, next, false);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_direct, bool preempt, struct task_struct *prev, struct task_struct *next) {
  return see_switch(ctx, preempt, prev, next, true);
}

// The switch is over, for the thread that has got the CPU.
SEC("tp_btf/sched_exit_tp")
int BPF_PROG(on_resume, bool is_switch) {
  if (!is_resume_expected()) return 0;
  struct task_struct *task = bpf_get_current_task_btf();
  struct ThreadState *state = bpf_task_storage_get(&threads, task, 0, 0);
  if (!state || !state->resumes) return 0;
  const uint64_t begin_ns = begin_run(kResumeMeter);
  state->resumes = 0;
  find_waiter(ctx, task, state, kResumeSlot, state->in_ns);
  tell_wait(state, state->in_ns, task->pid, state->in_cpu);
  end_wait(state);
  end_run(kResumeMeter, begin_ns);
  return 0;
}

// ---- wake-ups ---------------------------------------------------------------

static __always_inline void note_waker(void *ctx, struct ThreadState *state, uint64_t now,
                                       bool with_stacks, bool direct) {
  const uint32_t count = preempt_count();
  const bool hard = (count & kHardIrqMask) != 0;
  const bool soft = (count & kServingSoftIrq) != 0;
  struct task_struct *current = bpf_get_current_task_btf();
  state->wake_ns = now;
  state->waker_tid = current->pid;
  state->waker_cpu = bpf_get_smp_processor_id();
  state->waker_user_stack = 0;
  state->waker_kernel_stack = 0;
  state->wake_device = 0;
  if (hard) state->flags |= kWakeHardIrq;
  if (soft) state->flags |= kWakeSoftIrq;
  if (hard || soft) {
    const uint32_t zero = 0;
    const struct LastDisk *disk = bpf_map_lookup_elem(&last_disk, &zero);
    if (disk && now - disk->time_ns < kDiskMemoryNs) state->wake_device = disk->device;
  }
  if (!with_stacks) return;
  // Of an interrupt the stack tells which device it was.
  if (hard) {
    state->waker_kernel_stack = has_kernel_chains(direct)
                                    ? kernel_chain(ctx, kWakingSlot, 2)
                                    : capture_kernel_stack(ctx, kWakingSlot, true);
  } else if (policy.waker_stacks || soft) {
    state->waker_kernel_stack = recall_kernel_stack(ctx, kWakingSlot, soft, direct);
  }
  if (policy.waker_stacks && !hard && current->pid && !is_kernel_thread(current)) {
    state->waker_user_stack = recall_user_stack(ctx, kWakingSlot, now);
  }
}

static __always_inline void wake(void *ctx, struct task_struct *task, uint64_t now, bool direct) {
  struct ThreadState *state = state_of(task, task->on_cpu, now);
  if (!state) return;
  if (!state->out_ns) {
    // It is about to wait, or thought better of it; the next switch tells.
    forget_wake_up(state);
    state->flags |= kWakeEarly;
    note_waker(ctx, state, now, policy.min_wait_ns == 0, direct);
    return;
  }
  if (state->wake_ns && !(state->flags & kWakeEarly)) return;
  if (state->flags & kWasRunnable) return;
  forget_wake_up(state);
  note_waker(ctx, state, now, now - state->out_ns >= policy.min_wait_ns, direct);
}

static __always_inline int see_waking(void *ctx, struct task_struct *task, bool direct) {
  const uint64_t now = clock_ns();
  if (!is_recorded_at(now)) return 0;
  if (is_target(task)) wake(ctx, task, now, direct);
  end_run(kWakingMeter, now);
  return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task) { return see_waking(ctx, task, false); }

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking_direct, struct task_struct *task) { return see_waking(ctx, task, true); }

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task) {
  const uint64_t now = clock_ns();
  if (!is_recorded_at(now) || !is_target(task)) return 0;
  struct ThreadState *state = storage_of(task);
  if (!state) return 0;
  state->known = 1;
  state->pauses = policy.pauses;
  state->out_ns = now;
  state->out_cpu = kNoCpu;
  state->told_ns = now;
  state->flags = kNewThread;
  note_totals(state, task);
  note_waker(ctx, state, now, false, false);
  // Too rare to be remembered.
  if (policy.waker_stacks) {
    state->waker_kernel_stack = capture_kernel_stack(ctx, kWakingSlot, false);
    if (!is_kernel_thread(bpf_get_current_task_btf())) {
      state->waker_user_stack = capture_user_stack(ctx, kWakingSlot, 0);
    }
  }
  end_run(kLifeMeter, now);
  return 0;
}

// ---- who is recorded --------------------------------------------------------

static __always_inline void add_target(uint32_t tgid) {
  const uint8_t member = 1;
  if (tgid != self_tgid) bpf_map_update_elem(&targets, &tgid, &member, BPF_ANY);
}

// An id can be given out again before the kernel is done with its former owner:
// on_free comes a grace period after the exit. So lives are counted.
static __always_inline void add_child(uint32_t tgid) {
  uint8_t *lives = bpf_map_lookup_elem(&targets, &tgid);
  if (lives) {
    *lives += 1;
  } else {
    add_target(tgid);
  }
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
  const uint64_t now = clock_ns();
  if (!whole_system && parent->tgid != child->tgid && is_target(parent)) add_child(child->tgid);
  if (is_target(child)) storage_of(child);
  end_run(kLifeMeter, now);
  return 0;
}

// Run before a recording begins.
SEC("iter/task")
int prepare_threads(struct bpf_iter__task *ctx) {
  struct task_struct *task = ctx->task;
  if (!task || !task->pid || !is_target(task)) return 0;
  struct ThreadState *state = storage_of(task);
  if (state && !state->known) note_totals(state, task);
  return 0;
}

// In a pause the last switch-out is not seen.
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task) {
  const uint64_t now = clock_ns();
  if (now < policy.begin_ns || now >= policy.resume_ns || now >= policy.end_ns) return 0;
  if (!is_target(task)) return 0;
  struct ThreadState *state = state_of(task, true, now);
  if (!state || state->gone) return 0;
  const uint64_t end_ns = clock_ns();
  leave_out_pause(state, task, true, end_ns, end_ns);
  tell_gone(state, end_ns, task->pid);
  return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task) {
  const uint32_t tgid = task->tgid;
  if (whole_system || task->pid != task->tgid) return 0;
  uint8_t *lives = bpf_map_lookup_elem(&targets, &tgid);
  if (lives && *lives > 1) {
    *lives -= 1;
  } else if (lives) {
    bpf_map_delete_elem(&targets, &tgid);
  }
  return 0;
}

static __always_inline bool has_wanted_name(const char *name) {
  for (uint32_t k = 0; k < kMaxNames; ++k) {
    if (k >= wanted_names) break;
    bool same = true;
    for (uint32_t i = 0; i < kNameBytes; ++i) {
      if (name[i] != wanted_name[k][i]) {
        same = false;
        break;
      }
      if (!name[i]) break;
    }
    if (same) return true;
  }
  return false;
}

// A thread that executes a program for its whole process becomes the process's
// first thread, and goes on under that one's number.
static __always_inline void take_number(struct task_struct *task, uint32_t old_tid) {
  const uint64_t now = clock_ns();
  if (!is_recorded_at(now) || !is_target(task)) return;
  struct ThreadState *state = state_of(task, true, now);
  if (!state || state->out_ns) return;
  state->run_ns += now - state->in_ns;
  COUNT(busy_ns, now - state->in_ns);
  state->in_ns = now;
  if (!tell_left_out(state, old_tid, now, true)) return;
  state->run_ns = 0;
  state->told_ns = now;
  struct GoneRecord *gone = reserve(sizeof(*gone));
  if (gone) {
    fill_head(&gone->head, kGoneRecord, now, old_tid);
    bpf_ringbuf_submit(gone, BPF_RB_NO_WAKEUP);
  }
  // From here on it is known under the new number, with nothing left out.
  struct LeftOutRecord *record = reserve(sizeof(*record));
  if (!record) return;
  fill_head(&record->head, kLeftOutRecord, now, task->pid);
  record->run_ns = record->wait_ns = record->ready_ns = 0;
  record->user_stack = record->kernel_stack = 0;
  record->count = record->waits = record->lost = record->pad = 0;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid) {
  char name[kNameBytes] = {};
  if (has_switches && old_tid != task->pid) take_number(task, old_tid);
  if (whole_system || !wanted_names) return 0;
  bpf_get_current_comm(name, sizeof(name));
  if (has_wanted_name(name)) add_target(task->tgid);
  return 0;
}

// ---- samples ----------------------------------------------------------------

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx) {
  const uint64_t now = clock_ns();
  struct task_struct *task = bpf_get_current_task_btf();
  if (!is_within_recording(now) || !task->pid || !is_target(task)) return 0;
  // Who never loses the CPU is met here.
  const struct ThreadState *state =
      is_recorded_at(now) ? state_of(task, true, now) : bpf_task_storage_get(&threads, task, 0, 0);
  // Its last record is made.
  if (state && state->gone) return 0;
  const uint64_t kernel_stack = capture_kernel_stack(ctx, kSampleSlot, false);
  uint64_t leaf = 0;
  const uint64_t callers = is_kernel_thread(task) ? 0 : capture_user_stack(ctx, kSampleSlot, &leaf);
  struct SampleRecord *record = reserve(sizeof(*record));
  if (!record) return 0;
  fill_head(&record->head, kSampleRecord, now, task->pid);
  record->kernel_stack = kernel_stack;
  record->user_callers = callers;
  record->user_leaf = leaf;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  end_run(kSampleMeter, now);
  return 0;
}

// ---- system calls -----------------------------------------------------------

#include "calls.h"

// ---- what a pause hides -----------------------------------------------------

// Run when a pause begins, for the totals of threads that were never met, and
// now and then in it.
SEC("iter/task")
int tell_pause(struct bpf_iter__task *ctx) {
  struct task_struct *task = ctx->task;
  if (!task || !task->pid || !is_target(task)) return 0;
  const bool on_cpu = task->on_cpu;
  struct ThreadState *state = state_of(task, on_cpu, clock_ns());
  if (!state || state->gone) return 0;
  tell_resumed(state, task->pid);
  tell_left_out(state, task->pid, on_cpu ? state->in_ns : state->out_ns, false);
  return 0;
}

// ---- what is open -----------------------------------------------------------

SEC("iter/task")
int tell_open(struct bpf_iter__task *ctx) {
  struct task_struct *task = ctx->task;
  if (!task || !task->pid || !is_target(task)) return 0;
  struct ThreadState *state = bpf_task_storage_get(&threads, task, 0, 0);
  const uint64_t now = clock_ns();
  struct OpenRecord record = {};
  // Made after the end of the recording, or in a pause in which it was not met.
  if (task->start_time >= policy.end_ns) return 0;
  if ((!state || !state->known) && task->start_time > policy.begin_ns) {
    state = state_of(task, task->on_cpu, at_most(now, policy.end_ns));
    if (!state) return 0;
  }
  const bool known = state && state->known;
  if (known && state->gone) return 0;
  if (known) tell_resumed(state, task->pid);
  if (known && state->pauses != policy.pauses) {
    catch_up(state, task, task->on_cpu, at_most(policy.resume_ns, now), now);
  }
  const bool on_cpu = known ? !state->out_ns : task->on_cpu && !has_samples;
  record.tgid = task->tgid;
  if (on_cpu) {
    record.flags = kOpenOnCpu;
  } else {
    const struct UserRegisters registers = user_registers(task);
    record.program_counter = registers.program_counter;
    record.stack_pointer = registers.stack_pointer;
    record.frame_pointer = registers.frame_pointer;
    record.link_register = registers.link_register;
  }
  if (known) {
    if (!tell_left_out(state, task->pid, on_cpu ? state->in_ns : state->out_ns, false)) return 0;
    if (!on_cpu && !state->kernel_stack) {
      state->kernel_stack = capture_kernel_stack_of(task, kIteratorSlot);
    }
    fill_wait(&record.wait, state, now, task->pid);
    record.syscall_enter_ns = state->syscall_ns;
    record.syscall_number = state->syscall_number;
    record.syscall_operation = state->syscall_operation;
    if (on_cpu) record.wait.out_ns = state->in_ns;
  } else {
    fill_head(&record.wait.head, kOpenRecord, now, task->pid);
    record.wait.head.flags = kSinceBegin | (state_bits(task) == 0 ? kWasRunnable : 0);
    record.wait.out_ns = policy.begin_ns;
    record.wait.out_cpu = kNoCpu;
    if (!on_cpu) record.wait.kernel_stack = capture_kernel_stack_of(task, kIteratorSlot);
  }
  record.wait.head.type = kOpenRecord;
  put(&record, sizeof(record));
  return 0;
}
