// SPDX-License-Identifier: Apache-2.0
// Any bytes as the notes of USDT probes; the first one says how wide addresses are.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "symbol/usdt_notes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const auto& note : culprit::symbol::ParseUsdtNotes(bytes, (data[0] & 1) != 0)) {
    CULPRIT_CHECK(note.provider.size() + note.name.size() < size);
  }
  return 0;
}
