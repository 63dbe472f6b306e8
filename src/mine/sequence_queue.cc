// SPDX-License-Identifier: Apache-2.0
#include "mine/sequence_queue.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/parallel.h"
#include "mine/hash.h"

namespace culprit::mine {
namespace {

// Branches of one batch know the patterns of earlier batches only. Small, so
// that little is found twice and a batch stays in a core's cache; large enough
// to keep threads busy, and that a sequence is not moved for every item it has.
constexpr size_t kLeastBatch = 16;
// A batch has a bucket, which takes a kilobyte when empty.
constexpr size_t kMostBatches = 1024;

// Below, starting threads costs more than they bring.
constexpr size_t kWordsWorthThreads = 20'000;

}  // namespace

size_t Batch::Bytes() const {
  size_t all = sequences.size() * sizeof(Sequence) + holders.size() * sizeof(Holder);
  for (const SequenceWords& list : words) all += list.words() * sizeof(Word);
  return all;
}

// What a part of a batch becomes.
struct SequenceQueue::Merged {
  std::vector<Batch::Sequence> sequences;
  std::vector<std::vector<Holder>> holders;  // by item of the batch
  SequenceWords words;
};

size_t SequenceQueue::Bucket::Words() const {
  size_t words = 0;
  for (size_t p = 0; p < kParts * kParts; ++p) {
    words += first[p / kParts][p % kParts].words.words() + later[p / kParts][p % kParts].words();
  }
  return words;
}

SequenceQueue::SequenceQueue(size_t item_count, const ItemRange& wanted)
    : item_count_(item_count),
      batch_size_(std::max(kLeastBatch, item_count / kMostBatches + 1)),
      wanted_(wanted),
      width_(item_count),
      buckets_((item_count + batch_size_ - 1) / batch_size_) {}

size_t SequenceQueue::BatchOf(std::span<const Item> sequence) const {
  Item least = kDropped;
  for (const Item item : sequence) least = std::min(least, item);
  return least / batch_size_;
}

uint32_t SequenceQueue::HasRepeats(size_t part, std::span<const Item> sequence) {
  std::vector<uint8_t>& seen = seen_[part];
  seen.resize(item_count_);
  uint32_t repeats = 0;
  for (const Item item : sequence) repeats |= std::exchange(seen[item], uint8_t{1});
  for (const Item item : sequence) seen[item] = 0;
  return repeats;
}

void SequenceQueue::MakeRoom(First& list) {
  if (2 * list.used < list.slots.size()) return;
  std::vector<Slot> slots(std::max<size_t>(16, 2 * list.slots.size()));
  for (const Slot& slot : list.slots) {
    if (slot.record == nullptr) continue;
    size_t at = slot.hash & (slots.size() - 1);
    while (slots[at].record != nullptr) at = (at + 1) & (slots.size() - 1);
    slots[at] = slot;
  }
  list.slots = std::move(slots);
}

// Where a sequence belongs is looked up for all before the first is added: the
// processor then fetches the slots, which are all over memory, side by side.
void SequenceQueue::AddFirst(size_t part, const Database& some) {
  std::vector<std::pair<First*, uint64_t>> places;
  for (size_t i = 0; i < some.size(); ++i) {
    const std::span<const Item> sequence = some.sequences.at(i);
    const uint64_t hash = HashItems(sequence);
    First& list = buckets_[BatchOf(sequence)].first[part][PartOfHash(hash)];
    MakeRoom(list);
    __builtin_prefetch(&list.slots[hash & (list.slots.size() - 1)]);
    places.emplace_back(&list, hash);
  }
  for (size_t i = 0; i < some.size(); ++i) {
    const auto [list, hash] = places[i];
    const std::span<const Item> sequence = some.sequences.at(i);
    AddTo(*list, part, sequence, {hash, some.costs[i], static_cast<uint32_t>(sequence.size()), 0});
  }
}

void SequenceQueue::AddTo(First& list, size_t part, std::span<const Item> sequence,
                          SequenceHeader header) {
  MakeRoom(list);
  const auto hash = static_cast<uint32_t>(header.hash);
  size_t at = hash & (list.slots.size() - 1);
  for (; list.slots[at].record != nullptr; at = (at + 1) & (list.slots.size() - 1)) {
    if (list.slots[at].hash != hash) continue;
    Word* record = list.slots[at].record;
    SequenceHeader there = ReadHeader(record);
    if (there.size != header.size || !width_.Equal(record + kHeaderWords, sequence)) continue;
    there.cost += header.cost;
    WriteHeader(there, record);
    return;
  }
  header.repeats = HasRepeats(part, sequence);
  list.slots[at] = {list.words.Add(header, sequence, width_), hash};
  ++list.used;
}

void SequenceQueue::EndFirst() {
  for (Bucket& bucket : buckets_) {
    for (auto& lists : bucket.first) {
      for (First& list : lists) list.slots = {};
    }
  }
  seen_ = {};
}

// The first ones in an order given by content, whichever, and in `first` in that
// order: they are read many times.
std::vector<Word*> SequenceQueue::RecordsOf(Bucket& bucket, size_t part,
                                            SequenceWords& first) const {
  std::vector<Word*> records;
  const auto add = [&](Word* record) { records.push_back(record); };
  for (auto& lists : bucket.first) lists[part].words.ForEach(width_, add);
  std::ranges::sort(records, [&](const Word* a, const Word* b) {
    const SequenceHeader left = ReadHeader(a);
    const SequenceHeader right = ReadHeader(b);
    if (left.hash != right.hash) return left.hash < right.hash;
    a += kHeaderWords;
    b += kHeaderWords;
    return std::lexicographical_compare(a, a + width_.WordsOf(left.size), b,
                                        b + width_.WordsOf(right.size));
  });
  for (Word*& record : records) record = first.AddCopy(record, width_);
  for (auto& lists : bucket.later) lists[part].ForEach(width_, add);
  return records;
}

SequenceQueue::Merged SequenceQueue::MergePart(Bucket& bucket, size_t part, Item first,
                                               Item end) const {
  Merged merged;
  merged.holders.resize(end - first);
  const std::vector<Word*> records = RecordsOf(bucket, part, merged.words);
  std::vector<uint32_t> table(std::bit_ceil(2 * records.size() + 2));  // sequence + 1
  std::vector<uint64_t> hashes;
  std::vector<Item> unpacked;
  for (const Word* record : records) {
    const SequenceHeader header = ReadHeader(record);
    const Word* items = record + kHeaderWords;
    size_t slot = header.hash & (table.size() - 1);
    for (; table[slot] != 0; slot = (slot + 1) & (table.size() - 1)) {
      const size_t other = table[slot] - 1;
      Batch::Sequence& there = merged.sequences[other];
      if (hashes[other] != header.hash || there.size != header.size ||
          std::memcmp(there.items, items, width_.WordsOf(header.size) * sizeof(Word)) != 0) {
        continue;
      }
      there.cost += header.cost;
      // It may have lost its repeats on one way and kept the mark.
      there.repeats &= header.repeats;
      break;
    }
    if (table[slot] != 0) continue;
    const auto number = static_cast<uint32_t>(hashes.size());
    table[slot] = number + 1;
    hashes.push_back(header.hash);
    merged.sequences.push_back({items, header.cost, header.size, header.repeats});
    const auto note = [&](Item item, uint32_t place) {
      if (item >= end) return;
      std::vector<Holder>& holders = merged.holders[item - first];
      if (holders.empty() || holders.back().sequence != number) holders.push_back({number, place});
    };
    if (width_.narrow()) {
      for (uint32_t place = 0; place < header.size; ++place) note(items[place], place);
    } else {
      width_.Unpack(items, header.size, unpacked);
      for (uint32_t place = 0; place < header.size; ++place) note(unpacked[place], place);
    }
  }
  return merged;
}

Batch SequenceQueue::Take(size_t batch, size_t jobs) {
  Batch taken;
  taken.first = static_cast<Item>(batch * batch_size_);
  taken.end = static_cast<Item>(std::min(item_count_, (batch + 1) * batch_size_));
  taken.width = width_;
  Bucket& bucket = buckets_[batch];
  std::array<Merged, kParts> parts;
  ParallelFor(kParts, bucket.Words() < kWordsWorthThreads ? 1 : jobs,
              [&](size_t p) { parts[p] = MergePart(bucket, p, taken.first, taken.end); });
  for (size_t p = 0; p < kParts * kParts; ++p) {
    taken.words.push_back(std::move(bucket.later[p / kParts][p % kParts]));
  }
  for (Merged& part : parts) taken.words.push_back(std::move(part.words));
  bucket = {};

  std::array<uint32_t, kParts> offsets = {};
  for (size_t p = 0; p < kParts; ++p) {
    offsets[p] = static_cast<uint32_t>(taken.sequences.size());
    taken.sequences.insert(taken.sequences.end(), parts[p].sequences.begin(),
                           parts[p].sequences.end());
  }
  taken.holder_begins.push_back(0);
  for (size_t i = 0; i < taken.end - taken.first; ++i) {
    for (size_t p = 0; p < kParts; ++p) {
      for (const Holder& holder : parts[p].holders[i]) {
        taken.holders.push_back({holder.sequence + offsets[p], holder.place});
      }
    }
    taken.holder_begins.push_back(taken.holders.size());
  }
  return taken;
}

void SequenceQueue::PutBack(const Batch& batch, size_t part) {
  const size_t count = batch.sequences.size();
  std::vector<Item> unpacked;
  std::vector<Item> rest;
  for (size_t i = count * part / kParts; i < count * (part + 1) / kParts; ++i) {
    const Batch::Sequence& sequence = batch.sequences[i];
    rest.resize(sequence.size);
    Item* end = rest.data();
    const auto keep = [&](Item item) {
      *end = item;
      end += item >= batch.end ? 1 : 0;
    };
    if (width_.narrow()) {
      for (const Word item : batch.Narrow(i)) keep(item);
    } else {
      for (const Item item : batch.At(i, unpacked)) keep(item);
    }
    const std::span<const Item> kept(rest.data(), end);
    if (kept.empty()) continue;
    const size_t next = BatchOf(kept);
    if (next >= end_batch()) continue;
    const SequenceHeader header = {HashItems(kept), sequence.cost,
                                   static_cast<uint32_t>(kept.size()), sequence.repeats};
    buckets_[next].later[part][PartOfHash(header.hash)].Add(header, kept, width_);
  }
}

size_t SequenceQueue::Bytes() const {
  size_t bytes = buckets_.size() * sizeof(Bucket);
  for (const Bucket& bucket : buckets_) bytes += bucket.Words() * sizeof(Word);
  return bytes;
}

}  // namespace culprit::mine
