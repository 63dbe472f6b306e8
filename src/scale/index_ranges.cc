// SPDX-License-Identifier: Apache-2.0
#include "scale/index_ranges.h"

#include <iterator>

namespace culprit::scale {

std::string IndexRanges(const std::set<uint64_t>& indexes) {
  std::string text;
  for (auto it = indexes.begin(); it != indexes.end();) {
    const uint64_t first = *it;
    uint64_t last = first;
    for (++it; it != indexes.end() && *it == last + 1; ++it) last = *it;
    if (!text.empty()) text += ",";
    text += std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return text;
}

}  // namespace culprit::scale
