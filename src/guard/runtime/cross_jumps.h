// SPDX-License-Identifier: Apache-2.0
//
// Jumps of x86-64 code from one function into the first bytes of another, behind
// its entry. Compilers make them from a cold part back to its function, and
// assembly does it for shared code (the C library's memmove and mempcpy), so
// looking at a function alone does not tell whether five of its bytes can be
// replaced. Near ones are found by decoding what lies around; far ones by the bytes of
// their opcodes anywhere in the module, so that one too many may be found, which refuses an
// entry. About 1 ns a byte of the module's code: where threads are held for it, no more
// modules should be asked than is needed.
#pragma once

#include <cstdint>
#include <span>

#include "guard/runtime/code_writer.h"
#include "guard/runtime/function_starts.h"
#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/mapped_array.h"

namespace culprit::guard::runtime {

// Adds where they lead to, of those into `wanted` (some of the functions, ascending); `targets` is
// ascending then. `originals`: what stood at entries where a jump stands by now, ascending. False:
// no memory.
bool FindCrossJumps(std::span<const LoadedModule> modules, std::span<const FunctionStart> wanted,
                    std::span<const CodePatch> originals, MappedArray<uint64_t>& targets);
// The same for one module, whose functions are `starts`.
bool FindCrossJumps(std::span<const ImageSegment> image, std::span<const FunctionStart> starts,
                    std::span<const FunctionStart> wanted, std::span<const CodePatch> originals,
                    MappedArray<uint64_t>& targets);

}  // namespace culprit::guard::runtime
