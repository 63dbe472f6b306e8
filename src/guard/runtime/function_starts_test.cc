// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/function_starts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "guard/runtime/test_elf_image.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

// A table of two functions and a cold part, as a linker writes it: the header at
// 0x1000, the frames behind it, the code at 0x2000.
class SmallTable {
 public:
  SmallTable() : data_(0x400), code_(0x100) {
    Put(0, {1, 0x1b, 0x03, 0x3b});
    Put32(4, 0);
    Put32(8, 3);
    // CIE: "zR", code alignment 1, data alignment -8, x30, sdata4 pc-relative, CFA = sp + 0.
    const std::vector<uint8_t> cie = {0x14, 0,    0,  0, 0,    0,    0,  0, 1, 'z', 'R', 0,
                                      1,    0x78, 30, 1, 0x1b, 0x0c, 31, 0, 0, 0,   0,   0};
    Put(kCie, cie);
    Fde(0, 0x40, 0x2000, 0x20, {0x44, 0x0e, 0x10});  // advance, then a frame
    Fde(1, 0x60, 0x2020, 0x10, {0x0e, 0x30});        // a frame from the start
    Fde(2, 0x80, 0x2030, 0x30, {0x0e, 0x00});        // the frame of the CIE, said again
  }

  StartsState Read(MappedArray<FunctionStart>& starts) const {
    const ImageSegment image[] = {{0x1000, data_, false}, {0x2000, code_, true}};
    return ReadFunctionStarts(image, 0x1000, starts);
  }
  void Put(size_t at, const std::vector<uint8_t>& bytes) {
    std::copy(bytes.begin(), bytes.end(), data_.begin() + static_cast<long>(at));
  }
  void Put32(size_t at, uint32_t value) { std::memcpy(data_.data() + at, &value, 4); }
  std::vector<uint8_t>& data() { return data_; }

  static constexpr size_t kCie = 0x28 + 0x100;

 private:
  void Fde(uint32_t index, size_t at, uint32_t begin, uint32_t size,
           const std::vector<uint8_t>& instructions) {
    at += 0x200;
    Put32(12 + index * 8, begin - 0x1000);
    Put32(16 + index * 8, static_cast<uint32_t>(at));
    Put32(at, 0x14);
    Put32(at + 4, static_cast<uint32_t>(at + 4 - kCie));
    Put32(at + 8, begin - static_cast<uint32_t>(0x1000 + at + 8));
    Put32(at + 12, size);
    Put(at + 16, {0});
    Put(at + 17, instructions);
  }

  std::vector<uint8_t> data_, code_;
};

TEST(FunctionStarts, SizesAndColdPartsComeFromTheTable) {
  MappedArray<FunctionStart> starts;
  ASSERT_EQ(SmallTable().Read(starts), StartsState::kRead);
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].entry, 0x2000u);
  EXPECT_EQ(starts[0].size, 0x20u);
  EXPECT_EQ(starts[0].flags, 0u);
  EXPECT_EQ(starts[1].flags, FunctionStart::kColdPart);
  EXPECT_EQ(starts[2].entry, 0x2030u);
  EXPECT_EQ(starts[2].flags, 0u);
}

TEST(FunctionStarts, ATableThatLiesIsRefusedAsAWhole) {
  const auto damaged = [](size_t at, uint32_t value) {
    SmallTable table;
    table.Put32(at, value);
    MappedArray<FunctionStart> starts;
    const StartsState state = table.Read(starts);
    EXPECT_TRUE(starts.empty());
    return state;
  };
  EXPECT_EQ(damaged(8, 1000000), StartsState::kDamaged);         // more entries than bytes
  EXPECT_EQ(damaged(12, 0x1010), StartsState::kDamaged);         // not what the FDE says
  EXPECT_EQ(damaged(16, 0x7fffffff), StartsState::kDamaged);     // an FDE outside
  EXPECT_EQ(damaged(0x240, 0x7fffffff), StartsState::kDamaged);  // an FDE too long
  EXPECT_EQ(damaged(0x244, 0x7fffffff), StartsState::kDamaged);  // a CIE outside
  EXPECT_EQ(damaged(0x24c, 0x00100000), StartsState::kDamaged);  // beyond the code
  EXPECT_EQ(damaged(0, 0x3b031b02), StartsState::kDamaged);      // another version
}

TEST(FunctionStarts, DamagedTablesNeverYieldAnEntryOutsideTheCode) {
  std::mt19937 random(3);
  size_t read = 0;
  for (int round = 0; round < 20000; ++round) {
    SmallTable table;
    for (int i = 0; i < 3; ++i) {
      table.data()[random() % table.data().size()] = static_cast<uint8_t>(random());
    }
    MappedArray<FunctionStart> starts;
    if (table.Read(starts) != StartsState::kRead) continue;
    ++read;
    for (const FunctionStart& start : starts) {
      ASSERT_GE(start.entry, 0x2000u);
      ASSERT_LE(start.entry + start.size, 0x2100u);
    }
  }
  EXPECT_GT(read, 1000u);  // much of the table is unused
}

TEST(FunctionStarts, KnownFunctionsOfThisProcessAreFound) {
  const MappedArray<LoadedModule> modules = LoadedModules();
  ASSERT_GT(modules.size(), 2u);
  EXPECT_EQ(modules[0].role, ModuleRole::kProgram);
  size_t found = 0, loaders = 0;
  void (*const known[])() = {reinterpret_cast<void (*)()>(&std::qsort),
                             reinterpret_cast<void (*)()>(&LoadedModules)};
  for (const LoadedModule& module : modules) {
    loaders += module.role == ModuleRole::kLoader ? 1 : 0;
    MappedArray<FunctionStart> starts;
    if (ReadFunctionStarts(module, starts) != StartsState::kRead) continue;
    EXPECT_GT(starts.size(), 0u) << module.path;
    for (const FunctionStart& start : starts) {
      EXPECT_TRUE(module.IsExecutable(start.entry));
      for (const auto& function : known) {
        found += start.entry == reinterpret_cast<uint64_t>(function) ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(found, std::size(known));
  EXPECT_EQ(loaders, 1u);
}

TEST(FunctionStarts, TablesOfInstalledBinariesAreRead) {
  size_t binaries = 0;
  for (const std::string& path : TestBinaries()) {
    const TestElfImage image(path);
    if (!image.good()) continue;
    ++binaries;
    MappedArray<FunctionStart> starts;
    EXPECT_EQ(ReadFunctionStarts(image.segments(), image.eh_frame_hdr(), starts),
              StartsState::kRead)
        << path;
    EXPECT_GT(starts.size(), 100u) << path;
  }
  if (binaries == 0) GTEST_SKIP() << "none of the binaries is installed";
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
