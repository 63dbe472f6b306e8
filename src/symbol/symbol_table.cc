// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_table.h"

#include <algorithm>
#include <utility>

namespace culprit::symbol {
namespace {

size_t LeadingUnderscores(std::string_view name) {
  const size_t first = name.find_first_not_of('_');
  return first == std::string_view::npos ? name.size() : first;
}

// "memcpy@@GLIBC_2.17" is memcpy; "memcpy@plt" is the stub and stays.
std::string_view WithoutVersion(std::string_view name) {
  const size_t at = name.find('@');
  return at == 0 || at == std::string_view::npos || name.substr(at) == "@plt" ? name
                                                                              : name.substr(0, at);
}

}  // namespace

bool BetterName(std::string_view a, std::string_view b) {
  const size_t under_a = LeadingUnderscores(a);
  const size_t under_b = LeadingUnderscores(b);
  if (under_a != under_b) return under_a < under_b;
  if (a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

void SymbolTable::Add(uint64_t start, uint64_t size, uint64_t limit, std::string_view name,
                      bool global) {
  name = WithoutVersion(name);
  if (start + size < start) size = 0;  // a hostile size must not wrap around
  rows_.push_back({.start = start,
                   .end = start + size,
                   .limit = limit,
                   .name_offset = names_.size(),
                   .name_length = static_cast<uint32_t>(std::min<size_t>(name.size(), 1u << 20)),
                   .global = global});
  names_.append(name.substr(0, 1u << 20));
}

bool SymbolTable::Better(const Row& a, const Row& b) const {
  const bool sized_a = a.end > a.start;
  const bool sized_b = b.end > b.start;
  if (sized_a != sized_b) return sized_a;
  if (a.global != b.global) return a.global != 0;
  if (a.end != b.end) return a.end > b.end;
  const std::string_view names = names_;
  return BetterName(names.substr(a.name_offset, a.name_length),
                    names.substr(b.name_offset, b.name_length));
}

void SymbolTable::KeepBestAliases() {
  std::sort(rows_.begin(), rows_.end(), [this](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : Better(a, b);
  });
  rows_.erase(std::unique(rows_.begin(), rows_.end(),
                          [](const Row& a, const Row& b) { return a.start == b.start; }),
              rows_.end());
}

// Assembly often forgets the size of its symbols but describes its frames.
void SymbolTable::SizeFromRanges() {
  size_t next = 0;
  for (Row& row : rows_) {
    while (next < ranges_.size() && ranges_[next].start < row.start) ++next;
    if (next == ranges_.size()) return;
    if (row.end == row.start && ranges_[next].start == row.start) row.end = ranges_[next].end;
  }
}

void SymbolTable::Emit(std::vector<Segment>& segments, uint64_t start, uint32_t owner) {
  if (!segments.empty() && segments.back().start == start) {
    segments.back().owner = owner;
  } else if (segments.empty() || segments.back().owner != owner) {
    segments.push_back({start, owner});
  }
}

// A sweep with the stack of open functions: at each end the function around it
// goes on, if there is one.
std::vector<SymbolTable::Segment> SymbolTable::FlattenSized() const {
  std::vector<Segment> segments;
  std::vector<uint32_t> open;
  const auto close_until = [&](uint64_t start) {
    while (!open.empty() && rows_[open.back()].end <= start) {
      const uint64_t end = rows_[open.back()].end;
      while (!open.empty() && rows_[open.back()].end <= end) open.pop_back();
      Emit(segments, end, open.empty() ? kNone : open.back());
    }
  };
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].end == rows_[i].start) continue;
    close_until(rows_[i].start);
    open.push_back(i);
    Emit(segments, rows_[i].start, i);
  }
  close_until(UINT64_MAX);
  return segments;
}

void SymbolTable::FillWithRanges(std::vector<Segment>& segments) {
  std::vector<Segment> filled;
  size_t next = 0;  // the first range that may still reach beyond the current hole's start
  const auto fill_hole = [&](uint64_t from, uint64_t to) {
    Emit(filled, from, kNone);
    while (next < ranges_.size() && ranges_[next].end <= from) ++next;
    for (size_t i = next; i < ranges_.size() && ranges_[i].start < to; ++i) {
      rows_.push_back({.start = ranges_[i].start, .end = ranges_[i].end});
      Emit(filled, std::max(from, ranges_[i].start), static_cast<uint32_t>(rows_.size() - 1));
      if (ranges_[i].end < to) Emit(filled, ranges_[i].end, kNone);
    }
  };
  fill_hole(0, segments.empty() ? UINT64_MAX : segments.front().start);
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint64_t end = i + 1 < segments.size() ? segments[i + 1].start : UINT64_MAX;
    if (segments[i].owner != kNone) {
      Emit(filled, segments[i].start, segments[i].owner);
    } else {
      fill_hole(segments[i].start, end);
    }
  }
  segments = std::move(filled);
}

void SymbolTable::FillWithUnsized(std::vector<Segment>& segments, size_t named) const {
  std::vector<Segment> filled;
  size_t row = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint64_t end = i + 1 < segments.size() ? segments[i + 1].start : UINT64_MAX;
    Emit(filled, segments[i].start, segments[i].owner);
    for (; row < named && rows_[row].start < end; ++row) {
      const Row& symbol = rows_[row];
      if (segments[i].owner != kNone || symbol.end != symbol.start) continue;
      if (symbol.start < segments[i].start || symbol.limit <= symbol.start) continue;
      if (!filled.empty() && filled.back().start > symbol.start) filled.pop_back();
      Emit(filled, symbol.start, static_cast<uint32_t>(row));
      if (symbol.limit < end) Emit(filled, symbol.limit, kNone);
    }
  }
  segments = std::move(filled);
}

void SymbolTable::Build() {
  std::sort(ranges_.begin(), ranges_.end());
  // Disjoint: a range ends where the next one starts.
  std::erase_if(ranges_, [](const CodeRange& range) { return range.end <= range.start; });
  for (size_t i = 0; i + 1 < ranges_.size(); ++i) {
    ranges_[i].end = std::min(ranges_[i].end, ranges_[i + 1].start);
  }
  std::erase_if(ranges_, [](const CodeRange& range) { return range.end <= range.start; });
  KeepBestAliases();
  SizeFromRanges();
  std::vector<Segment> segments = FlattenSized();
  const size_t named = rows_.size();
  FillWithRanges(segments);
  FillWithUnsized(segments, named);
  starts_.reserve(segments.size());
  owners_.reserve(segments.size());
  for (const Segment& segment : segments) {
    starts_.push_back(segment.start);
    owners_.push_back(segment.owner);
  }
  ranges_ = {};
}

}  // namespace culprit::symbol
