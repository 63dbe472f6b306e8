// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/wait_class.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "trace/small_trace.h"
#include "waitgraph/timelines_random.h"
#include "waitgraph/wait_class_rows.h"
#include "waitgraph/wait_class_table.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::EventKind;
using trace::SmallTrace;
using trace::StackId;
using trace::ThreadKind;

struct Case {
  const char* stack;
  WaitClass wait_class;
  WaitPurpose purpose;
  bool ambiguous = false;
};

// Stacks as recorded: kernels 3.19 to 6.18, x86-64 and arm64.
const std::vector<Case>& RecordedStacks() {
  using enum WaitClass;
  using P = WaitPurpose;
  static const std::vector<Case> cases = {
      {"[kernel]!el0_svc;[kernel]!__arm64_sys_futex;[kernel]!do_futex;[kernel]!futex_wait;"
       "[kernel]!__futex_wait;[kernel]!futex_do_wait;[kernel]!schedule;[kernel]!__schedule",
       kLock, P::kSync},
      {"[kernel]!do_syscall_64;[kernel]!__x64_sys_futex;[kernel]!do_futex;[kernel]!futex_wait;"
       "[kernel]!futex_wait_queue_me;[kernel]!schedule",
       kLock, P::kSync},
      {"postgres!PGSemaphoreLock;libc.so.6!sem_wait;[kernel]!__arm64_sys_futex;[kernel]!do_futex;"
       "[kernel]!futex_wait;[kernel]!futex_do_wait",
       kLock, P::kCondition},
      {"[kernel]!__do_page_fault;[kernel]!call_rwsem_down_read_failed;"
       "[kernel]!rwsem_down_read_failed;[kernel]!schedule",
       kLock, P::kWork},
      {"[kernel]!__x64_sys_mmap;[kernel]!vm_mmap_pgoff;[kernel]!rwsem_down_write_slowpath", kLock,
       P::kWork},
      {"[kernel]!fdatasync;[kernel]!file_write_and_wait_range;[kernel]!__filemap_fdatawait_range;"
       "[kernel]!folio_wait_writeback;[kernel]!folio_wait_bit_common;[kernel]!io_schedule",
       kDisk, P::kWork},
      {"[kernel]!ext4_sync_file;[kernel]!blkdev_issue_flush;[kernel]!submit_bio_wait;"
       "[kernel]!wait_for_completion_io_timeout;[kernel]!io_schedule_timeout;"
       "[kernel]!schedule_timeout;[kernel]!schedule",
       kDisk, P::kWork},
      {"[kernel]!kjournald2;[kernel]!jbd2_journal_commit_transaction;[kernel]!__wait_on_buffer;"
       "[kernel]!out_of_line_wait_on_bit;[kernel]!bit_wait_io;[kernel]!io_schedule",
       kDisk, P::kWork},
      {"[kernel]!handle_pte_fault;[kernel]!__do_fault;[kernel]!ext4_filemap_fault;"
       "[kernel]!filemap_fault;[kernel]!wait_on_page_bit_common;[kernel]!schedule",
       kFault, P::kStall},
      {"[kernel]!do_user_addr_fault;[kernel]!handle_mm_fault;[kernel]!do_swap_page;"
       "[kernel]!__folio_lock_or_retry;[kernel]!folio_wait_bit_common;[kernel]!io_schedule",
       kFault, P::kStall},
      {"[kernel]!__alloc_pages_slowpath.constprop.0;[kernel]!try_to_free_pages;"
       "[kernel]!shrink_node;[kernel]!reclaim_throttle;[kernel]!schedule_timeout",
       kMemory, P::kStall},
      {"[kernel]!exit_to_user_mode_loop;[kernel]!mem_cgroup_handle_over_high;"
       "[kernel]!schedule_timeout_killable",
       kMemory, P::kStall},
      {"[kernel]!__sys_recvfrom;[kernel]!tcp_recvmsg;[kernel]!tcp_recvmsg_locked;"
       "[kernel]!sk_wait_data;[kernel]!wait_woken;[kernel]!schedule_timeout",
       kNet, P::kExternal},
      {"[kernel]!SyS_recvmsg;[kernel]!sock_recvmsg;[kernel]!unix_stream_recvmsg;"
       "[kernel]!schedule_timeout",
       kIpc, P::kExternal},
      {"[kernel]!SyS_read;[kernel]!vfs_read;[kernel]!pipe_read;[kernel]!pipe_wait", kIpc,
       P::kExternal},
      {"[kernel]!__x64_sys_ioctl;[kernel]!binder_ioctl;[kernel]!binder_ioctl_write_read;"
       "[kernel]!binder_thread_read;[kernel]!binder_wait_for_work",
       kIpc, P::kExternal},
      {"[kernel]!__arm64_sys_epoll_pwait;[kernel]!do_epoll_pwait.part.0;[kernel]!do_epoll_wait;"
       "[kernel]!schedule_hrtimeout_range",
       kOther, P::kExternal, true},
      {"[kernel]!SyS_poll;[kernel]!do_sys_poll;[kernel]!poll_schedule_timeout;[kernel]!schedule",
       kOther, P::kExternal, true},
      {"[kernel]!__x64_sys_pselect6;[kernel]!do_pselect.constprop.0;[kernel]!core_sys_select;"
       "[kernel]!do_select",
       kOther, P::kExternal, true},
      {"[kernel]!__arm64_sys_clock_nanosleep;[kernel]!common_nsleep;[kernel]!hrtimer_nanosleep;"
       "[kernel]!do_nanosleep",
       kTimer, P::kTimer},
      {"[kernel]!__x64_sys_wait4;[kernel]!kernel_wait4;[kernel]!do_wait", kChild, P::kWork},
      {"[kernel]!__x64_sys_rt_sigsuspend;[kernel]!sigsuspend;[kernel]!schedule", kSignal,
       P::kExternal},
      {"[kernel]!fuse_do_getattr;[kernel]!fuse_simple_request;[kernel]!request_wait_answer", kIpc,
       P::kWork},
      {"[kernel]!ret_from_fork;[kernel]!kthread;[kernel]!worker_thread;[kernel]!schedule;"
       "[kernel]!__schedule",
       kOther, P::kExternal},
      {"[kernel]!kthread;[kernel]!worker_thread;[kernel]!process_one_work;"
       "[kernel]!page_reporting_process;[kernel]!schedule",
       kOther, P::kUnknown},
      {"[vboxguest]!vbg_hgcm_do_call;[kernel]!schedule_timeout;[kernel]!schedule", kOther,
       P::kUnknown},
      // No kernel frames.
      {"app!work;libpthread-2.31.so!pthread_cond_wait@@GLIBC_2.3.2", kLock, P::kCondition},
      {"app!work;libc.so.6!___pthread_mutex_lock;libc.so.6!__lll_lock_wait", kLock, P::kWork},
      {"app!work;libc.so.6!__libc_recv", kNet, P::kExternal, true},
      {"app!work;app!read;app!poll;app!wait", kOther, P::kUnknown},
      {"work;poll", kOther, P::kExternal, true},
      {"app.exe!Run;ntdll.dll!NtWaitForSingleObject;ntoskrnl.exe!KeWaitForSingleObject;"
       "ntoskrnl.exe!KiSwapThread",
       kLock, P::kSync},
      {"app.exe!Run;ntdll.dll!RtlEnterCriticalSection;ntdll.dll!NtWaitForAlertByThreadId", kLock,
       P::kWork},
      {"ntdll.dll!TppWorkerThread;ntdll.dll!NtWaitForWorkViaWorkerFactory", kOther, P::kExternal,
       true},
      // A simulated machine.
      {"fs.sys!Read;dp.sys!HoldUntilSettled;kernel!WaitForObject", kDisk, P::kWork},
      {"user32!GetMessage;ntdll!NtUserGetMessage;win32k.sys!WaitForInput", kIpc, P::kExternal,
       true},
  };
  return cases;
}

