// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.h"

#include <algorithm>

namespace culprit {

void Diagnostics::Count(std::string_view what, uint64_t count, std::optional<uint64_t> offset) {
  if (count == 0) return;
  auto it = rows_.find(what);
  if (it == rows_.end()) it = rows_.emplace(std::string(what), Row{}).first;
  Row& row = it->second;
  row.count += count;
  if (offset) row.first_offset = row.first_offset ? std::min(*row.first_offset, *offset) : *offset;
}

void Diagnostics::Merge(const Diagnostics& other) {
  for (const auto& [what, row] : other.rows_) Count(what, row.count, row.first_offset);
}

uint64_t Diagnostics::total() const {
  uint64_t sum = 0;
  for (const auto& [what, row] : rows_) sum += row.count;
  return sum;
}

}  // namespace culprit
