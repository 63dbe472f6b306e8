// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/cross_jumps.h"

#include <algorithm>
#include <cstring>

#include "guard/runtime/x86_instruction.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kHeadBytes = 16;  // a landing pad and the five bytes of a jump, and more

bool IsBehindAnEntry(std::span<const FunctionStart> starts, uint64_t target) {
  const FunctionStart* next = std::upper_bound(
      starts.data(), starts.data() + starts.size(), target,
      [](uint64_t address, const FunctionStart& start) { return address < start.entry; });
  if (next == starts.data()) return false;
  const uint64_t behind = target - next[-1].entry;
  return behind > 0 && behind < kHeadBytes;
}

// Where the bytes are no instruction, the next byte is tried: a jump too many
// only refuses an entry.
void AddJumps(std::span<const uint8_t> code, uint64_t address,
              std::span<const FunctionStart> starts, MappedArray<uint64_t>& targets) {
  for (size_t offset = 0; offset < code.size();) {
    const x86::Instruction instruction = x86::Decode(code.subspan(offset));
    offset += std::max<size_t>(instruction.length, 1);
    if (instruction.length == 0 ||
        (instruction.flow != x86::Flow::kJump && instruction.flow != x86::Flow::kCondition)) {
      continue;
    }
    const uint64_t target = address + offset + static_cast<uint64_t>(instruction.relative);
    if (target - address < code.size() || !IsBehindAnEntry(starts, target)) continue;
    if (!targets.Append(target)) return;
  }
}

}  // namespace

// Functions, and what lies between them: assembly may stand there without a
// record of its own.
void CrossJumps::Learn(std::span<const ImageSegment> image, std::span<const FunctionStart> starts) {
  for (const ImageSegment& segment : image) {
    if (!segment.executable) continue;
    const uint64_t end = segment.address + segment.bytes.size();
    const auto scan = [&](uint64_t from, uint64_t to) {
      if (from >= to) return;
      AddJumps(segment.bytes.subspan(from - segment.address, to - from), from, starts, targets_);
    };
    uint64_t at = segment.address;
    for (const FunctionStart& start : starts) {
      if (start.entry < at || start.entry >= end) continue;
      scan(at, start.entry);
      at = std::min<uint64_t>(start.entry + start.size, end);
      scan(start.entry, at);
    }
    scan(at, end);
  }
  std::sort(targets_.begin(), targets_.end());
}

void CrossJumps::Learn(std::span<const LoadedModule> modules) {
  for (const LoadedModule& module : modules) {
    Known known{module.range, 0};
    std::memcpy(&known.build_id, module.build_id, sizeof(known.build_id));
    const bool is_known = std::any_of(known_.begin(), known_.end(), [&](const Known& other) {
      return other.range.begin == known.range.begin && other.range.end == known.range.end &&
             other.build_id == known.build_id;
    });
    if (is_known || module.role == ModuleRole::kVdso || !known_.Append(known)) continue;
    MappedArray<FunctionStart> starts;
    if (ReadFunctionStarts(module, starts) != StartsState::kRead) continue;
    ImageSegment image[LoadedModule::kMaxSegments];
    Learn(SegmentsOf(module, image), starts.span());
  }
}

}  // namespace culprit::guard::runtime
