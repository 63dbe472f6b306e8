// SPDX-License-Identifier: Apache-2.0
#include "causality/set_table.h"

#include <algorithm>

#include "base/check.h"

namespace culprit::causality {
namespace {

constexpr SetId kFreeSlot = UINT32_MAX;

uint64_t HashItems(std::span<const uint32_t> items) {
  uint64_t hash = 0x9E3779B97F4A7C15U;
  for (const uint32_t item : items) {
    hash = (hash ^ item) * 0xFF51AFD7ED558CCDU;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

SetTable::SetTable() : begins_(2, 0), slots_(256, kFreeSlot) {
  slots_[HashItems({}) & (slots_.size() - 1)] = kEmptySet;
}

SetId SetTable::Intern(std::span<const uint32_t> items) {
  if (size() * 2 > slots_.size()) Grow();
  const size_t mask = slots_.size() - 1;
  for (size_t slot = HashItems(items) & mask;; slot = (slot + 1) & mask) {
    const SetId set = slots_[slot];
    if (set == kFreeSlot) {
      slots_[slot] = static_cast<SetId>(size());
      items_.insert(items_.end(), items.begin(), items.end());
      begins_.push_back(items_.size());
      return slots_[slot];
    }
    if (std::ranges::equal(Items(set), items)) return set;
  }
}

void SetTable::Grow() {
  slots_.assign(slots_.size() * 2, kFreeSlot);
  const size_t mask = slots_.size() - 1;
  for (SetId set = 0; set < size(); ++set) {
    size_t slot = HashItems(Items(set)) & mask;
    while (slots_[slot] != kFreeSlot) slot = (slot + 1) & mask;
    slots_[slot] = set;
  }
}

bool SetTable::Has(SetId set, uint32_t item) const {
  const auto items = Items(set);
  return std::binary_search(items.begin(), items.end(), item);
}

bool SetTable::IsSubset(SetId part, SetId whole) const {
  return std::ranges::includes(Items(whole), Items(part));
}

SetId SetTable::With(SetId set, uint32_t item) {
  if (Has(set, item)) return set;
  return Union(set, Intern(std::span(&item, 1)));
}

SetId SetTable::Union(SetId a, SetId b) {
  if (a == b || b == kEmptySet) return a;
  if (a == kEmptySet) return b;
  return Apply(Operation::kUnion, std::min(a, b), std::max(a, b));
}

SetId SetTable::Intersection(SetId a, SetId b) {
  if (a == b) return a;
  if (a == kEmptySet || b == kEmptySet) return kEmptySet;
  return Apply(Operation::kIntersection, std::min(a, b), std::max(a, b));
}

SetId SetTable::Difference(SetId a, SetId b) {
  if (a == b || a == kEmptySet) return kEmptySet;
  if (b == kEmptySet) return a;
  return Apply(Operation::kDifference, a, b);
}

SetId SetTable::Apply(Operation operation, SetId a, SetId b) {
  const uint64_t key = uint64_t{a} << 32 | b;
  auto& answers = recent_[static_cast<size_t>(operation)];
  Answer& recent = answers[(a * 31 + b) % answers.size()];
  if (recent.key != key) recent = {key, Find(operation, a, b)};
  return recent.set;
}

SetId SetTable::Find(Operation operation, SetId a, SetId b) {
  const uint64_t key = uint64_t{a} << 32 | b;
  const auto [known, added] = known_[static_cast<size_t>(operation)].Insert(key);
  if (!added) return *known;
  const auto left = Items(a);
  const auto right = Items(b);
  scratch_.resize(left.size() + right.size());
  auto end = scratch_.begin();
  switch (operation) {
    case Operation::kUnion:
      end = std::ranges::set_union(left, right, end).out;
      break;
    case Operation::kIntersection:
      end = std::ranges::set_intersection(left, right, end).out;
      break;
    case Operation::kDifference:
      end = std::ranges::set_difference(left, right, end).out;
      break;
  }
  *known = Intern(std::span(scratch_.begin(), end));
  return *known;
}

}  // namespace culprit::causality
