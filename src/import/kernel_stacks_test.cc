// SPDX-License-Identifier: Apache-2.0
#include "import/kernel_stacks.h"

#include <gtest/gtest.h>

namespace culprit::import_::TEST_FILE {
namespace {

using assemble::WakeContext;

constexpr uint64_t kHard = 0x08;
constexpr uint64_t kSoft = 0x10;

WakeVerdict Judge(uint64_t flags, std::initializer_list<std::string_view> caller_first) {
  std::vector<uint8_t> traits;
  for (const std::string_view name : caller_first) traits.push_back(TraitsOf(name));
  return JudgeWaking(flags, traits);
}

TEST(KernelStacks, AThreadsOwnWakingIsItsOwn) {
  const WakeVerdict verdict = Judge(0, {"do_syscall_64", "futex_wake", "try_to_wake_up"});
  EXPECT_EQ(verdict.context, WakeContext::kThread);
}

TEST(KernelStacks, AnInterruptCutsTheBystandersFrames) {
  const WakeVerdict verdict =
      Judge(kHard, {"do_syscall_64", "vfs_read", "asm_sysvec_apic_timer_interrupt",
                    "sysvec_apic_timer_interrupt", "hrtimer_interrupt", "hrtimer_wakeup"});
  EXPECT_EQ(verdict.context, WakeContext::kInterrupt);
  EXPECT_EQ(verdict.device, "timer");
  EXPECT_EQ(verdict.first_frame, 2u);
}

TEST(KernelStacks, LoopbackInsideASystemCallIsTheThreads) {
  const WakeVerdict verdict =
      Judge(kSoft, {"__x64_sys_sendto", "tcp_sendmsg", "__local_bh_enable_ip", "do_softirq",
                    "net_rx_action", "process_backlog", "sock_def_readable"});
  EXPECT_EQ(verdict.context, WakeContext::kThread);
}

TEST(KernelStacks, OtherSoftirqsAreTheDevices) {
  // Network behind an interrupt, in ksoftirqd, and disks on the loopback route.
  const auto network = Judge(kSoft, {"el1h_64_irq", "net_rx_action", "sock_def_readable"});
  EXPECT_EQ(network.context, WakeContext::kInterrupt);
  EXPECT_EQ(network.device, "net");
  EXPECT_EQ(Judge(kSoft, {"run_ksoftirqd", "net_rx_action"}).context, WakeContext::kInterrupt);
  const auto disk = Judge(kSoft, {"do_softirq", "blk_done_softirq", "bio_endio"});
  EXPECT_EQ(disk.context, WakeContext::kInterrupt);
  EXPECT_EQ(disk.device, "disk");
  EXPECT_EQ(Judge(kSoft, {}).context, WakeContext::kInterrupt);
}

TEST(KernelStacks, TracerFramesAtTheLeafAreLeftOut) {
  const auto symbols = symbol::KernelSymbols::Parse(
      "0000000000001000 T schedule\n0000000000002000 T __traceiter_sched_switch\n"
      "0000000000003000 t reader\t[mod]\n");
  ASSERT_TRUE(symbols.ok());
  trace::Dictionary dictionary;
  KernelStacks stacks(dictionary, &symbols.value());
  std::vector<trace::FrameId> frames;
  stacks.Frames(std::vector<uint64_t>{0x2010, 0x1010, 0x3010}, frames);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(dictionary.FrameName(frames[0]), "[mod]!reader");
  EXPECT_EQ(dictionary.FrameName(frames[1]), "[kernel]!schedule");
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
