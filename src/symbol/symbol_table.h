// SPDX-License-Identifier: Apache-2.0
//
// SymbolTable: which function of a module holds an address. Filled from any
// number of symbol tables and frame descriptions, then Build() flattens it into
// disjoint ranges: of functions that overlap the innermost wins; where symbols
// leave a hole, a frame description names the function by its start alone; a
// symbol without size reaches to the next one. Of several names for one start
// the choice is: with a size, global or weak, the longest, fewest leading
// underscores, shortest, first in the alphabet; so it does not depend on the
// order of Add(). After Build() it is immutable: Find() is one binary search,
// 12 bytes a range plus 40 bytes and the name a function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::symbol {

struct CodeRange {
  uint64_t start = 0;
  uint64_t end = 0;  // exclusive

  auto operator<=>(const CodeRange&) const = default;
};

// Is `a` the better one of two names for the same thing?
bool BetterName(std::string_view a, std::string_view b);

class SymbolTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `limit`: where a symbol without size must end at the latest.
  void Add(uint64_t start, uint64_t size, uint64_t limit, std::string_view name, bool global);
  // A function known by its extent alone.
  void AddRange(CodeRange range) { ranges_.push_back(range); }
  void Build();

  // The row of the function that holds `address`, or kNone.
  uint32_t Find(uint64_t address) const {
    const uint64_t* base = starts_.data();
    size_t count = starts_.size();
    if (count == 0 || address < base[0]) return kNone;
    while (count > 1) {
      const size_t half = count / 2;
      base = base[half] <= address ? base + half : base;
      count -= half;
    }
    return owners_[static_cast<size_t>(base - starts_.data())];
  }
  size_t size() const { return rows_.size(); }
  uint64_t Start(uint32_t row) const { return rows_[row].start; }
  // As in the symbol table, without its version; empty: only the start is known.
  std::string_view Name(uint32_t row) const {
    return std::string_view(names_).substr(rows_[row].name_offset, rows_[row].name_length);
  }

 private:
  struct Row {
    uint64_t start;
    uint64_t end;    // start itself: no size
    uint64_t limit;  // of a row without size
    uint64_t name_offset;
    uint32_t name_length : 31;
    uint32_t global : 1;
  };
  struct Segment {
    uint64_t start;
    uint32_t owner;
  };
  bool Better(const Row& a, const Row& b) const;
  void KeepBestAliases();
  void SizeFromRanges();
  std::vector<Segment> FlattenSized() const;
  void FillWithRanges(std::vector<Segment>& segments);
  void FillWithUnsized(std::vector<Segment>& segments, size_t named) const;
  static void Emit(std::vector<Segment>& segments, uint64_t start, uint32_t owner);

  std::string names_;
  std::vector<Row> rows_;
  std::vector<CodeRange> ranges_;
  std::vector<uint64_t> starts_;
  std::vector<uint32_t> owners_;
};

}  // namespace culprit::symbol
