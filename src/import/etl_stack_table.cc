// SPDX-License-Identifier: Apache-2.0
#include "import/etl_stack_table.h"

#include <xxhash.h>

#include <algorithm>
#include <tuple>

namespace culprit::import_ {
namespace {

constexpr size_t kMaxEtlRowsBeforeSwitchIn = 64;

}  // namespace

bool EtlStackTable::HasRoom() {
  if (rows_.size() + references_.size() < kMaxRows) return true;
  ++left_out_;
  return false;
}

uint32_t EtlStackTable::PartOf(std::span<const uint64_t> addresses) {
  uint64_t hash = XXH3_64bits(addresses.data(), addresses.size_bytes());
  for (;; ++hash) {
    const auto it = part_numbers_.find(hash);
    if (it == part_numbers_.end()) break;
    const auto known = Addresses(it->second);
    if (std::equal(known.begin(), known.end(), addresses.begin(), addresses.end())) {
      return it->second;
    }
  }
  if (addresses_.size() + addresses.size() > kMaxAddresses || parts_.size() >= kUserPart - 1) {
    return EtlStack::kNone;
  }
  const auto number = static_cast<uint32_t>(parts_.size());
  parts_.push_back({addresses_.size(), static_cast<uint32_t>(addresses.size())});
  addresses_.insert(addresses_.end(), addresses.begin(), addresses.end());
  part_numbers_.emplace(hash, number);
  return number;
}

void EtlStackTable::AddSwitchIn(uint32_t tid, uint64_t time) {
  if (HasRoom()) rows_.push_back({time, tid, kSwitchIn});
}

void EtlStackTable::AddWalk(uint32_t tid, uint64_t event_time, bool user,
                            std::span<const uint64_t> addresses) {
  if (addresses.empty() || !HasRoom()) return;
  const uint32_t part = PartOf(addresses);
  if (part == EtlStack::kNone) {
    ++left_out_;
    return;
  }
  ++walks_;
  rows_.push_back({event_time, tid, part | (user ? kUserPart : 0)});
}

void EtlStackTable::AddReference(uint32_t tid, uint64_t event_time, bool user, uint64_t key,
                                 uint64_t time) {
  if (HasRoom()) references_.push_back({event_time, time, key, tid, user});
}

void EtlStackTable::DefineKey(uint64_t key, uint64_t time, std::span<const uint64_t> addresses) {
  if (addresses.empty()) return;
  const uint32_t part = definitions_.size() < kMaxRows ? PartOf(addresses) : EtlStack::kNone;
  if (part == EtlStack::kNone) {
    ++left_out_;
    return;
  }
  definitions_.push_back({key, time, part});
}

// A key is explained when it is given up or at the end of the recording, and
// may then stand for another stack: the first explanation after a reference is
// the one that was meant.
void EtlStackTable::ResolveKeys(Diagnostics& diagnostics) {
  const auto order = [](const Definition& d) { return std::tie(d.key, d.time, d.part); };
  std::sort(definitions_.begin(), definitions_.end(),
            [&](const Definition& a, const Definition& b) { return order(a) < order(b); });
  uint64_t unknown = 0;
  for (const Reference& reference : references_) {
    auto it = std::lower_bound(definitions_.begin(), definitions_.end(), reference,
                               [](const Definition& d, const Reference& r) {
                                 return std::tie(d.key, d.time) < std::tie(r.key, r.time);
                               });
    const bool after = it != definitions_.end() && it->key == reference.key;
    if (!after && (it == definitions_.begin() || std::prev(it)->key != reference.key)) {
      ++unknown;
      continue;
    }
    if (!after) --it;
    ++walks_;
    rows_.push_back(
        {reference.event_time, reference.tid, it->part | (reference.user ? kUserPart : 0)});
  }
  if (unknown != 0) diagnostics.Count("stack by a key that is not explained", unknown);
  references_ = {};
  definitions_ = {};
}

void EtlStackTable::Finish(Diagnostics& diagnostics) {
  ResolveKeys(diagnostics);
  if (left_out_ != 0) diagnostics.Count("stack beyond what is kept in memory", left_out_);
  part_numbers_ = {};
  std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    return std::tie(a.tid, a.time, a.part) < std::tie(b.tid, b.time, b.part);
  });
}

size_t EtlStackTable::LowerBound(uint32_t tid, uint64_t time) const {
  const auto it = std::lower_bound(
      rows_.begin(), rows_.end(), std::tie(tid, time),
      [](const Row& row, const auto& key) { return std::tie(row.tid, row.time) < key; });
  return static_cast<size_t>(it - rows_.begin());
}

EtlStack EtlStackTable::At(size_t row) const {
  EtlStack stack;
  for (size_t i = row; i < rows_.size(); ++i) {
    const Row& next = rows_[i];
    if (next.tid != rows_[row].tid || next.time != rows_[row].time || next.part == kSwitchIn) break;
    uint32_t& part = (next.part & kUserPart) != 0 ? stack.user : stack.kernel;
    if (part == EtlStack::kNone) part = next.part & ~kUserPart;
  }
  return stack;
}

EtlStack EtlStackTable::Find(uint32_t tid, uint64_t event_time) const {
  const size_t row = LowerBound(tid, event_time);
  if (row == rows_.size() || rows_[row].tid != tid || rows_[row].time != event_time) return {};
  return At(row);
}

EtlStack EtlStackTable::FindSwitchedOut(uint32_t tid, uint64_t time) const {
  if (time == UINT64_MAX) return {};
  size_t first = LowerBound(tid, time + 1);
  // Between leaving and returning a thread has no stacks, save for a few rows
  // of events that were lost; its next switch-in is near.
  const size_t last = std::min(rows_.size(), first + kMaxEtlRowsBeforeSwitchIn);
  for (size_t row = first; row < last && rows_[row].tid == tid; ++row) {
    if (rows_[row].time != rows_[first].time) first = row;
    if (rows_[row].part == kSwitchIn) return At(first);
  }
  return {};
}

std::span<const uint64_t> EtlStackTable::Addresses(uint32_t part) const {
  if (part == EtlStack::kNone) return {};
  return std::span(addresses_).subspan(parts_[part].begin, parts_[part].size);
}

}  // namespace culprit::import_
