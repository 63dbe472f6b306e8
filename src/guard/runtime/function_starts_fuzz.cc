// SPDX-License-Identifier: Apache-2.0
// Any bytes as a module: the first half its frame tables, the rest its code.
#include <cstdlib>

#include "guard/runtime/function_starts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::guard::runtime;
  const std::span<const uint8_t> bytes(data, size);
  const uint64_t code_address = 0x1000 + size / 2;
  const ImageSegment image[] = {{0x1000, bytes.first(size / 2), false},
                                {code_address, bytes.subspan(size / 2), true}};
  MappedArray<FunctionStart> starts;
  if (ReadFunctionStarts(image, 0x1000, starts) != StartsState::kRead) return 0;
  for (const FunctionStart& start : starts) {
    if (start.entry < code_address || start.entry + start.size > 0x1000 + size) std::abort();
  }
  return 0;
}
