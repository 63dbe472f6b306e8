// SPDX-License-Identifier: Apache-2.0
#include "trace/syscall_table.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "trace/error_table.h"
#include "trace/syscall_operation.h"

namespace culprit::trace::TEST_FILE {
namespace {

#if defined(__aarch64__)
constexpr SyscallAbi kHere = SyscallAbi::kArm64;
#elif defined(__x86_64__)
constexpr SyscallAbi kHere = SyscallAbi::kX86_64;
#else
constexpr SyscallAbi kHere = SyscallAbi::kI386;
#endif

TEST(SyscallTable, HasTheKernelsNumbers) {
  EXPECT_EQ(SyscallNumber("read", SyscallAbi::kX86_64), 0);
  EXPECT_EQ(SyscallNumber("read", SyscallAbi::kArm64), 63);
  EXPECT_EQ(SyscallNumber("read", SyscallAbi::kI386), 3);
  EXPECT_EQ(SyscallNumber("open", SyscallAbi::kArm64), kNoSyscall);
  EXPECT_EQ(SyscallNumber("no such call", SyscallAbi::kArm64), kNoSyscall);
  EXPECT_EQ(SyscallNumber("openat", kHere), SYS_openat);
  EXPECT_EQ(SyscallNumber("epoll_pwait2", kHere), SYS_epoll_pwait2);
  EXPECT_EQ(SyscallNumber("fstat", kHere), SYS_fstat);
}

TEST(SyscallTable, KnowsTheKernelsOwnNamesToo) {
  EXPECT_EQ(SyscallNumber("newstat", SyscallAbi::kX86_64), 4);
  EXPECT_EQ(SyscallNumber("umount", SyscallAbi::kX86_64), 166);
  EXPECT_EQ(SyscallNumber("umount", SyscallAbi::kI386), 22);
}

TEST(SyscallTable, NamesAndNumbersAreEachOthersInverse) {
  for (const SyscallAbi abi : {SyscallAbi::kX86_64, SyscallAbi::kArm64, SyscallAbi::kI386}) {
    size_t names = 0;
    for (int64_t number = -5; number < 600; ++number) {
      const std::string_view name = SyscallName(number, abi);
      if (name.empty()) continue;
      ++names;
      EXPECT_EQ(SyscallNumber(name, abi), number) << name;
    }
    EXPECT_GT(names, 290U);
    EXPECT_EQ(SyscallAbiOf(MachineName(abi)), abi);
  }
  EXPECT_EQ(SyscallName(-1, SyscallAbi::kArm64), "");
  EXPECT_EQ(SyscallName(100'000, SyscallAbi::kX86_64), "");
}

TEST(SyscallTable, OfATraceIsThatOfItsImporterOrMachine) {
  Metadata metadata;
  EXPECT_EQ(SyscallAbiOf(metadata), std::nullopt);
  metadata.arch = "aarch64";
  EXPECT_EQ(SyscallAbiOf(metadata), SyscallAbi::kArm64);
  metadata.properties["syscalls.table"] = "x86_64";
  EXPECT_EQ(SyscallAbiOf(metadata), SyscallAbi::kX86_64);
  metadata.properties["syscalls.table"] = "vax";
  EXPECT_EQ(SyscallAbiOf(metadata), SyscallAbi::kArm64);
}

TEST(ErrorTable, HasTheKernelsNumbers) {
  EXPECT_EQ(ErrorNumber("EAGAIN"), EAGAIN);
  EXPECT_EQ(ErrorNumber("ERESTARTSYS"), 512);
  EXPECT_EQ(ErrorNumber("E"), 0);
  EXPECT_EQ(ErrorName(EAGAIN), "EAGAIN");
  EXPECT_EQ(ErrorName(EOPNOTSUPP), "EOPNOTSUPP");
  EXPECT_EQ(ErrorName(EDEADLK), "EDEADLK");
  EXPECT_EQ(ErrorName(4000), "error 4000");
}

TEST(SyscallOperation, StandsAboveTheNumber) {
  EXPECT_EQ(PackCall(98), 98);
  EXPECT_EQ(CallNumber(98), 98);
  EXPECT_EQ(CallOperation(98), std::nullopt);
  for (const int64_t number : {int64_t{-1}, int64_t{0}, int64_t{98}, int64_t{INT32_MAX}}) {
    for (const uint32_t operation : {0U, 9U, 0x5421U, 0xc020660bU, UINT32_MAX - 1}) {
      const int64_t packed = PackCall(number, operation);
      EXPECT_EQ(CallNumber(packed), number);
      EXPECT_EQ(CallOperation(packed), operation);
    }
  }
  // What does not fit is a number alone.
  EXPECT_EQ(PackCall(98, UINT32_MAX), 98);
  EXPECT_EQ(PackCall(INT64_MAX, 1), INT64_MAX);
}

TEST(SyscallOperation, IsTheArgumentWithoutItsModifiers) {
  EXPECT_EQ(OperationArgument("futex"), 1U);
  EXPECT_EQ(OperationArgument("prctl"), 0U);
  EXPECT_EQ(OperationArgument("madvise"), 2U);
  EXPECT_EQ(OperationArgument("read"), std::nullopt);
  EXPECT_EQ(OperationArgument(""), std::nullopt);
  EXPECT_EQ(OperationOf("futex", FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME),
            uint32_t{FUTEX_WAIT_BITSET});
  EXPECT_EQ(OperationOf("ioctl", 0xffffffff00005421), uint32_t{FIONBIO});
  const int64_t packed = PackCallWith(SYS_futex, kHere, [](size_t index) {
    EXPECT_EQ(index, 1U);
    return uint64_t{FUTEX_WAKE_PRIVATE};
  });
  EXPECT_EQ(CallNumber(packed), SYS_futex);
  EXPECT_EQ(CallOperation(packed), uint32_t{FUTEX_WAKE});
  EXPECT_EQ(PackCallWith(SYS_getpid, kHere, [](size_t) { return uint64_t{1}; }), SYS_getpid);
}

TEST(SyscallOperation, HasTheHeadersNames) {
  EXPECT_EQ(OperationName("futex", FUTEX_WAKE), "WAKE");
  EXPECT_EQ(OperationName("futex", FUTEX_WAIT_BITSET), "WAIT_BITSET");
  EXPECT_EQ(OperationName("epoll_ctl", EPOLL_CTL_MOD), "MOD");
  EXPECT_EQ(OperationName("fcntl", F_SETFL), "F_SETFL");
  EXPECT_EQ(OperationName("fcntl", F_DUPFD_CLOEXEC), "F_DUPFD_CLOEXEC");
  EXPECT_EQ(OperationName("ioctl", FIONBIO), "FIONBIO");
  EXPECT_EQ(OperationName("ioctl", 0xabcd), "0xabcd");
  EXPECT_EQ(OperationName("prctl", PR_SET_NAME), "SET_NAME");
  EXPECT_EQ(OperationName("read", 7), "0x7");
}

TEST(SyscallOperation, IsReadFromWhatStraceWrites) {
  EXPECT_EQ(ParseOperation("futex", "FUTEX_WAIT_PRIVATE"), uint32_t{FUTEX_WAIT});
  EXPECT_EQ(ParseOperation("futex", "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME"),
            uint32_t{FUTEX_WAIT_BITSET});
  EXPECT_EQ(ParseOperation("futex", "0x80"), uint32_t{FUTEX_WAIT});
  EXPECT_EQ(ParseOperation("epoll_ctl", "EPOLL_CTL_ADD"), uint32_t{EPOLL_CTL_ADD});
  EXPECT_EQ(ParseOperation("fcntl", "F_GETFL"), uint32_t{F_GETFL});
  EXPECT_EQ(ParseOperation("flock", "LOCK_EX|LOCK_NB"), 6U);
  EXPECT_EQ(ParseOperation("ioctl", "SNDCTL_TMR_TIMEBASE or TCGETS"), uint32_t{TCGETS});
  EXPECT_EQ(ParseOperation("ioctl", "0x5421 /* FIONBIO */"), uint32_t{FIONBIO});
  EXPECT_EQ(ParseOperation("ioctl", "_IOC(_IOC_NONE, 0x94, 0x9, 0)"), std::nullopt);
  EXPECT_EQ(ParseOperation("futex", ""), std::nullopt);
  EXPECT_EQ(ParseOperation("read", "3"), std::nullopt);
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
