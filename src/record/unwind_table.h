// SPDX-License-Identifier: Apache-2.0
//
// UnwindTable: for every address of a module's code the rule that leads to the
// caller. Compiled once from .eh_frame (unwind_cfi.h); immutable afterwards, so any
// number of threads may read it.
//
// Rows are sorted by offset from origin() and valid up to the next; equal
// neighbours are one row. Rule 0 means that nothing is known there: gaps between
// functions, and rules that are not understood. 8 bytes a row; a system library is
// compiled in milliseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/bpf/unwind_layout.h"
#include "record/unwind_cfi.h"
#include "symbol/elf_file.h"

namespace culprit::record {

class UnwindTable {
 public:
  struct Row {
    uint32_t offset = 0;
    uint32_t rule = 0;  // of rules()
  };
  // Rows of one function, or of hand-written code.
  struct Span {
    uint64_t start = 0;
    uint64_t end = 0;
    std::vector<CfiRow> rows = {};
  };

  // An Error if the file is of another kind of machine, or has no unwind
  // information.
  static Result<UnwindTable> Build(const symbol::ElfFile& file);
  // Where two spans overlap, the one that begins later holds.
  static UnwindTable FromSpans(const std::vector<Span>& spans);

  // Addresses as the file has them.
  uint64_t origin() const { return origin_; }
  uint64_t end() const { return rows_.empty() ? origin_ : origin_ + rows_.back().offset; }
  // The last one has rule 0.
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<UnwindRule>& rules() const { return rules_; }
  const UnwindRule& At(uint64_t address) const;

  // Entries of the section that made no sense.
  uint64_t bad() const { return bad_; }

 private:
  // A span whose rows stand among those of others.
  struct Piece {
    uint64_t start = 0;
    uint64_t end = 0;
    size_t first_row = 0;
    size_t rows = 0;
  };
  static UnwindTable FromPieces(std::vector<Piece> pieces, std::span<const CfiRow> rows);

  uint64_t origin_ = 0;
  std::vector<Row> rows_;
  std::vector<UnwindRule> rules_ = {UnwindRule{}};
  uint64_t bad_ = 0;
};

}  // namespace culprit::record
