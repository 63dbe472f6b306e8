// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/cross_jumps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "guard/runtime/test_elf_image.h"
#include "guard/runtime/x86_instruction.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

constexpr uint64_t kHeadBytes = 16;
constexpr uint8_t kNop = 0x90;

using Targets = std::set<uint64_t>;

Targets Find(std::span<const ImageSegment> image, std::span<const FunctionStart> starts,
             std::span<const FunctionStart> wanted, std::span<const CodePatch> originals = {}) {
  MappedArray<uint64_t> targets;
  EXPECT_TRUE(FindCrossJumps(image, starts, wanted, originals, targets));
  EXPECT_TRUE(std::is_sorted(targets.begin(), targets.end()));
  return Targets(targets.begin(), targets.end());
}

// Code of nops at kBegin, into which jumps are put.
class CrossJumpsTest : public testing::Test {
 protected:
  static constexpr uint64_t kBegin = 0x10000;
  static constexpr FunctionStart kFirst = {kBegin, 0x40}, kSecond = {kBegin + 0x40, 0x1c0},
                                 kCold = {kBegin + 0x4000, 0x100, FunctionStart::kColdPart};

  void Put(uint64_t at, std::initializer_list<uint8_t> opcode, uint64_t target, size_t bytes) {
    uint8_t* code = code_.data() + (at - kBegin);
    std::copy(opcode.begin(), opcode.end(), code);
    const uint64_t relative = target - (at + opcode.size() + bytes);
    std::memcpy(code + opcode.size(), &relative, bytes);
  }
  Targets Into(std::vector<FunctionStart> wanted, std::span<const CodePatch> originals = {}) {
    const ImageSegment segment = {kBegin, code_, true};
    const std::vector<FunctionStart> starts = {kFirst, kSecond, kCold};
    return Find({&segment, 1}, starts, wanted, originals);
  }

  std::vector<uint8_t> code_ = std::vector<uint8_t>(0x5000, kNop);
};

TEST_F(CrossJumpsTest, AreFoundFromNearAndFar) {
  Put(kFirst.entry + 0x30, {0xeb}, kSecond.entry + 6, 1);
  Put(kFirst.entry + 0x32, {0x74}, kSecond.entry + 7, 1);
  Put(kFirst.entry + 0x34, {0xe3}, kSecond.entry + 8, 1);
  Put(kSecond.entry + 0x20, {0xeb}, kFirst.entry + 9, 1);
  Put(kCold.entry + 3, {0xe9}, kFirst.entry + 3, 4);
  Put(kCold.entry + 9, {0x0f, 0x8f}, kSecond.entry + 15, 4);
  // Between the functions, where none is known.
  Put(kBegin + 0x1000, {0xe9}, kFirst.entry + 1, 4);
  const uint64_t first = kFirst.entry, second = kSecond.entry;
  EXPECT_EQ(Into({kFirst, kSecond}), Targets({first + 1, first + 3, first + 9, second + 6,
                                              second + 7, second + 8, second + 15}));
  EXPECT_EQ(Into({kFirst}), Targets({first + 1, first + 3, first + 9}));
  EXPECT_EQ(Into({}), Targets());
}

TEST_F(CrossJumpsTest, AreNoneToAnEntryOrBehindTheHeadOrOfTheFunctionItself) {
  Put(kCold.entry, {0xe9}, kFirst.entry, 4);
  Put(kCold.entry + 8, {0xe9}, kFirst.entry + kHeadBytes, 4);
  Put(kSecond.entry + 0x20, {0xeb}, kSecond.entry + 4, 1);
  Put(kSecond.entry + 0x30, {0x0f, 0x85}, kSecond.entry + 5, 4);
  EXPECT_EQ(Into({kFirst, kSecond, kCold}), Targets());
}

// What is left of a displaced instruction behind our jump reads like another one, which swallows
// the next.
TEST_F(CrossJumpsTest, AreFoundInAFunctionThatIsPatched) {
  const uint8_t original[] = {0x48, 0x8b, 0x05, 0x11, 0x22};  // mov rax, [rip + ]
  Put(kFirst.entry, {0xe9}, kBegin + 0x100000, 4);
  Put(kFirst.entry + 5, {0x48, 0xb8}, 0, 0);
  Put(kFirst.entry + 7, {0xeb}, kSecond.entry + 5, 1);
  EXPECT_EQ(Into({kSecond}), Targets());
  const CodePatch patch = {kFirst.entry, original, sizeof(original)};
  EXPECT_EQ(Into({kSecond}, {&patch, 1}), Targets({kSecond.entry + 5}));
}

