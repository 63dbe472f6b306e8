// SPDX-License-Identifier: Apache-2.0
#include "base/string_table.h"

#include <xxhash.h>

#include <algorithm>

#include "base/check.h"

namespace culprit {
namespace {

constexpr uint32_t kEmpty = UINT32_MAX;

}  // namespace

size_t StringTable::Slot(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = XXH3_64bits(text.data(), text.size()) & mask;
  while (slots_[slot] != kEmpty && views_[slots_[slot]] != text) slot = (slot + 1) & mask;
  return slot;
}

void StringTable::Grow() {
  slots_.assign(std::max<size_t>(64, slots_.size() * 2), kEmpty);
  for (size_t i = 0; i < views_.size(); ++i) slots_[Slot(views_[i])] = static_cast<uint32_t>(i);
}

StringId StringTable::Intern(std::string_view text) {
  if ((views_.size() + 1) * 4 > slots_.size() * 3) Grow();
  const size_t slot = Slot(text);
  if (slots_[slot] == kEmpty) {
    CULPRIT_CHECK(views_.size() < kEmpty);
    slots_[slot] = static_cast<uint32_t>(views_.size());
    views_.push_back(text_.Store(text));
  }
  return StringId(slots_[slot]);
}

StringId StringTable::Find(std::string_view text) const {
  if (slots_.empty()) return {};
  const uint32_t index = slots_[Slot(text)];
  return index == kEmpty ? StringId() : StringId(index);
}

std::string_view StringTable::Get(StringId id) const {
  if (!id.valid()) return {};
  CULPRIT_CHECK(id.value < views_.size());
  return views_[id.value];
}

}  // namespace culprit
