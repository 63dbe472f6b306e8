// SPDX-License-Identifier: Apache-2.0
//
// UnwindImage: unwind tables laid out as the kernel's walker reads them
// (bpf/unwind_layout.h): chunks of words, and the rules that all tables share. A
// copy in the recorder's memory; whoever owns it sends on what changed. Grows to
// kUnwindChunks chunks and kUnwindRules rules and not further: a table that finds no
// room is refused as a whole. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "record/bpf/unwind_layout.h"
#include "record/unwind_table.h"

namespace culprit::record {

// The part of a table that lies in one chunk; addresses are those of the module's
// file.
struct UnwindPiece {
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t chunk = 0;
  uint32_t index = 0;
};

class UnwindImage {
 public:
  explicit UnwindImage(size_t max_chunks = kUnwindChunks);

  // By address, together all of the table's code; nothing if there is no room.
  std::optional<std::vector<UnwindPiece>> Add(const UnwindTable& table);
  // What the walker would find.
  const UnwindRule& Find(const UnwindPiece& piece, uint64_t address) const;

  const std::vector<std::vector<uint32_t>>& chunks() const { return chunks_; }
  const std::vector<UnwindRule>& rules() const { return rules_; }
  size_t used_words(size_t chunk) const { return used_[chunk]; }
  uint64_t rows() const { return rows_; }
  // Of all pieces: rows and their indexes.
  uint64_t used_bytes() const;

 private:
  using RuleKey = std::tuple<uint8_t, uint8_t, uint8_t, uint8_t, int32_t, int32_t, int32_t>;
  struct Extent {
    size_t first_row = 0;
    size_t last_row = 0;  // exclusive
    uint64_t blocks = 0;
  };

  std::vector<uint16_t> ShareRules(const UnwindTable& table);
  Extent Fit(const UnwindTable& table, size_t row, uint64_t block, size_t words) const;
  UnwindPiece Place(const UnwindTable& table, const std::vector<uint16_t>& rules, uint64_t block,
                    const Extent& extent);

  size_t max_chunks_;
  std::vector<std::vector<uint32_t>> chunks_;
  std::vector<size_t> used_;  // words, by chunk
  std::vector<UnwindRule> rules_;
  std::map<RuleKey, uint16_t> known_rules_;
  uint64_t rows_ = 0;
};

}  // namespace culprit::record
