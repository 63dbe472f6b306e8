// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/near_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace culprit::guard::runtime::TEST_FILE {
namespace {

uint64_t Here() { return reinterpret_cast<uint64_t>(&ReadMappings); }

uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

const Mapping* MappingAt(const MappedArray<Mapping>& mappings, uint64_t address) {
  for (const Mapping& mapping : mappings) {
    if (mapping.range.Contains(address)) return &mapping;
  }
  return nullptr;
}

TEST(NearMemory, MappingsAreThoseThatTheKernelLists) {
  MappedArray<Mapping> mappings;
  ASSERT_TRUE(ReadMappings(mappings));
  const Mapping* code = MappingAt(mappings, Here());
  ASSERT_NE(code, nullptr);
  EXPECT_TRUE(code->readable && code->executable && !code->writable && !code->stack);
  const int local = 0;
  const Mapping* stack = MappingAt(mappings, reinterpret_cast<uint64_t>(&local));
  ASSERT_NE(stack, nullptr);
  EXPECT_TRUE(stack->writable && !stack->executable && stack->stack);
  size_t lines = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++lines;
  EXPECT_NEAR(static_cast<double>(mappings.size()), static_cast<double>(lines), 3.0);
}

TEST(NearMemory, WhatIsTakenIsInReachWritableThenExecutable) {
  NearMemory memory;
  std::vector<uint8_t*> taken;
  for (int i = 0; i < 6000; ++i) {  // more than two islands
    uint8_t* bytes = memory.Take(Here(), 512);
    ASSERT_NE(bytes, nullptr);
    EXPECT_LT(Distance(reinterpret_cast<uint64_t>(bytes), Here()), NearMemory::kReach);
    EXPECT_LT(Distance(reinterpret_cast<uint64_t>(bytes) + 512, Here()), NearMemory::kReach);
    EXPECT_EQ(reinterpret_cast<uint64_t>(bytes) % 16, 0u);
    std::memset(bytes, i & 0xff, 512);
    taken.push_back(bytes);
  }
  for (size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i][511], i & 0xff);
  MappedArray<Mapping> mappings;
  ASSERT_TRUE(ReadMappings(mappings));
  for (const uint8_t* bytes : taken) {
    const Mapping* mapping = MappingAt(mappings, reinterpret_cast<uint64_t>(bytes));
    ASSERT_TRUE(mapping != nullptr && mapping->writable && !mapping->executable);
  }
  ASSERT_TRUE(memory.Seal());
  ASSERT_TRUE(ReadMappings(mappings));
  for (const uint8_t* bytes : taken) {
    const Mapping* mapping = MappingAt(mappings, reinterpret_cast<uint64_t>(bytes));
    ASSERT_TRUE(mapping != nullptr && !mapping->writable && mapping->executable);
  }
  EXPECT_EQ(memory.used_bytes(), 6000u * 512);
  for (const uint8_t* bytes : taken) {
    size_t islands = 0;
    for (size_t i = 0; i < memory.islands(); ++i) {
      const uint64_t begin = memory.IslandBegin(i);
      const auto address = reinterpret_cast<uint64_t>(bytes);
      islands += address >= begin && address - begin < NearMemory::kIslandBytes ? 1 : 0;
    }
    ASSERT_EQ(islands, 1u);
  }
}

TEST(NearMemory, WhatWasTooMuchIsTakenNext) {
  NearMemory memory;
  uint8_t* first = memory.Take(Here(), 512);
  memory.Shrink(512 - 40);
  uint8_t* second = memory.Take(Here(), 512);
  EXPECT_EQ(second, first + 48);
}

TEST(NearMemory, TheHeapCanStillGrow) {
  NearMemory memory;
  for (int i = 0; i < 4000; ++i) ASSERT_NE(memory.Take(Here(), 4096), nullptr);
  const auto heap_end = static_cast<uint64_t>(RawSyscall(SYS_brk, 0));
  const uint64_t wanted = heap_end + (64 << 20);
  EXPECT_EQ(static_cast<uint64_t>(RawSyscall(SYS_brk, static_cast<long>(wanted))), wanted);
  RawSyscall(SYS_brk, static_cast<long>(heap_end));
}

TEST(NearMemory, WhereNothingIsFreeNothingIsTaken) {
  NearMemory memory;
  // No mapping is possible near the end of the address space.
  EXPECT_EQ(memory.Take(~uint64_t{0} - (uint64_t{1} << 20), 64), nullptr);
  EXPECT_EQ(memory.Take(Here(), 1 << 20), nullptr);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
