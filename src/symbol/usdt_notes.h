// SPDX-License-Identifier: Apache-2.0
//
// USDT probes of an ELF object: the notes (.note.stapsdt) that sys/sdt.h leaves
// for every probe in a program: provider, name, where it is, and the counter that
// must be above zero for some of them to be reached at all. Places are offsets in
// the file, as uprobes want them. Notes that make no sense are left out. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/elf_file.h"

namespace culprit::symbol {

struct UsdtNote {
  uint64_t address = 0;
  uint64_t base = 0;       // where .stapsdt.base was when the note was written
  uint64_t semaphore = 0;  // 0: none
  std::string provider;
  std::string name;
  std::string arguments;  // where they are: "8@x20 -4@[sp, 152]", "8@%rbx -4@-20(%rbp)"
};
// The bytes of .note.stapsdt; `wide` is whether addresses have eight bytes.
std::vector<UsdtNote> ParseUsdtNotes(std::string_view bytes, bool wide);

struct UsdtProbe {
  std::string provider;
  std::string name;
  std::string arguments = {};
  uint64_t offset = 0;
  uint64_t semaphore_offset = 0;  // 0: none
};
std::vector<UsdtProbe> ReadUsdtProbes(const ElfFile& file);

}  // namespace culprit::symbol
