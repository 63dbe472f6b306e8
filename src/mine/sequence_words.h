// SPDX-License-Identifier: Apache-2.0
//
// Sequences as they lie in the queue of the search, packed: a header, then the
// items, of two bytes each while there are few enough of them. SequenceWords is
// a list of such records that never moves what it holds and grows without
// copying. ItemWidth packs and unpacks; it is the only one to know the width.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "mine/sequence_list.h"

namespace culprit::mine {

using Word = uint16_t;

struct SequenceHeader {
  uint64_t hash;
  int64_t cost;
  uint32_t size;     // items
  uint32_t repeats;  // 0: no item stands in it twice
};
inline constexpr size_t kHeaderWords = sizeof(SequenceHeader) / sizeof(Word);

inline SequenceHeader ReadHeader(const Word* record) {
  SequenceHeader header;
  std::memcpy(&header, record, sizeof(header));
  return header;
}
inline void WriteHeader(const SequenceHeader& header, Word* record) {
  std::memcpy(record, &header, sizeof(header));
}

class ItemWidth {
 public:
  explicit ItemWidth(size_t item_count) : words_(item_count <= 65536 ? 1 : 2) {}

  bool narrow() const { return words_ == 1; }
  size_t WordsOf(size_t items) const { return items * words_; }
  void Pack(std::span<const Item> items, Word* to) const {
    if (narrow()) {
      std::transform(items.begin(), items.end(), to, [](Item i) { return static_cast<Word>(i); });
    } else {
      std::memcpy(to, items.data(), items.size_bytes());
    }
  }
  bool Equal(const Word* words, std::span<const Item> items) const {
    if (narrow()) return std::equal(items.begin(), items.end(), words);
    return std::memcmp(words, items.data(), items.size_bytes()) == 0;
  }
  void Unpack(const Word* words, size_t count, std::vector<Item>& items) const {
    items.resize(count);
    if (narrow()) {
      std::copy_n(words, count, items.begin());
    } else {
      std::memcpy(items.data(), words, count * sizeof(Item));
    }
  }

 private:
  size_t words_;
};

class SequenceWords {
 public:
  // Adds a record; what it returns stays where it is.
  Word* Add(const SequenceHeader& header, std::span<const Item> items, ItemWidth width) {
    Word* record = Extend(kHeaderWords + width.WordsOf(items.size()));
    WriteHeader(header, record);
    width.Pack(items, record + kHeaderWords);
    return record;
  }
  Word* AddCopy(const Word* record, ItemWidth width) {
    const size_t words = kHeaderWords + width.WordsOf(ReadHeader(record).size);
    return static_cast<Word*>(std::memcpy(Extend(words), record, words * sizeof(Word)));
  }

  template <typename Visit>
  void ForEach(ItemWidth width, const Visit& visit) {
    for (const Chunk& chunk : chunks_) {
      Word* const begin = chunk.words.get();
      Word* const end = &chunk == &chunks_.back() ? next_ : begin + chunk.used;
      for (Word* record = begin; record != end;) {
        Word* const at = record;
        record += kHeaderWords + width.WordsOf(ReadHeader(at).size);
        visit(at);
      }
    }
  }
  size_t words() const { return words_; }

 private:
  static constexpr size_t kLeastChunk = 256;
  static constexpr size_t kMostChunk = 16384;

  struct Chunk {
    std::unique_ptr<Word[]> words;
    size_t used;  // known when the next chunk is begun
  };

  Word* Extend(size_t words) {
    if (left_ < words) BeginChunk(words);
    Word* const begin = next_;
    next_ += words;
    left_ -= words;
    words_ += words;
    return begin;
  }
  void BeginChunk(size_t words) {
    if (!chunks_.empty()) {
      chunks_.back().used = static_cast<size_t>(next_ - chunks_.back().words.get());
    }
    left_ = std::max(words, std::clamp(words_, kLeastChunk, kMostChunk));
    chunks_.push_back({std::make_unique_for_overwrite<Word[]>(left_), 0});
    next_ = chunks_.back().words.get();
  }

  Word* next_ = nullptr;
  size_t left_ = 0;
  size_t words_ = 0;
  std::vector<Chunk> chunks_;
};

}  // namespace culprit::mine
