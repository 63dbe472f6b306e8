// SPDX-License-Identifier: Apache-2.0
//
// What the symbol tables of an ELF file say about code: .symtab, .dynsym, the
// compressed table in .gnu_debugdata ("mini debug info"), the stubs of the
// procedure linkage table as "function@plt", and the extents in .eh_frame.
// Everything goes into one SymbolTable, which sorts out duplicates. Functions,
// indirect functions and untyped labels in executable sections count; data does
// not.
#pragma once

#include <optional>

#include "base/diagnostics.h"
#include "symbol/elf_file.h"
#include "symbol/symbol_table.h"

namespace culprit::symbol {

bool HasSymbolTable(const ElfFile& file);
// .symtab and .dynsym. In a relocatable file only what is in .text.
void AddElfSymbols(const ElfFile& file, SymbolTable& table);
// Stubs, for machines whose stubs have one size: x86, ARM64, RISC-V.
void AddPltSymbols(const ElfFile& file, SymbolTable& table);
void AddFrameRanges(const ElfFile& file, SymbolTable& table, Diagnostics& diagnostics);
// The ELF file inside .gnu_debugdata.
std::optional<ElfFile> OpenMiniDebugInfo(const ElfFile& file, Diagnostics& diagnostics);

}  // namespace culprit::symbol
