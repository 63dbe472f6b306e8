// SPDX-License-Identifier: Apache-2.0
//
// Memory for trampolines within reach of a direct jump from the code they serve:
// free gaps of the address space near it, taken with MAP_FIXED_NOREPLACE, so
// nothing is ever mapped over. Pages are writable while a batch fills them and
// executable from Seal on, never both, and never writable again. Private to the
// process: a forked child has its own copy.
//
// Not thread-safe. Cost: reading /proc/self/maps when a new island is needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/mapped_array.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

// A mapping of this process.
struct Mapping {
  AddressRange range;
  bool readable = false, writable = false, executable = false;
  bool stack = false;  // of the first thread: it grows down
};

// From /proc/self/maps, ascending. False: it could not be read.
bool ReadMappings(MappedArray<Mapping>& mappings);

class NearMemory {
 public:
#if defined(__aarch64__)
  static constexpr uint64_t kReach = 120ull << 20;  // of a branch's 128 MiB
#else
  static constexpr uint64_t kReach = 1900ull << 20;  // of a jump's 2 GiB
#endif
  static constexpr uint64_t kIslandBytes = wire::kIslandBytes;

  // `size` writable bytes (at most a page) such that all of them are within
  // reach of `address`, or null. Aligned to 16. Valid until Seal.
  uint8_t* Take(uint64_t address, uint64_t size);
  // Gives back what the last Take had too much.
  void Shrink(uint64_t unused);

  // Makes everything taken executable. False: the system refuses; the pages stay
  // writable, unused and lost.
  bool Seal();

  uint64_t used_bytes() const { return used_bytes_; }
  // An island is kIslandBytes of memory that Take takes from.
  size_t islands() const { return islands_.size(); }
  uint64_t IslandBegin(size_t index) const { return islands_[index].range.begin; }

 private:
  struct Island {
    AddressRange range;
    uint64_t open;   // from here on in this batch: writable, not yet executable
    uint64_t next;   // first free byte
    uint64_t ready;  // end of the writable pages
  };
  Island* FindOrMap(uint64_t address, uint64_t size);
  Island* Map(uint64_t address);

  MappedArray<Island> islands_;
  size_t last_ = 0;
  uint64_t used_bytes_ = 0;
};

}  // namespace culprit::guard::runtime
