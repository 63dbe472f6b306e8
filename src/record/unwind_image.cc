// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_image.h"

#include <algorithm>

#include "base/check.h"

namespace culprit::record {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << kUnwindBlockBits;
// The word behind a chunk's last row must have a 16-bit number, too.
constexpr size_t kChunkRoom = kUnwindChunkWords - 1;
// A rest smaller than this is not worth another range in every process's list.
constexpr size_t kLeastPieceWords = 4096;

size_t IndexWords(uint64_t blocks) { return static_cast<size_t>(blocks + 2) / 2; }

}  // namespace

UnwindImage::UnwindImage(size_t max_chunks)
    : max_chunks_(std::min<size_t>(max_chunks, kUnwindChunks)), rules_(1) {
  known_rules_[{}] = 0;
}

uint64_t UnwindImage::used_bytes() const {
  uint64_t words = 0;
  for (const size_t used : used_) words += used;
  return words * sizeof(uint32_t);
}

// Rules beyond the kernel's room count as unknown: those that come first are those
// of the commonest libraries.
std::vector<uint16_t> UnwindImage::ShareRules(const UnwindTable& table) {
  std::vector<uint16_t> numbers;
  numbers.reserve(table.rules().size());
  for (const UnwindRule& rule : table.rules()) {
    const RuleKey key(rule.cfa, rule.return_place, rule.frame_place, rule.extra, rule.cfa_offset,
                      rule.return_offset, rule.frame_offset);
    const auto it = known_rules_.find(key);
    if (it != known_rules_.end()) {
      numbers.push_back(it->second);
    } else if (rules_.size() < kUnwindRules) {
      numbers.push_back(static_cast<uint16_t>(rules_.size()));
      known_rules_[key] = numbers.back();
      rules_.push_back(rule);
    } else {
      numbers.push_back(0);
    }
  }
  return numbers;
}

// As many blocks from `block` on as `words` can hold; `row` is the first that
// begins in it or later.
UnwindImage::Extent UnwindImage::Fit(const UnwindTable& table, size_t row, uint64_t block,
                                     size_t words) const {
  const std::vector<UnwindTable::Row>& rows = table.rows();
  const uint64_t base = table.origin() / kBlockBytes;
  const uint64_t all = (table.end() + kBlockBytes - 1) / kBlockBytes - base;
  Extent extent = {.first_row = row, .last_row = row};
  while (block + extent.blocks < all) {
    const uint64_t end = (base + block + extent.blocks + 1) * kBlockBytes;
    size_t last = extent.last_row;
    while (last < rows.size() && table.origin() + rows[last].offset < end) ++last;
    // One more for the rule that holds where the piece begins.
    if (IndexWords(extent.blocks + 1) + (last - row) + 1 > words) break;
    extent.last_row = last;
    ++extent.blocks;
  }
  return extent;
}

UnwindPiece UnwindImage::Place(const UnwindTable& table, const std::vector<uint16_t>& rules,
                               uint64_t block, const Extent& extent) {
  std::vector<uint32_t>& words = chunks_.back();
  size_t& used = used_.back();
  const uint64_t origin = (table.origin() / kBlockBytes + block) * kBlockBytes;
  const UnwindPiece piece = {.start = origin,
                             .end = origin + extent.blocks * kBlockBytes,
                             .chunk = static_cast<uint32_t>(chunks_.size() - 1),
                             .index = static_cast<uint32_t>(used)};
  size_t next = used + IndexWords(extent.blocks);
  const auto set_index = [&](uint64_t number) {
    uint32_t& word = words[used + number / 2];
    const unsigned shift = number % 2 == 0 ? 0 : 16;
    word = (word & ~(0xffffu << shift)) | static_cast<uint32_t>(next) << shift;
  };
  size_t row = extent.first_row;
  for (uint64_t i = 0; i < extent.blocks; ++i) {
    set_index(i);
    const uint64_t start = origin + i * kBlockBytes;
    const auto address = [&] { return table.origin() + table.rows()[row].offset; };
    if (i == 0 && (row >= extent.last_row || address() != start)) {
      const uint32_t before = row == 0 ? 0 : rules[table.rows()[row - 1].rule];
      words[next++] = before << 16;
    }
    for (; row < extent.last_row && address() < start + kBlockBytes; ++row, ++rows_) {
      const uint32_t rule = rules[table.rows()[row].rule];
      words[next++] = static_cast<uint32_t>(address() - start) | rule << 16;
    }
  }
  set_index(extent.blocks);
  used = next;
  return piece;
}

std::optional<std::vector<UnwindPiece>> UnwindImage::Add(const UnwindTable& table) {
  std::vector<UnwindPiece> pieces;
  if (table.rows().empty()) return pieces;
  // All or nothing, reckoned generously.
  const uint64_t blocks = (table.end() - table.origin()) / kBlockBytes + 2;
  const uint64_t need = table.rows().size() + IndexWords(blocks);
  const uint64_t rest = used_.empty() ? 0 : kChunkRoom - used_.back();
  const uint64_t free = (max_chunks_ - chunks_.size()) * (kChunkRoom - kLeastPieceWords) + rest;
  if (need + kLeastPieceWords > free) return std::nullopt;
  const std::vector<uint16_t> rules = ShareRules(table);
  const uint64_t all = (table.end() + kBlockBytes - 1) / kBlockBytes - table.origin() / kBlockBytes;
  size_t row = 0;
  for (uint64_t block = 0; block < all;) {
    const bool fits = !used_.empty() && kChunkRoom - used_.back() >= kLeastPieceWords;
    if (!fits) {
      CULPRIT_CHECK(chunks_.size() < max_chunks_);
      chunks_.emplace_back(kUnwindChunkWords);
      used_.push_back(0);
    }
    const Extent extent = Fit(table, row, block, kChunkRoom - used_.back());
    CULPRIT_CHECK(extent.blocks > 0);
    pieces.push_back(Place(table, rules, block, extent));
    row = extent.last_row;
    block += extent.blocks;
  }
  return pieces;
}

const UnwindRule& UnwindImage::Find(const UnwindPiece& piece, uint64_t address) const {
  if (address < piece.start || address >= piece.end) return rules_[0];
  const std::vector<uint32_t>& words = chunks_[piece.chunk];
  const uint64_t block = (address - piece.start) >> kUnwindBlockBits;
  const auto index = [&](uint64_t number) {
    return words[piece.index + number / 2] >> (number % 2 == 0 ? 0 : 16) & 0xffff;
  };
  const auto in_block = static_cast<uint32_t>(address & (kBlockBytes - 1));
  uint32_t found = index(block);
  while (found < index(block + 1) && (words[found] & 0xffff) <= in_block) ++found;
  return rules_[words[found - 1] >> 16];
}

}  // namespace culprit::record
