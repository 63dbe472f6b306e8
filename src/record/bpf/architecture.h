// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// What differs between arm64 and x86-64: the registers of a thread in the
// kernel, and where the count lives that tells interrupts from threads.
#ifndef CULPRIT_RECORD_BPF_ARCHITECTURE_H_
#define CULPRIT_RECORD_BPF_ARCHITECTURE_H_

#include "kernel_types.h"

enum { kServingSoftIrq = 0x100, kHardIrqMask = 0xff0000 };

struct UserRegisters {
  uint64_t program_counter;
  uint64_t stack_pointer;
  uint64_t frame_pointer;
  uint64_t link_register;
  bool in_syscall;  // else it came into the kernel by a fault or an interrupt
};

// Of the system call that a thread is about to make.
struct SyscallArguments {
  uint64_t first;
  uint64_t second;
  uint64_t third;
};

#if defined(__TARGET_ARCH_arm64)

static __always_inline struct UserRegisters user_registers(struct task_struct *task) {
  struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
  struct UserRegisters result = {.program_counter = regs->pc,
                                 .stack_pointer = regs->sp,
                                 .frame_pointer = regs->regs[29],
                                 .link_register = regs->regs[30],
                                 .in_syscall = regs->syscallno != -1};
  return result;
}

// A frame pointer points to the lowest words of its frame: where the caller's frame
// begins it does not tell.
enum { kFrameEndsAtPointer = 0 };

// Bits that sign a return address stand above those that address.
static __always_inline uint64_t without_signature(uint64_t address) {
  return address & ((1ull << 48) - 1);
}

// From the frame that the kernel made for a signal handler: 128 bytes about the
// signal, 184 up to the first register.
static __always_inline bool read_signal_frame(uint64_t frame, struct UserRegisters *registers) {
  uint64_t saved[4] = {};
  if (bpf_probe_read_user(saved, sizeof(saved), (const void *)(frame + 312 + 29 * 8)) != 0) {
    return false;
  }
  registers->frame_pointer = saved[0];
  registers->link_register = saved[1];
  registers->stack_pointer = saved[2];
  registers->program_counter = saved[3];
  return true;
}

// Of a thread that does not run.
static __always_inline uint64_t kernel_stack_pointer(struct task_struct *task) {
  return task->thread.cpu_context.sp;
}

// The kernel's own frames: a pair of the caller's frame pointer and the return address.
enum { kKernelKeepsFramePointers = 1 };

static __always_inline uint64_t kernel_frame_pointer(struct task_struct *task) {
  return task->thread.cpu_context.fp;
}

static __always_inline uint64_t kernel_program_counter(struct task_struct *task) {
  return task->thread.cpu_context.pc;
}

static __always_inline bool is_kernel_address(uint64_t address) { return address >> 48 == 0xffff; }

// A word of a kernel stack as an address: without its signature, if it has one.
static __always_inline uint64_t kernel_address(uint64_t word) { return word | 0xffffull << 48; }

static __always_inline uint64_t first_word(const struct pt_regs *words) { return words->regs[0]; }
static __always_inline uint64_t second_word(const struct pt_regs *words) { return words->regs[1]; }

enum { kWriteCall = 64 };

static __always_inline struct SyscallArguments syscall_arguments(struct pt_regs *regs) {
  struct SyscallArguments arguments = {
      .first = regs->regs[0], .second = regs->regs[1], .third = regs->regs[2]};
  return arguments;
}

static __always_inline uint32_t preempt_count(void) {
  struct task_struct *task = bpf_get_current_task_btf();
  return (uint32_t)task->thread_info.preempt_count;
}

#elif defined(__TARGET_ARCH_x86)

// It is a variable of each CPU, as the CPU's run queue is, and so far from that
// (cpu_variables.h): not every kernel tells programs where such variables are.
const volatile int64_t preempt_count_from_queue = 0;

static __always_inline struct UserRegisters user_registers(struct task_struct *task) {
  struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
  struct UserRegisters result = {.program_counter = regs->ip,
                                 .stack_pointer = regs->sp,
                                 .frame_pointer = regs->bp,
                                 .link_register = 0,
                                 .in_syscall = (long)regs->orig_ax != -1};
  return result;
}

// A frame pointer points to the highest words of its frame.
enum { kFrameEndsAtPointer = 1 };

static __always_inline uint64_t without_signature(uint64_t address) { return address; }

// From the ucontext that the kernel made for a signal handler.
static __always_inline bool read_signal_frame(uint64_t frame, struct UserRegisters *registers) {
  uint64_t saved[2] = {};
  if (bpf_probe_read_user(saved, sizeof(saved), (const void *)(frame + 160)) != 0) return false;
  registers->stack_pointer = saved[0];
  registers->program_counter = saved[1];
  return bpf_probe_read_user(&registers->frame_pointer, sizeof(registers->frame_pointer),
                             (const void *)(frame + 120)) == 0;
}

static __always_inline uint64_t kernel_stack_pointer(struct task_struct *task) {
  return task->thread.sp;
}

// Its frames are found by tables of its own.
enum { kKernelKeepsFramePointers = 0 };

static __always_inline uint64_t kernel_frame_pointer(struct task_struct *task) { return 0; }
static __always_inline uint64_t kernel_program_counter(struct task_struct *task) { return 0; }
static __always_inline bool is_kernel_address(uint64_t address) { return address >> 47 == 0x1ffff; }

static __always_inline uint64_t kernel_address(uint64_t word) { return word; }

static __always_inline uint64_t first_word(const struct pt_regs *words) { return words->r15; }
static __always_inline uint64_t second_word(const struct pt_regs *words) { return words->r14; }

enum { kWriteCall = 1 };

static __always_inline struct SyscallArguments syscall_arguments(struct pt_regs *regs) {
  struct SyscallArguments arguments = {.first = regs->di, .second = regs->si, .third = regs->dx};
  return arguments;
}

static __always_inline uint32_t preempt_count(void) {
  struct task_struct *task = bpf_get_current_task_btf();
  const char *queue = (const char *)task->se.cfs_rq->rq;
  uint32_t count = 0;
  bpf_probe_read_kernel(&count, sizeof(count), queue + preempt_count_from_queue);
  return count;
}

#endif
#endif  // CULPRIT_RECORD_BPF_ARCHITECTURE_H_
