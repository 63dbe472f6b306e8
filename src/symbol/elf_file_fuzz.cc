// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ELF file: its tables, its frames, its compressed symbols, its
// DWARF.
#include <cstdint>
#include <string>
#include <vector>

#include "symbol/elf_symbols.h"
#include "symbol/inline_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::symbol;
  const auto file = ElfFile::FromBytes(std::string(reinterpret_cast<const char*>(data), size), "x");
  if (!file.ok()) return 0;
  culprit::Diagnostics diagnostics;
  SymbolTable table;
  AddElfSymbols(file.value(), table);
  AddPltSymbols(file.value(), table);
  AddFrameRanges(file.value(), table, diagnostics);
  if (const auto inner = OpenMiniDebugInfo(file.value(), diagnostics)) AddElfSymbols(*inner, table);
  table.Build();
  const auto inlines = InlineFrames::Open(file.value());
  for (uint64_t offset = 0x400; offset < 0x800; offset += 32) {
    const uint64_t address = file.value().AddressOfOffset(offset).value_or(offset);
    (void)table.Find(address);
    std::vector<Symbol> frames;
    if (inlines != nullptr) (void)inlines->Lookup(address, false, frames);
  }
  return 0;
}
