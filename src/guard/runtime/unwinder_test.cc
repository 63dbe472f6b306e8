// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unwinder.h"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <vector>

#include "guard/runtime/frame_rules.h"
#include "guard/runtime/known_modules.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

std::vector<uint64_t> OwnFrames() {
  RefreshModules();
  Registers registers = {};
  TakeRegisters(registers);
  StackFrame frames[64];
  const uint32_t count =
      Unwind(registers, StackAround(registers.sp()), false, frames, std::size(frames));
  std::vector<uint64_t> pcs;
  for (uint32_t i = 0; i < count; ++i) pcs.push_back(frames[i].pc);
  return pcs;
}

std::vector<uint64_t> LibraryFrames() {
  void* frames[64];
  const int count = backtrace(frames, 64);
  std::vector<uint64_t> pcs;
  for (int i = 0; i < count; ++i) pcs.push_back(reinterpret_cast<uint64_t>(frames[i]));
  return pcs;
}

struct BothWays {
  std::vector<uint64_t> own;
  std::vector<uint64_t> library;
};

// Everything outside of this function must be the same.
__attribute__((noinline)) BothWays LookBothWays() {
  BothWays both = {OwnFrames(), LibraryFrames()};
  return both;
}

void ExpectTheSame(const BothWays& both) {
  ASSERT_GT(both.library.size(), 3u);
  ASSERT_GE(both.own.size() + 1, both.library.size());
  // The library's own frame and where the two were called from differ.
  const std::vector<uint64_t> own(both.own.begin() + 2, both.own.end());
  const auto at =
      std::search(own.begin(), own.end(), both.library.begin() + 2, both.library.end() - 1);
  EXPECT_NE(at, own.end());
}

__attribute__((noinline)) BothWays Deeper(int depth) {
  if (depth == 0) return LookBothWays();
  BothWays both = Deeper(depth - 1);
  both.own.reserve(100);
  return both;
}

TEST(Unwinder, SeesWhatTheCLibrarySees) {
  ExpectTheSame(LookBothWays());
  ExpectTheSame(Deeper(20));
}

TEST(Unwinder, SeesThroughFramesOfChangingSize) {
  for (size_t size = 100; size < 3000; size += 700) {
    auto* bytes = static_cast<volatile char*>(__builtin_alloca(size));
    bytes[0] = 1;
    ExpectTheSame(Deeper(1));
  }
}

BothWays g_in_handler;

void LookInHandler(int) { g_in_handler = LookBothWays(); }

TEST(Unwinder, SeesThroughASignalHandler) {
  signal(SIGUSR1, LookInHandler);
  raise(SIGUSR1);
  signal(SIGUSR1, SIG_DFL);
  ExpectTheSame(g_in_handler);
}

TEST(Unwinder, KnowsTheFrameOfItsCaller) {
  RefreshModules();
  Registers registers = {};
  const auto cfa = reinterpret_cast<uint64_t>(__builtin_dwarf_cfa());
  ASSERT_TRUE(FindCaller(cfa, StackAround(cfa), registers));
  EXPECT_EQ(registers.pc, reinterpret_cast<uint64_t>(__builtin_return_address(0)));
  EXPECT_EQ(registers.sp(), cfa);
}

TEST(Unwinder, StopsAtTheEndOfWhatItMayRead) {
  RefreshModules();
  Registers registers = {};
  TakeRegisters(registers);
  StackFrame frames[64];
  const AddressRange nothing = {registers.sp(), registers.sp() + 8};
  EXPECT_LE(Unwind(registers, nothing, false, frames, std::size(frames)), 1u);
}

TEST(FrameRules, NothingIsKnownOutsideOfCode) {
  RefreshModules();
  const KnownModule* own = ModuleAt(reinterpret_cast<uint64_t>(&LookInHandler));
  ASSERT_NE(own, nullptr);
  FrameRules rules;
  EXPECT_TRUE(FindFrameRules(own->loaded, reinterpret_cast<uint64_t>(&LookInHandler), rules));
  EXPECT_FALSE(FindFrameRules(own->loaded, own->loaded.range.begin, rules));
  EXPECT_FALSE(FindFrameRules(own->loaded, own->loaded.range.end - 1, rules));
  LoadedModule damaged = own->loaded;
  damaged.eh_frame_hdr.begin += 1;
  EXPECT_FALSE(FindFrameRules(damaged, reinterpret_cast<uint64_t>(&LookInHandler), rules));
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
