// SPDX-License-Identifier: Apache-2.0
//
// The files mapped into this process as the dynamic loader sees them, with what
// the patcher needs of each. Plain data, copied out while the loader's lock is
// held; a module may be unloaded afterwards, so whoever follows an address
// checks the process's mappings first (Patcher does). Costs microseconds.
#pragma once

#include <cstdint>

#include "guard/runtime/mapped_array.h"

namespace culprit::guard::runtime {

struct AddressRange {
  uint64_t begin = 0, end = 0;
  bool Contains(uint64_t address) const { return address >= begin && address < end; }
};

enum class ModuleRole : uint32_t {
  kProgram,
  kLibrary,
  kLoader,  // its entries have calling conventions of their own: never patched
  kVdso,    // the kernel's: never patched
  kOwn,     // the module this code is in
};

struct LoadedModule {
  static constexpr uint32_t kMaxSegments = 12;
  struct Segment {
    AddressRange range;
    bool executable = false;
  };
  ModuleRole role = ModuleRole::kLibrary;
  uint64_t bias = 0;               // address here minus address in the ELF file
  AddressRange range;              // from the first to the last mapped byte
  Segment segments[kMaxSegments];  // PT_LOAD that are readable
  uint32_t segment_count = 0;
  AddressRange eh_frame_hdr;  // empty: none
  uint8_t build_id[32] = {};
  uint32_t build_id_size = 0;
  char path[1024] = {};  // of the program: what /proc/self/exe says
  bool IsExecutable(uint64_t address) const;
};

// In the loader's order, the program first. Empty when memory is short.
MappedArray<LoadedModule> LoadedModules();

}  // namespace culprit::guard::runtime