TEST_F(CrossJumpsTest, AreFoundWithoutAListOfFunctions) {
  Put(kCold.entry, {0xe9}, kFirst.entry + 2, 4);
  const ImageSegment segment = {kBegin, code_, true};
  EXPECT_EQ(Find({&segment, 1}, {}, {&kFirst, 1}), Targets({kFirst.entry + 2}));
}

TEST_F(CrossJumpsTest, AreNotLookedForInDataAndBeyondTheEnd) {
  Put(kCold.entry, {0xe9}, kFirst.entry + 2, 4);
  ImageSegment segment = {kBegin, code_, false};
  EXPECT_EQ(Find({&segment, 1}, {}, {&kFirst, 1}), Targets());
  segment = {kBegin, std::span(code_).first(kCold.entry + 3 - kBegin), true};
  EXPECT_EQ(Find({&segment, 1}, {}, {&kFirst, 1}), Targets());
}

// All code decoded, function by function, and what lies between them.
Targets ByDecodingAll(std::span<const ImageSegment> image, std::span<const FunctionStart> starts) {
  Targets targets;
  const auto decode = [&](const ImageSegment& segment, uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to;) {
      const auto code = segment.bytes.subspan(at - segment.address, to - at);
      const x86::Instruction instruction = x86::Decode(code);
      at += std::max<uint64_t>(instruction.length, 1);
      if (instruction.flow != x86::Flow::kJump && instruction.flow != x86::Flow::kCondition) {
        continue;
      }
      const uint64_t target = at + static_cast<uint64_t>(instruction.relative);
      const auto behind = std::upper_bound(
          starts.begin(), starts.end(), target,
          [](uint64_t address, const FunctionStart& start) { return address < start.entry; });
      if (behind == starts.begin() || (target >= from && target < to)) continue;
      const uint64_t offset = target - std::prev(behind)->entry;
      if (offset > 0 && offset < kHeadBytes) targets.insert(target);
    }
  };
  for (const ImageSegment& segment : image) {
    if (!segment.executable) continue;
    uint64_t at = segment.address;
    const uint64_t end = at + segment.bytes.size();
    for (const FunctionStart& start : starts) {
      if (start.entry < at || start.entry >= end) continue;
      decode(segment, at, start.entry);
      at = std::min<uint64_t>(start.entry + start.size, end);
      decode(segment, start.entry, at);
    }
    decode(segment, at, end);
  }
  return targets;
}

TEST(CrossJumps, OfRealBinariesAreAllFound) {
  size_t binaries = 0;
  for (const std::string& path : TestBinaries()) {
    const TestElfImage image(path);
    MappedArray<FunctionStart> starts;
    if (!image.good() || !image.is_x86() ||
        ReadFunctionStarts(image.segments(), image.eh_frame_hdr(), starts) != StartsState::kRead) {
      continue;
    }
    ++binaries;
    const Targets all = ByDecodingAll(image.segments(), starts.span());
    const Targets found = Find(image.segments(), starts.span(), starts.span());
    EXPECT_TRUE(std::includes(found.begin(), found.end(), all.begin(), all.end())) << path;
    // Bytes that only look like jumps.
    EXPECT_LE(found.size(), all.size() + starts.size() / 100 + 5) << path;
    // Of some functions the same.
    std::vector<FunctionStart> some;
    for (size_t i = 0; i < starts.size(); i += 7) some.push_back(starts[i]);
    Targets expected;
    for (const FunctionStart& start : some) {
      const uint64_t head = std::min<uint64_t>(start.entry + kHeadBytes, start.entry + start.size);
      expected.insert(all.upper_bound(start.entry), all.lower_bound(head));
    }
    const Targets of_some = Find(image.segments(), starts.span(), some);
    EXPECT_TRUE(std::includes(of_some.begin(), of_some.end(), expected.begin(), expected.end()))
        << path;
  }
  if (binaries == 0) GTEST_SKIP() << "none of the binaries is installed";
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
