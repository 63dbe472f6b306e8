// SPDX-License-Identifier: Apache-2.0
//
// Jumps of x86-64 code from one function into the first bytes of another, behind
// its entry. Compilers make them from a cold part back to its function, and
// assembly does it for shared code (the C library's memmove and mempcpy), so
// looking at a function alone does not tell whether five of its bytes can be
// replaced. Learned once per module from all its code; about 5 ns an instruction.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "guard/runtime/function_starts.h"
#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/mapped_array.h"

namespace culprit::guard::runtime {

class CrossJumps {
 public:
  // Of those modules that are not known yet.
  void Learn(std::span<const LoadedModule> modules);
  void Learn(std::span<const ImageSegment> image, std::span<const FunctionStart> starts);
  std::span<const uint64_t> targets() const { return targets_.span(); }  // ascending

 private:
  struct Known {
    AddressRange range;
    uint64_t build_id;
  };
  MappedArray<Known> known_;
  MappedArray<uint64_t> targets_;
};

}  // namespace culprit::guard::runtime
