// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/cross_jumps.h"

#include <algorithm>
#include <cstring>

#include "guard/runtime/x86_instruction.h"

namespace culprit::guard::runtime {
namespace {

using Functions = std::span<const FunctionStart>;

constexpr uint64_t kHeadBytes = 16;  // a landing pad and the five bytes of a jump, and more
// How far from a function's head a jump of one byte can be, with its own bytes.
constexpr uint64_t kNearBytes = 128 + 16;
constexpr uint8_t kFarJump = 0xe9, kTwoByteOpcode = 0x0f, kFarCondition = 0x80;

const FunctionStart* FirstBehind(Functions functions, uint64_t address) {
  return std::upper_bound(functions.data(), functions.data() + functions.size(), address,
                          [](uint64_t at, const FunctionStart& start) { return at < start.entry; });
}

// Into the head of one of them, from outside of it: what it does itself is known by decoding it.
bool IsCrossJump(Functions wanted, uint64_t from, uint64_t target) {
  const FunctionStart* next = FirstBehind(wanted, target);
  if (next == wanted.data()) return false;
  const FunctionStart& function = next[-1];
  const uint64_t behind = target - function.entry;
  return behind > 0 && behind < kHeadBytes && from - function.entry >= function.size;
}

// Most jumps lead to no head: that is seen without looking one up.
class HeadFilter {
 public:
  explicit HeadFilter(Functions wanted) {
    for (const FunctionStart& function : wanted) {
      Set(function.entry / kHeadBytes);
      Set(function.entry / kHeadBytes + 1);
    }
  }
  bool MayBeHead(uint64_t address) const {
    const uint64_t bit = address / kHeadBytes % kBits;
    return (bits_[bit / 64] >> bit % 64 & 1) != 0;
  }

 private:
  static constexpr uint64_t kBits = 1 << 14;
  void Set(uint64_t bit) { bits_[bit % kBits / 64] |= uint64_t{1} << bit % 64; }

  uint64_t bits_[kBits / 64] = {};
};

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kTops = kOnes << 7;

// The top bit of each byte that is the same.
uint64_t BytesLike(uint64_t word, uint8_t byte) {
  const uint64_t other = word ^ (kOnes * byte);
  return ~(((other & ~kTops) + ~kTops) | other) & kTops;
}

// Of a jump with four bytes of distance that may begin there; 0: none does.
size_t OpcodeBytes(std::span<const uint8_t> code) {
  if (code[0] == kFarJump) return 1;
  const bool is_condition =
      code[0] == kTwoByteOpcode && code.size() > 1 && (code[1] & 0xf0) == kFarCondition;
  return is_condition ? 2 : 0;
}

// Wherever bytes could be such a jump.
bool AddFarJumps(const ImageSegment& segment, Functions wanted, MappedArray<uint64_t>& targets) {
  const HeadFilter heads(wanted);
  const auto add = [&](size_t at) {
    const std::span<const uint8_t> code = segment.bytes.subspan(at);
    const size_t opcode = OpcodeBytes(code);
    int32_t relative = 0;
    if (opcode == 0 || code.size() < opcode + sizeof(relative)) return true;
    std::memcpy(&relative, code.data() + opcode, sizeof(relative));
    const uint64_t from = segment.address + at;
    const uint64_t target =
        from + opcode + sizeof(relative) + static_cast<uint64_t>(int64_t{relative});
    if (!heads.MayBeHead(target) || !IsCrossJump(wanted, from, target)) return true;
    return targets.Append(target);
  };
  size_t at = 0;
  for (uint64_t word = 0; at + sizeof(word) <= segment.bytes.size(); at += sizeof(word)) {
    std::memcpy(&word, segment.bytes.data() + at, sizeof(word));
    uint64_t found = BytesLike(word, kFarJump) | BytesLike(word, kTwoByteOpcode);
    for (; found != 0; found &= found - 1) {
      if (!add(at + static_cast<size_t>(__builtin_ctzll(found)) / 8)) return false;
    }
  }
  for (; at < segment.bytes.size(); ++at) {
    if (!add(at)) return false;
  }
  return true;
}

// Decodes code of one function after the other.
class NearJumps {
 public:
  NearJumps(Functions wanted, std::span<const CodePatch> originals, MappedArray<uint64_t>& targets)
      : wanted_(wanted), originals_(originals), targets_(targets) {}