TEST(WaitClass, RecordedStacksAreOfTheirClass) {
  SmallTrace small(0, 1);
  std::vector<StackId> stacks;
  for (const Case& c : RecordedStacks()) stacks.push_back(small.Stack(c.stack));
  const StackClasses classes = ClassifyStacks(small.trace.dictionary);
  for (size_t i = 0; i < stacks.size(); ++i) {
    const Case& c = RecordedStacks()[i];
    const uint32_t id = stacks[i].value;
    EXPECT_EQ(Name(classes.by_stack[id]), Name(c.wait_class)) << c.stack;
    EXPECT_EQ(static_cast<int>(classes.purpose[id]), static_cast<int>(c.purpose)) << c.stack;
    EXPECT_EQ(classes.ambiguous[id], c.ambiguous) << c.stack;
  }
}

struct WakerCase {
  const char* waker;
  ThreadKind kind;
  const char* stack;
  WaitClass wait_class;
};

class PollEndedBy : public testing::TestWithParam<WakerCase> {};

TEST_P(PollEndedBy, TellsTheClass) {
  const WakerCase& c = GetParam();
  SmallTrace small(0, 10);
  const trace::ThreadId waker = small.Thread(c.waker, c.kind);
  trace::Event& wait = small.Add(EventKind::kWait, "server", 0, 10,
                                 "server!loop;libc.so.6!poll;[kernel]!do_sys_poll");
  wait.peer = waker;
  const StackId stack = small.Stack(c.stack);
  const StackClasses classes = ClassifyStacks(small.trace.dictionary);
  EXPECT_EQ(Name(ClassifyWait(small.trace.dictionary, classes, small.trace.events[0], stack)),
            Name(c.wait_class));
}

