// SPDX-License-Identifier: Apache-2.0
#include "report/table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "report/plain_text.h"

namespace culprit::report {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

// Keeps the front and, when the room is odd, one more column of the end: the
// leaf of a path or a qualified name says more than its start.
std::string CutMiddle(std::string_view text, size_t room) {
  const size_t length = CodePoints(text);
  if (length <= room) return std::string(text);
  const size_t front = (room - 1) / 2;
  const size_t back = room - 1 - front;
  std::string cut(text.substr(0, CodePointOffset(text, front)));
  cut += kEllipsis;
  return cut.append(text.substr(CodePointOffset(text, length - back)));
}

std::string Padded(std::string_view text, size_t width, Table::Align align) {
  const std::string fill(width - std::min(width, CodePoints(text)), ' ');
  return align == Table::Align::kLeft ? std::string(text) + fill : fill + std::string(text);
}

void TrimRight(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

Table& Table::Column(std::string_view header, Align align, bool flexible) {
  CULPRIT_CHECK(rows_.empty());
  CULPRIT_CHECK(!flexible || std::none_of(columns_.begin(), columns_.end(),
                                          [](const ColumnSpec& c) { return c.flexible; }));
  columns_.push_back({.header = PlainText(header), .align = align, .flexible = flexible});
  return *this;
}

Table& Table::Row(std::vector<std::string> cells) {
  CULPRIT_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = PlainText(cell);
  rows_.push_back(std::move(cells));
  return *this;
}

std::vector<size_t> Table::Widths(size_t width) const {
  std::vector<size_t> widths;
  size_t total = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t widest = CodePoints(columns_[i].header);
    for (const auto& row : rows_) widest = std::max(widest, CodePoints(row[i]));
    widths.push_back(widest);
    total += widest + (i == 0 ? 0 : kGap.size());
  }
  if (width == 0 || total <= width) return widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].flexible) continue;
    const size_t least =
        std::min(widths[i], std::max(kMinimumFlexible, CodePoints(columns_[i].header)));
    widths[i] -= std::min(total - width, widths[i] - least);
  }
  return widths;
}

std::string Table::ToText(size_t width, bool color) const {
  const std::vector<size_t> widths = Widths(width);
  const auto line_of = [&](auto cell_at) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i != 0) line += kGap;
      line += Padded(CutMiddle(cell_at(i), widths[i]), widths[i], columns_[i].align);
    }
    TrimRight(line);
    return line;
  };
  std::string text = line_of([&](size_t i) { return std::string_view(columns_[i].header); });
  text = Styled(Style::kBold, text, color) + "\n";
  for (const auto& row : rows_) {
    text += line_of([&](size_t i) { return std::string_view(row[i]); }) + "\n";
  }
  return text;
}

std::string ShareBar(int64_t part, int64_t whole, size_t columns) {
  static constexpr std::array<std::string_view, 8> kEighths = {
      "", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
  if (part <= 0 || whole <= 0 || columns == 0) return "";
  const double share = std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
  const auto rounded = std::lround(share * static_cast<double>(columns * 8));
  const auto eighths = static_cast<size_t>(std::max(1L, rounded));
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "\u2588";
  return bar.append(kEighths[eighths % 8]);
}

}  // namespace culprit::report
