// SPDX-License-Identifier: Apache-2.0
//
// Where functions begin, from the .eh_frame_hdr table of a module: it is there
// in stripped binaries too. Every offset is checked against the mapped segments;
// a table that lies is refused as a whole (kDamaged), because patching by a
// wrong table would write into the middle of functions.
//
// A function's cold part (GCC moves unlikely code away) has an entry of its own
// in the table; it is known by its first CFA rule: the frame is already set up.
// Costs some 50 ns an entry.
#pragma once

#include <cstdint>
#include <span>

#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/mapped_array.h"

namespace culprit::guard::runtime {

struct FunctionStart {
  enum Flags : uint32_t { kColdPart = 1, kSignalFrame = 2 };
  uint64_t entry = 0;
  uint32_t size = 0;
  uint32_t flags = 0;
};

enum class StartsState : uint32_t { kRead, kNoTable, kDamaged, kNoMemory };

// Bytes that stand (or would stand) at `address`.
struct ImageSegment {
  uint64_t address = 0;
  std::span<const uint8_t> bytes;
  bool executable = false;
};

// The mapped segments of a loaded module, in `image`.
std::span<const ImageSegment> SegmentsOf(const LoadedModule& module,
                                         ImageSegment (&image)[LoadedModule::kMaxSegments]);

// Sorted by entry, no two the same; appended to nothing: `starts` is replaced.
StartsState ReadFunctionStarts(std::span<const ImageSegment> image, uint64_t eh_frame_hdr,
                               MappedArray<FunctionStart>& starts);
StartsState ReadFunctionStarts(const LoadedModule& module, MappedArray<FunctionStart>& starts);

}  // namespace culprit::guard::runtime