INSTANTIATE_TEST_SUITE_P(
    WaitClass, PollEndedBy,
    testing::Values(WakerCase{"[net]", ThreadKind::kDevice, "", WaitClass::kNet},
                    WakerCase{"[timer]", ThreadKind::kDevice, "", WaitClass::kTimer},
                    WakerCase{"[disk]", ThreadKind::kDevice, "", WaitClass::kDisk},
                    WakerCase{"[interrupt]", ThreadKind::kDevice, "", WaitClass::kOther},
                    WakerCase{"Timer", ThreadKind::kDevice, "", WaitClass::kTimer},
                    WakerCase{"ksoftirqd/1", ThreadKind::kKernel, "", WaitClass::kNet},
                    WakerCase{"client", ThreadKind::kUser, "", WaitClass::kIpc},
                    WakerCase{"client", ThreadKind::kUser,
                              "[kernel]!__sys_sendto;[kernel]!tcp_sendmsg;[kernel]!tcp_v4_rcv;"
                              "[kernel]!sock_def_readable;[kernel]!try_to_wake_up",
                              WaitClass::kNet},
                    WakerCase{"client", ThreadKind::kUser,
                              "[kernel]!__sys_sendto;[kernel]!unix_stream_sendmsg;"
                              "[kernel]!sock_def_readable;[kernel]!ep_poll_callback",
                              WaitClass::kIpc},
                    WakerCase{"client", ThreadKind::kUser,
                              "[kernel]!vfs_write;[kernel]!eventfd_write", WaitClass::kIpc},
                    WakerCase{"client", ThreadKind::kUser,
                              "postgres!SetLatch;libc.so.6!kill;[kernel]!do_send_sig_info;"
                              "[kernel]!send_signal_locked;[kernel]!ep_poll_callback",
                              WaitClass::kSignal},
                    WakerCase{"client", ThreadKind::kUser, "libc.so.6!__libc_send",
                              WaitClass::kNet}));

