// SPDX-License-Identifier: Apache-2.0
//
// Contains: does a text occur anywhere in an input? Importers that must know
// beforehand what a trace holds (is there any sched_waking?) ask this, at the
// cost of one pass at memory speed, ended by the first hit.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/result.h"
#include "import/source.h"

namespace culprit::import_ {

inline Result<bool> Contains(const Bytes& bytes, std::string_view text) {
  constexpr size_t kChunk = 4 << 20;
  std::string chunk;
  for (uint64_t offset = 0; offset < bytes.size();) {
    CULPRIT_TRY(bytes.ReadAt(offset, kChunk, chunk));
    if (std::string_view(chunk).find(text) != std::string_view::npos) return true;
    if (chunk.size() <= text.size()) break;
    offset += chunk.size() - (chunk.size() == kChunk ? text.size() : 0);
  }
  return false;
}

}  // namespace culprit::import_
