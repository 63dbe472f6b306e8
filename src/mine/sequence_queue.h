// SPDX-License-Identifier: Apache-2.0
//
// SequenceQueue: all sequences, queued by their least item. The search takes
// items in batches, least first, and drops them when they are done; so the
// sequences that hold an item of the next batch are exactly those whose least
// item is in it. They are taken, mined, and put back without the items of the
// batch, and equal ones are merged on the way: the data shrinks as the search
// goes on, and every pass over it is a pass over memory in order.
//
// What a batch holds, and in which order, depends on the sequences alone: not
// on their order in the input, nor on threads. Work is cut into kParts parts by
// number or by hash; a part is used by one thread at a time, different parts by
// as many as there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mine/database.h"
#include "mine/sequence_list.h"
#include "mine/sequence_words.h"

namespace culprit::mine {

struct Holder {
  uint32_t sequence;
  uint32_t place;  // of the item, its first
};

// The sequences that hold an item of [first, end), without the items below.
struct Batch {
  struct Sequence {
    const Word* items;
    int64_t cost;
    uint32_t size;
    uint32_t repeats;  // 0: no item stands in it twice
  };

  Item first = 0;
  Item end = 0;
  ItemWidth width{0};
  std::vector<Sequence> sequences;
  std::vector<Holder> holders;  // of `first`, then of the next item, and so on
  std::vector<size_t> holder_begins;
  std::vector<SequenceWords> words;  // what the sequences lie in

  std::span<const Holder> HoldersOf(Item item) const {
    const size_t begin = holder_begins[item - first];
    return std::span(holders).subspan(begin, holder_begins[item - first + 1] - begin);
  }
  // Of a narrow batch only.
  std::span<const Word> Narrow(size_t i) const { return {sequences[i].items, sequences[i].size}; }
  std::span<const Item> At(size_t i, std::vector<Item>& unpacked) const {
    width.Unpack(sequences[i].items, sequences[i].size, unpacked);
    return unpacked;
  }
  size_t Bytes() const;
};

class SequenceQueue {
 public:
  static constexpr size_t kParts = 4;

  // Only batches with an item of `wanted` may be taken; what they do not need is
  // not kept.
  SequenceQueue(size_t item_count, const ItemRange& wanted);
  explicit SequenceQueue(size_t item_count)
      : SequenceQueue(item_count, {0, static_cast<Item>(item_count)}) {}

  size_t item_count() const { return item_count_; }
  // Those that may be taken, from the first on.
  size_t first_batch() const { return wanted_.first / batch_size_; }
  size_t end_batch() const { return (wanted_.end + batch_size_ - 1) / batch_size_; }

  // Adds sequences of the input, none empty, costs above 0; by one thread a part.
  void AddFirst(size_t part, const Database& some);
  // No more AddFirst.
  void EndFirst();

  // Takes the batches from first_batch() to end_batch() one after the other, each once.
  Batch Take(size_t batch, size_t jobs);
  // Puts a part of it back without its items; each part once.
  void PutBack(const Batch& batch, size_t part);

  size_t Bytes() const;

 private:
  struct Slot {
    Word* record = nullptr;
    uint32_t hash = 0;
  };
  // Records from the input, in its order, none twice.
  struct First {
    SequenceWords words;
    std::vector<Slot> slots;
    size_t used = 0;
  };
  // By the part that added, then by hash.
  struct Bucket {
    std::array<std::array<First, kParts>, kParts> first;
    std::array<std::array<SequenceWords, kParts>, kParts> later;

    size_t Words() const;
  };
  struct Merged;

  static size_t PartOfHash(uint64_t hash) { return hash >> 62U; }
  static void MakeRoom(First& list);
  size_t BatchOf(std::span<const Item> sequence) const;
  uint32_t HasRepeats(size_t part, std::span<const Item> sequence);
  void AddTo(First& list, size_t part, std::span<const Item> sequence, SequenceHeader header);
  std::vector<Word*> RecordsOf(Bucket& bucket, size_t part, SequenceWords& first) const;
  Merged MergePart(Bucket& bucket, size_t part, Item first, Item end) const;

  size_t item_count_;
  size_t batch_size_;
  ItemRange wanted_;
  ItemWidth width_;
  std::vector<Bucket> buckets_;
  std::array<std::vector<uint8_t>, kParts> seen_;  // all 0 between uses
};

}  // namespace culprit::mine