TEST(WaitClass, TheWakerDoesNotChangeAWaitThatIsClear) {
  SmallTrace small(0, 10);
  const trace::ThreadId waker = small.Thread("[timer]", ThreadKind::kDevice);
  small.Add(EventKind::kWait, "t", 0, 10, "[kernel]!mutex_lock;[kernel]!schedule").peer = waker;
  const StackClasses classes = ClassifyStacks(small.trace.dictionary);
  EXPECT_EQ(ClassifyWait(small.trace.dictionary, classes, small.trace.events[0], {}),
            WaitClass::kLock);
}

TEST(WaitPurpose, TheMutexInsideAConditionWaitIsItsReacquisition) {
  SmallTrace small(0, 1);
  const StackId condition =
      small.Stack("app!take;libc.so.6!pthread_cond_wait;[kernel]!do_futex;[kernel]!futex_wait");
  const StackId mutex = small.Stack(
      "app!take;libc.so.6!pthread_cond_wait;libc.so.6!__pthread_mutex_cond_lock;"
      "libc.so.6!__lll_lock_wait;[kernel]!do_futex;[kernel]!futex_wait");
  const StackId own =
      small.Stack("app!take;libc.so.6!pthread_mutex_lock;[kernel]!do_futex;[kernel]!futex_wait");
  const StackClasses classes = ClassifyStacks(small.trace.dictionary);
  EXPECT_EQ(classes.purpose[condition.value], WaitPurpose::kCondition);
  EXPECT_EQ(classes.purpose[mutex.value], WaitPurpose::kReacquire);
  EXPECT_EQ(classes.purpose[own.value], WaitPurpose::kWork);
}

TEST(WaitPurpose, AMonitorBuiltOnAConditionVariableIsALock) {
  SmallTrace small(0, 1);
  const StackId enter =
      small.Stack("libjvm.so!ObjectMonitor::enter;libc.so.6!pthread_cond_wait;[kernel]!futex_wait");
  const StackId park =
      small.Stack("libjvm.so!Unsafe_Park;libc.so.6!pthread_cond_wait;[kernel]!futex_wait");
  const StackClasses classes = ClassifyStacks(small.trace.dictionary);
  EXPECT_EQ(classes.purpose[enter.value], WaitPurpose::kWork);
  EXPECT_EQ(classes.purpose[park.value], WaitPurpose::kSync);
}

TEST(WaitFacts, WithoutStacksTheSystemCallTells) {
  SmallTrace small(0, 100);
  small.trace.metadata.arch = "aarch64";
  small.Add(EventKind::kWait, "t", 10, 20);
  small.Add(EventKind::kWait, "t", 40, 50);
  small.Add(EventKind::kWait, "u", 10, 20);
  trace::Event& poll = small.Add(EventKind::kSyscall, "t", 5, 25);
  poll.arg0 = 22;  // epoll_pwait
  trace::Event& sync = small.Add(EventKind::kSyscall, "t", 30, 60);
  sync.arg0 = 83;  // fdatasync
  const Timelines timelines(small.trace);
  const WaitFacts facts = ClassifyWaits(timelines, ClassifyStacks(small.trace.dictionary));
  EXPECT_EQ(facts.by_event[0].evidence, WaitEvidence::kSyscall);
  EXPECT_EQ(facts.by_event[0].purpose, WaitPurpose::kExternal);
  EXPECT_EQ(facts.syscalls[facts.by_event[0].syscall], "epoll_pwait");
  EXPECT_EQ(facts.by_event[1].wait_class, WaitClass::kDisk);
  EXPECT_EQ(facts.by_event[2].evidence, WaitEvidence::kNone);
}

