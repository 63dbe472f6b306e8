// SPDX-License-Identifier: Apache-2.0
//
// Function extents from .eh_frame: every function that can be unwound has a
// frame description entry with its start and length, also in stripped files.
// The bytes are untrusted: every read is checked, the work is linear in their
// number. Grammar (Linux Standard Base, DWARF 5 §6.4.1):
//
//   section = { entry } [ u32 0 ]
//   entry   = u32 length [ u64 length, if the first is 0xffffffff ] body
//   body    = u32 0 cie | u32 distance-back-to-cie fde
//   cie     = version augmentation code-align data-align return-register data
//   fde     = start length ...   both encoded as the cie's 'R' says
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "symbol/symbol_table.h"

namespace culprit::symbol {

struct FrameSection {
  std::string_view bytes;
  uint64_t address = 0;  // of the first byte; starts are relative to where they stand
  bool big_endian = false;
  bool is_64_bit = true;
};

// In the section's order. `bad` is the number of entries that made no sense.
std::vector<CodeRange> ReadFrameRanges(const FrameSection& section, uint64_t& bad);

// Where .eh_frame is, said by the bytes of .eh_frame_hdr: for files without
// section headers.
std::optional<uint64_t> FrameSectionAddress(const FrameSection& header);

}  // namespace culprit::symbol
