// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// Disk requests, from issue to completion, and which disk last completed one on a
// CPU: whoever is woken there next, from an interrupt, was waiting for it.
#ifndef CULPRIT_RECORD_BPF_DISKS_H_
#define CULPRIT_RECORD_BPF_DISKS_H_

#include "architecture.h"
#include "stacks.h"

// The disk that last completed a request on this CPU.
struct LastDisk {
  uint64_t time_ns;
  uint32_t device;
  uint32_t pad;
};
enum { kDiskMemoryNs = 100000 };

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct LastDisk);
} last_disk SEC(".maps");

struct IssuedRequest {
  uint64_t time_ns;
  uint64_t user_stack;
  uint64_t kernel_stack;
  uint32_t tid;
  uint32_t pad;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, uint64_t);
  __type(value, struct IssuedRequest);
} requests SEC(".maps");

static __always_inline uint32_t device_of(struct request *request) {
  if (bpf_core_field_exists(request->q->disk)) {
    const struct gendisk *disk = request->q->disk;
    return disk ? (uint32_t)disk->major << 20 | (uint32_t)disk->first_minor : 0;
  }
  const struct gendisk *disk = BPF_CORE_READ((struct request___rq_disk *)request, rq_disk);
  if (!disk) return 0;
  return (uint32_t)BPF_CORE_READ(disk, major) << 20 | (uint32_t)BPF_CORE_READ(disk, first_minor);
}

static __always_inline int see_issue(void *ctx, struct request *request, bool direct) {
  const uint64_t now = clock_ns();
  if (!is_recorded_at(now)) return 0;
  const uint32_t count = preempt_count();
  if (bpf_get_current_pid_tgid() >> 32 == self_tgid) return 0;
  struct IssuedRequest issued = {.time_ns = now};
  if (!(count & (kHardIrqMask | kServingSoftIrq))) {
    struct task_struct *task = bpf_get_current_task_btf();
    issued.tid = task->pid;
    // A disk is busy for whomever; but why is only asked of those recorded.
    if (is_target(task)) {
      issued.kernel_stack = recall_kernel_stack(ctx, kBlockSlot, false, direct);
      if (!is_kernel_thread(task)) issued.user_stack = recall_user_stack(ctx, kBlockSlot, now);
    }
  }
  const uint64_t key = (uint64_t)request;
  bpf_map_update_elem(&requests, &key, &issued, BPF_ANY);
  end_run(kBlockMeter, now);
  return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *request) { return see_issue(ctx, request, false); }

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue_direct, struct request *request) { return see_issue(ctx, request, true); }

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request, int error, unsigned int bytes) {
  const uint64_t now = clock_ns();
  const uint32_t zero = 0;
  const uint32_t device = device_of(request);
  struct LastDisk *disk = bpf_map_lookup_elem(&last_disk, &zero);
  if (disk) {
    disk->time_ns = now;
    disk->device = device;
  }
  const uint64_t key = (uint64_t)request;
  struct IssuedRequest *issued = bpf_map_lookup_elem(&requests, &key);
  if (!issued) return 0;
  struct BlockRecord *record = is_recorded_at(now) ? reserve(sizeof(*record)) : 0;
  if (record) {
    fill_head(&record->head, kBlockRecord, now, issued->tid);
    record->issue_ns = issued->time_ns;
    record->sector = request->__sector;
    record->user_stack = issued->user_stack;
    record->kernel_stack = issued->kernel_stack;
    record->device = device;
    record->bytes = bytes;
    record->operation = request->cmd_flags & 0xff;
    record->pad = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  }
  bpf_map_delete_elem(&requests, &key);
  end_run(kBlockMeter, now);
  return 0;
}

#endif  // CULPRIT_RECORD_BPF_DISKS_H_
