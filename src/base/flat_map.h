// SPDX-License-Identifier: Apache-2.0
//
// FlatMap: a hash map for small keys on hot paths: open addressing in one array,
// so that a lookup is usually one cache miss where std::unordered_map has two or
// three and a division. Keys are integers, or have a hash of their own.
//
// Pointers to values hold until the next Insert or Erase. There is no iteration
// in order: whoever visits all of them must not let the order show. At most two
// thirds of the slots are used. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace culprit {

// Spreads dense integers over all bits; the low ones choose the slot.
struct IntegerHash {
  uint64_t operator()(uint64_t key) const {
    key *= 0x9e3779b97f4a7c15ULL;
    return key ^ (key >> 32);
  }
};

template <class Key, class Value, class Hash = IntegerHash>
class FlatMap {
 public:
  Value* Find(const Key& key) {
    return const_cast<Value*>(static_cast<const FlatMap*>(this)->Find(key));
  }
  const Value* Find(const Key& key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[Place(key)];
    return slot.used ? &slot.value : nullptr;
  }

  // The value of `key`, and whether it was made just now, as Value().
  std::pair<Value*, bool> Insert(const Key& key) {
    if ((size_ + 1) * 3 > slots_.size() * 2) Grow();
    Slot& slot = slots_[Place(key)];
    if (slot.used) return {&slot.value, false};
    slot.key = key;
    slot.used = true;
    ++size_;
    return {&slot.value, true};
  }

  bool Erase(const Key& key) {
    if (slots_.empty()) return false;
    size_t hole = Place(key);
    if (!slots_[hole].used) return false;
    // What stands behind the hole moves up if its search would begin at or
    // before it; then no search has to step over a hole.
    for (size_t i = Next(hole); slots_[i].used; i = Next(i)) {
      const size_t home = Home(slots_[i].key);
      if (((i - home) & Mask()) < ((i - hole) & Mask())) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    slots_[hole] = Slot();
    --size_;
    return true;
  }

  void Clear() {
    slots_.clear();
    size_ = 0;
  }

  template <class Visitor>
  void ForEach(Visitor visitor) {
    for (Slot& slot : slots_) {
      if (slot.used) visitor(slot.key, slot.value);
    }
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Slot {
    Key key = {};
    Value value = {};
    bool used = false;
  };

  size_t Mask() const { return slots_.size() - 1; }
  size_t Next(size_t place) const { return (place + 1) & Mask(); }
  size_t Home(const Key& key) const { return static_cast<size_t>(Hash()(key)) & Mask(); }
  // Where `key` is, or would be put.
  size_t Place(const Key& key) const {
    size_t place = Home(key);
    while (slots_[place].used && !(slots_[place].key == key)) place = Next(place);
    return place;
  }

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.used) slots_[Place(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace culprit
