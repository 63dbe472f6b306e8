// SPDX-License-Identifier: Apache-2.0
#include "episode/syscall_log.h"

#include <gtest/gtest.h>

#include "episode/syscall_trace.h"

namespace culprit::episode::TEST_FILE {
namespace {

TEST(SyscallSymbols, OneNameIsOneSymbolInTwoArchitectures) {
  SymbolTable table;
  SyscallSymbols arm(trace::SyscallAbi::kArm64, table);
  EXPECT_EQ(arm.Of(63), SyscallSymbols(trace::SyscallAbi::kX86_64, table).Of(0));
  EXPECT_EQ(table.Name(arm.Of(4000)), "syscall 4000");
}

TEST(SyscallSymbols, HostileNumbersDoNotGrowTheTableWithoutEnd) {
  SymbolTable table;
  SyscallSymbols symbols(std::nullopt, table);
  for (int64_t i = 0; i < 10'000; ++i) symbols.Of(i * 7919);
  EXPECT_LE(table.size(), kMaxSymbols);
  EXPECT_EQ(table.Name(symbols.Of(9'999 * 7919)), "[other]");
}

TEST(SyscallLog, OfATraceThatDoesNotSayItsMachineUsesTheDefault) {
  SyscallTrace made;
  made.Call("a", "read", 10, 1);
  made.small.trace.metadata.arch.clear();
  SymbolTable symbols;
  EXPECT_FALSE(made.Log(symbols).named);
  const SyscallLog log = made.Log(symbols, {.default_arch = "aarch64"});
  EXPECT_TRUE(log.named);
  EXPECT_EQ(made.Names(log, symbols, 0), "read");
}

TEST(SyscallLog, IsOneSequencePerThreadByTime) {
  SyscallTrace made;
  made.Call("b", "write", 30, 5);
  made.Call("a", "read", 20, 5);
  made.Call("a", "openat", 10, 5);
  SymbolTable symbols;
  const SyscallLog log = made.Log(symbols);
  ASSERT_EQ(log.threads.size(), 2u);
  EXPECT_EQ(log.syscalls, 3u);
  EXPECT_EQ(made.Names(log, symbols, 1), "openat read");
  EXPECT_EQ(made.Names(log, symbols, 0), "write");
  EXPECT_TRUE(log.has_durations);
}

TEST(SyscallLog, OnlyTheLastOpenCallOfAThreadIsAWait) {
  SyscallTrace made;
  made.Call("a", "futex", 10, 980).flags = trace::kUnfinished;  // its exit was lost
  made.Call("a", "read", 20, 5);
  made.Call("a", "futex", 30, 960).flags = trace::kUnfinished;
  SymbolTable symbols;
  const SyscallLog log = made.Log(symbols);
  const auto& calls = log.threads[0].calls;
  EXPECT_EQ(calls[0].dur_ns, 0);
  EXPECT_EQ(calls[0].flags, 0);
  EXPECT_EQ(calls[2].dur_ns, 960);
  EXPECT_EQ(calls[2].flags, Syscall::kOpen);
  EXPECT_EQ(log.diagnostics.rows().begin()->second.count, 1u);
}

TEST(SyscallLog, AnExitIsNoWaitToTheEndOfTheTrace) {
  SyscallTrace made;
  made.Call("a", "exit_group", 10, 980).flags = trace::kUnfinished;
  SymbolTable symbols;
  const SyscallLog log = made.Log(symbols);
  EXPECT_EQ(log.threads[0].calls[0].dur_ns, 0);
  EXPECT_FALSE(log.has_durations);
}

TEST(SyscallLog, OtherProcessesAreCountedNotRead) {
  SyscallTrace made;
  made.Call("redis", "read", 10, 1);
  made.Call("bash", "read", 10, 1);
  made.Call("bash", "read", 20, 1);
  SymbolTable symbols;
  const SyscallLog log = made.Log(symbols, {.processes = {"red*"}});
  EXPECT_EQ(log.syscalls, 1u);
  EXPECT_EQ(log.other_processes, 2u);
  EXPECT_EQ(log.threads[0].process, "redis");
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
