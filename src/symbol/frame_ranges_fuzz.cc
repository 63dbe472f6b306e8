// SPDX-License-Identifier: Apache-2.0
// Any bytes as .eh_frame, as kernel symbols, as a JIT map and as a mangled name.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "symbol/frame_ranges.h"
#include "symbol/symbolizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const bool big_endian : {false, true}) {
    uint64_t bad = 0;
    culprit::symbol::SymbolTable table;
    for (const auto& range : culprit::symbol::ReadFrameRanges(
             {.bytes = bytes, .address = 0x1000, .big_endian = big_endian}, bad)) {
      CULPRIT_CHECK(range.start < range.end);
      table.AddRange(range);
      table.Add(range.start, bad, range.end, "name", big_endian);
    }
    table.Build();
    (void)table.Find(0x2000);
    (void)culprit::symbol::FrameSectionAddress({.bytes = bytes, .big_endian = big_endian});
  }
  const auto kernel = culprit::symbol::KernelSymbols::Parse(bytes);
  if (kernel.ok()) (void)kernel.value().Lookup(0xffff800080010123);
  culprit::Diagnostics diagnostics;
  (void)culprit::symbol::JitSymbols::Parse(bytes, diagnostics).Lookup(0x7f0010);
  (void)culprit::symbol::Demangle(bytes);
  return 0;
}
