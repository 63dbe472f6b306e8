// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// What programs tell of themselves: what they write to trace_marker, and the USDT
// probes in them that the recorder was asked to watch.
#ifndef CULPRIT_RECORD_BPF_MARKS_H_
#define CULPRIT_RECORD_BPF_MARKS_H_

#include "architecture.h"
#include "maps.h"

// The kernel's own code for trace_marker cannot be probed, but what leads to it
// can: the function that all writes go through or, where functions cannot be
// probed at all, the system call. Only one of the two programs is loaded.
enum { kTraceFsMagic = 0x74726163 };
const volatile uint64_t marker_inode = 0;

static __always_inline bool is_marker(struct file *file) {
  struct inode *inode = BPF_CORE_READ(file, f_inode);
  return BPF_CORE_READ(inode, i_ino) == marker_inode &&
         BPF_CORE_READ(inode, i_sb, s_magic) == kTraceFsMagic;
}

static __always_inline void tell_mark(const char *text, uint64_t length) {
  const uint64_t now = clock_ns();
  if (!is_within_recording(now)) return;
  struct MarkRecord *record = reserve(sizeof(*record));
  if (!record) return;
  const uint64_t ids = bpf_get_current_pid_tgid();
  fill_head(&record->head, kMarkRecord, now, (uint32_t)ids);
  record->tgid = ids >> 32;
  uint32_t bytes = length < kMaxMarkBytes ? (uint32_t)length : kMaxMarkBytes;
  // The verifier must see the bound.
  asm volatile("%0 &= 0x1ff" : "+r"(bytes));
  if (bytes > kMaxMarkBytes) bytes = kMaxMarkBytes;
  record->length = bpf_probe_read_user(record->text, bytes, text) == 0 ? bytes : 0;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

SEC("fentry/vfs_write")
int BPF_PROG(on_write, struct file *file, const char *text, uint64_t length) {
  if (is_marker(file)) tell_mark(text, length);
  return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_write_call, struct pt_regs *regs, long number) {
  if (number != kWriteCall) return 0;
  const struct SyscallArguments call = syscall_arguments(regs);
  const uint32_t descriptor = call.first;
  struct task_struct *task = bpf_get_current_task_btf();
  struct fdtable *table = BPF_CORE_READ(task, files, fdt);
  if (descriptor >= BPF_CORE_READ(table, max_fds)) return 0;
  struct file *file = 0;
  struct file **slot = BPF_CORE_READ(table, fd) + descriptor;
  bpf_probe_read_kernel(&file, sizeof(file), slot);
  if (file && is_marker(file)) tell_mark((const char *)call.second, call.third);
  return 0;
}

SEC("uprobe")
int on_probe(struct pt_regs *ctx) {
  const uint64_t now = clock_ns();
  struct task_struct *task = bpf_get_current_task_btf();
  if (!is_within_recording(now) || !is_target(task)) return 0;
  struct ProbeRecord *record = reserve(sizeof(*record));
  if (!record) return 0;
  fill_head(&record->head, kProbeRecord, now, task->pid);
  record->cookie = bpf_get_attach_cookie(ctx);
  record->tgid = task->tgid;
  record->pad = 0;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  end_run(kProbeMeter, now);
  return 0;
}

#endif  // CULPRIT_RECORD_BPF_MARKS_H_