  // From the begin of a function, or of what lies between two, as far as jumps of one byte may
  // come from there. False: no memory.
  bool Add(const ImageSegment& segment, uint64_t from, uint64_t to) {
    const FunctionStart* behind = FirstBehind(wanted_, to + kNearBytes);
    if (from >= to || behind == wanted_.data()) return true;
    const uint64_t last = behind[-1].entry;
    if (last + kNearBytes < from) return true;
    const uint64_t end = std::min(to, last + kNearBytes);
    const auto code = segment.bytes.subspan(from - segment.address, end - from);
    uint8_t head[2 * kHeadBytes];
    const size_t patched = PutOriginal(code, from, head);
    size_t offset = 0;
    while (offset < patched) {
      if (!Step(std::span(head).first(std::min(sizeof(head), code.size())), from, offset)) {
        return false;
      }
    }
    while (offset < code.size()) {
      if (!Step(code, from, offset)) return false;
    }
    return true;
  }

 private:
  // The first bytes as they were, in `head`; so many of them are others now, at most.
  size_t PutOriginal(std::span<const uint8_t> code, uint64_t address,
                     uint8_t (&head)[2 * kHeadBytes]) const {
    const CodePatch* original =
        std::lower_bound(originals_.data(), originals_.data() + originals_.size(), address,
                         [](const CodePatch& patch, uint64_t at) { return patch.address < at; });
    if (original == originals_.data() + originals_.size()) return 0;
    const uint64_t offset = original->address - address;
    if (offset >= kHeadBytes || offset + original->size > std::min(sizeof(head), code.size())) {
      return 0;
    }
    std::memcpy(head, code.data(), std::min(sizeof(head), code.size()));
    std::memcpy(head + offset, original->bytes, original->size);
    return offset + original->size;
  }

  // One instruction; where the bytes are none, the next byte is tried.
  bool Step(std::span<const uint8_t> code, uint64_t address, size_t& offset) {
    const x86::Instruction instruction = x86::Decode(code.subspan(offset));
    const uint64_t from = address + offset;
    offset += std::max<size_t>(instruction.length, 1);
    const bool jumps = instruction.flow == x86::Flow::kJump ||
                       instruction.flow == x86::Flow::kCondition ||
                       instruction.flow == x86::Flow::kLoop;
    if (instruction.length == 0 || !jumps) return true;
    const uint64_t target = address + offset + static_cast<uint64_t>(instruction.relative);
    return !IsCrossJump(wanted_, from, target) || targets_.Append(target);
  }

  Functions wanted_;
  std::span<const CodePatch> originals_;
  MappedArray<uint64_t>& targets_;
};

}  // namespace

// Functions, and what lies between them: assembly may stand there without a
// record of its own.
bool FindCrossJumps(std::span<const ImageSegment> image, Functions starts, Functions wanted,
                    std::span<const CodePatch> originals, MappedArray<uint64_t>& targets) {
  NearJumps near(wanted, originals, targets);
  for (const ImageSegment& segment : image) {
    if (!segment.executable) continue;
    if (!AddFarJumps(segment, wanted, targets)) return false;
    const uint64_t end = segment.address + segment.bytes.size();
    uint64_t at = segment.address;
    for (const FunctionStart& start : starts) {
      if (start.entry < at || start.entry >= end) continue;
      const uint64_t behind = std::min<uint64_t>(start.entry + start.size, end);
      if (!near.Add(segment, at, start.entry) || !near.Add(segment, start.entry, behind)) {
        return false;
      }
      at = behind;
    }
    if (!starts.empty() && !near.Add(segment, at, end)) return false;
  }
  std::sort(targets.begin(), targets.end());
  return true;
}

bool FindCrossJumps(std::span<const LoadedModule> modules, Functions wanted,
                    std::span<const CodePatch> originals, MappedArray<uint64_t>& targets) {
  for (const LoadedModule& module : modules) {
    const FunctionStart* first = FirstBehind(wanted, module.range.begin - 1);
    const FunctionStart* end = FirstBehind(wanted, module.range.end - 1);
    if (first == end) continue;
    MappedArray<FunctionStart> starts;
    if (ReadFunctionStarts(module, starts) != StartsState::kRead) starts.clear();
    ImageSegment image[LoadedModule::kMaxSegments];
    if (!FindCrossJumps(SegmentsOf(module, image), starts.span(), {first, end}, originals,
                        targets)) {
      return false;
    }
  }
  return true;
}

}  // namespace culprit::guard::runtime