TEST(WaitFacts, AReadThatTheDiskEndedIsWorkAndOneThatAThreadEndedIsNot) {
  SmallTrace small(0, 100);
  small.trace.metadata.arch = "x86_64";
  const trace::ThreadId disk = small.Thread("[disk]", ThreadKind::kDevice);
  const trace::ThreadId other = small.Thread("other");
  small.Add(EventKind::kWait, "t", 10, 20).peer = disk;
  small.Add(EventKind::kWait, "t", 40, 50).peer = other;
  small.Add(EventKind::kSyscall, "t", 5, 25).arg0 = 0;
  small.Add(EventKind::kSyscall, "t", 30, 60).arg0 = 0;
  const Timelines timelines(small.trace);
  const WaitFacts facts = ClassifyWaits(timelines, ClassifyStacks(small.trace.dictionary));
  EXPECT_EQ(facts.by_event[0].wait_class, WaitClass::kDisk);
  EXPECT_EQ(facts.by_event[0].purpose, WaitPurpose::kWork);
  EXPECT_EQ(facts.by_event[1].wait_class, WaitClass::kIpc);
  EXPECT_EQ(facts.by_event[1].purpose, WaitPurpose::kExternal);
}

TEST(WaitClassTable, NoNameHasTwoMeanings) {
  for (const auto groups : {KernelGroups(), NamedGroups(), SimulatedGroups()}) {
    std::set<std::string> names;
    for (const Group& group : groups) {
      std::istringstream text{std::string(group.names)};
      for (std::string name; text >> name;) EXPECT_TRUE(names.insert(name).second) << name;
    }
    EXPECT_FALSE(names.empty());
  }
  std::set<std::pair<bool, int16_t>> numbers;
  for (const SyscallRow& row : SyscallRows()) {
    EXPECT_TRUE(row.x86_64 < 0 || numbers.insert({true, row.x86_64}).second) << row.name;
    EXPECT_TRUE(row.arm64 < 0 || numbers.insert({false, row.arm64}).second) << row.name;
  }
}

TEST(WaitClassTable, ModulesOfTheSystemAreKnown) {
  for (const char* module : {"[kernel]", "[kernel.kallsyms]", "[ext4]", "vmlinux", "fs.sys"}) {
    EXPECT_EQ(KindOfModule(module), ModuleKind::kKernel) << module;
  }
  for (const char* module : {"libc.so.6", "libc-2.31.so", "libc", "ntdll.dll", "libc.so"}) {
    EXPECT_EQ(KindOfModule(module), ModuleKind::kLibrary) << module;
  }
  for (const char* module : {"libcurl.so.4", "postgres", "[vdso]", "[anon:dalvik]", "libcrypto"}) {
    EXPECT_EQ(KindOfModule(module), ModuleKind::kProgram) << module;
  }
}

TEST(WaitClassTable, NumbersOfSystemCallsAreThoseOfTheMachine) {
  EXPECT_EQ(BlockingSyscall(202, "x86_64"), "futex");
  EXPECT_EQ(BlockingSyscall(98, "aarch64"), "futex");
  EXPECT_EQ(BlockingSyscall(202, "arm64"), "accept");
  EXPECT_EQ(BlockingSyscall(202, ""), "");
  EXPECT_EQ(BlockingSyscall(-1, "aarch64"), "");
  EXPECT_EQ(BlockingSyscall(INT64_MAX, "x86_64"), "");
}

TEST(StackClassifier, TellsTheSameInWhateverOrderItIsAsked) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const trace::Trace trace = RandomSchedule({.seed = seed, .steps = 200}).Make();
    const StackClasses all = ClassifyStacks(trace.dictionary);
    StackClassifier classifier(trace.dictionary);
    for (size_t i = all.by_stack.size(); i-- > 0;) {
      const StackClass row = classifier.Of(trace::StackId(i));
      EXPECT_EQ(row.wait_class, all.by_stack[i]);
      EXPECT_EQ(row.purpose, all.purpose[i]);
      EXPECT_EQ(row.ambiguous, all.ambiguous[i]);
      EXPECT_EQ(row.wakes, all.wakes[i]);
      EXPECT_EQ(row.tells_waker, all.tells_waker[i]);
    }
  }
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
