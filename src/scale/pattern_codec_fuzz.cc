// SPDX-License-Identifier: Apache-2.0
// Any bytes as the stacks and as the patterns of a run that mines, as a damaged run
// folder might hold them. What is accepted must be what it would write.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scale/pattern_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto database = culprit::scale::DecodeDatabase(bytes)) {
    const std::string again = culprit::scale::EncodeDatabase(*database);
    const auto decoded = culprit::scale::DecodeDatabase(again);
    CULPRIT_CHECK(decoded && decoded->symbols == database->symbols);
    CULPRIT_CHECK(decoded->ends == database->ends && decoded->costs == database->costs);
  }
  if (const auto subtree = culprit::scale::DecodeSubtree(bytes)) {
    const auto decoded = culprit::scale::DecodeSubtree(culprit::scale::EncodeSubtree(*subtree));
    CULPRIT_CHECK(decoded && decoded->patterns == subtree->patterns);
  }
  return 0;
}
