// SPDX-License-Identifier: Apache-2.0
//
// Table: rows of text under headers, rendered in aligned columns within a
// width. Columns are as wide as their widest cell, two spaces apart; when the
// sum is too wide, the one flexible column is cut in the middle with "…" so
// that both ends of a name stay readable (never below kMinimumFlexible
// columns: the table is then wider than asked).
//
// Cells are hostile (function names from traces): control characters become
// "?", bytes that are not UTF-8 become U+FFFD, so that a cell can neither
// break a line nor drive the terminal. One code point counts as one column.
// No line ends in spaces. Rendering is a pure function: same rows, same text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/block.h"  // IWYU pragma: export: Heading() goes with every table

namespace culprit::report {

class Table {
 public:
  enum class Align { kLeft, kRight };
  static constexpr size_t kMinimumFlexible = 12;

  // At most one column is flexible. All columns come before the first row.
  Table& Column(std::string_view header, Align align = Align::kLeft, bool flexible = false);
  // Missing cells at the end are empty; more cells than columns is a bug.
  Table& Row(std::vector<std::string> cells);

  size_t rows() const { return rows_.size(); }
  // Header line and rows, each ended by a newline. With color, the header is
  // bold. width 0: as wide as it takes.
  std::string ToText(size_t width, bool color = false) const;

 private:
  struct ColumnSpec {
    std::string header;
    Align align;
    bool flexible;
  };
  std::vector<size_t> Widths(size_t width) const;

  std::vector<ColumnSpec> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// part / whole as a bar of at most `columns` blocks, in eighths: "███▌". A cell
// for a left-aligned column. Any part above zero shows at least one eighth.
std::string ShareBar(int64_t part, int64_t whole, size_t columns = 10);

}  // namespace culprit::report
