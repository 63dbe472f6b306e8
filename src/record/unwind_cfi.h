// SPDX-License-Identifier: Apache-2.0
//
// How to leave each function, from .eh_frame: the call frame instructions of every
// function are run, and what they say about the three things that a stack walk
// needs (the caller's stack pointer, its frame pointer, the return address) comes
// out as rows. The grammar of the section stands in symbol/frame_ranges.h, the
// instructions in DWARF 5 §6.4.2.
//
// Rules that no compiler emits for these registers become "unknown", never a wrong
// guess. The bytes are untrusted; the work is linear in their number. 64-bit little
// endian only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "record/bpf/unwind_layout.h"

namespace culprit::record {

enum class UnwindMachine : uint8_t { kArm64, kX86_64 };

// This program's own; nothing on a machine that is neither.
std::optional<UnwindMachine> OwnUnwindMachine();

struct CfiSection {
  std::string_view bytes;
  uint64_t address = 0;  // of the first byte
  UnwindMachine machine = UnwindMachine::kArm64;
};

// Valid from its address to that of the next row, or to the function's end.
struct CfiRow {
  uint64_t address = 0;
  UnwindRule rule = {};
};

// The rows are by address; the first is at `start`.
struct CfiFunction {
  uint64_t start = 0;
  uint64_t end = 0;
  std::vector<CfiRow> rows;
};

// In the section's order. The function given to the visitor is valid during the
// call. Returns the number of entries that made no sense.
uint64_t ReadCfi(const CfiSection& section, const std::function<void(const CfiFunction&)>& visitor);

}  // namespace culprit::record
