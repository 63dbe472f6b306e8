// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// The kernel's types as far as the programs touch them. Offsets are not those
// written here: preserve_access_index makes the loader take them from the
// running kernel's BTF, field by field, by name. So one object fits all kernels
// that have these fields, and no generated header of one kernel is needed. What
// only some kernels have is asked for with bpf_core_field_exists.
#ifndef CULPRIT_RECORD_BPF_KERNEL_TYPES_H_
#define CULPRIT_RECORD_BPF_KERNEL_TYPES_H_

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
typedef __s32 int32_t;
typedef __s64 int64_t;
typedef _Bool bool;
enum { false, true };

enum bpf_map_type {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PERCPU_HASH = 5,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
  BPF_MAP_TYPE_RINGBUF = 27,
  BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_F_USER_STACK = 256 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

enum {
  kTaskDead = 0x80,         // TASK_DEAD
  kKernelThread = 0x200000  // PF_KTHREAD
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct preempt_halves {
  uint32_t count;
  uint32_t need_resched;
};
struct thread_info {
  uint64_t preempt_count;  // arm64; x86-64 has it in a variable of each CPU
};
struct kernfs_node {
  uint64_t id;
};
struct cgroup {
  struct kernfs_node *kn;
};

struct rq;
struct cfs_rq {
  struct rq *rq;
};
struct sched_entity {
  uint64_t sum_exec_runtime;
  struct cfs_rq *cfs_rq;
};
struct sched_info {
  unsigned long long run_delay;
};

// Where a thread that does not run left its stack.
struct cpu_context {
  unsigned long fp;
  unsigned long sp;
  unsigned long pc;
};
struct thread_struct {
  struct cpu_context cpu_context;  // arm64
  unsigned long sp;                // x86-64
};

struct task_struct {
  struct thread_info thread_info;
  struct thread_struct thread;
  unsigned int __state;
  unsigned int flags;
  int on_cpu;
  int pid;
  int tgid;
  struct task_struct *group_leader;
  uint64_t start_time;
  uint64_t self_exec_id;
  struct sched_entity se;
  struct sched_info sched_info;  // not in every kernel
  unsigned long nvcsw;
  unsigned long nivcsw;
  struct files_struct *files;
  char comm[16];
};
// Before 5.14.
struct task_struct___state {
  long state;
};

struct gendisk {
  int major;
  int first_minor;
};
struct request_queue {
  struct gendisk *disk;
};
struct request {
  struct request_queue *q;
  unsigned int cmd_flags;
  unsigned int __data_len;
  uint64_t __sector;
};
// Before 5.17 a request, not its queue, knew the disk.
struct request___rq_disk {
  struct gendisk *rq_disk;
};

struct super_block {
  unsigned long s_magic;
};
struct inode {
  struct super_block *i_sb;
  unsigned long i_ino;
};
struct file {
  struct inode *f_inode;
};
struct fdtable {
  unsigned int max_fds;
  struct file **fd;
};
struct files_struct {
  struct fdtable *fdt;
};
struct seq_file;
struct bpf_iter_meta {
  struct seq_file *seq;
  uint64_t session_id;
  uint64_t seq_num;
};
struct bpf_iter__task {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
};
struct bpf_perf_event_data {};

#if defined(__TARGET_ARCH_arm64)
struct pt_regs {
  uint64_t regs[31];
  uint64_t sp;
  uint64_t pc;
  uint64_t pstate;
  int syscallno;
};
#elif defined(__TARGET_ARCH_x86)
struct pt_regs {
  unsigned long r15;
  unsigned long r14;
  unsigned long bp;
  unsigned long dx;
  unsigned long si;
  unsigned long di;
  unsigned long orig_ax;
  unsigned long ip;
  unsigned long sp;
};
#else
#error "no description of pt_regs for this architecture"
#endif

#pragma clang attribute pop

// After the types that they need.
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#endif  // CULPRIT_RECORD_BPF_KERNEL_TYPES_H_
