// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>

#include "symbol/symbolizer.h"

namespace culprit::symbol {
namespace {

constexpr size_t kMaxNameBytes = 4096;

bool TakeHexadecimal(std::string_view& rest, uint64_t& value) {
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  if (rest.starts_with("0x")) rest.remove_prefix(2);
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), value, 16);
  if (parsed.ec != std::errc()) return false;
  rest.remove_prefix(static_cast<size_t>(parsed.ptr - rest.data()));
  return rest.starts_with(' ');
}

}  // namespace

JitSymbols JitSymbols::Parse(std::string_view text, Diagnostics& diagnostics) {
  JitSymbols symbols;
  std::vector<Row> rows;
  size_t offset = 0;
  while (offset < text.size()) {
    const size_t begin = offset;
    std::string_view line = text.substr(offset, text.substr(offset).find('\n'));
    offset += line.size() + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(' ') == line.npos) continue;
    uint64_t start = 0;
    uint64_t size = 0;
    if (!TakeHexadecimal(line, start) || !TakeHexadecimal(line, size) || size == 0 ||
        start + size < start || line.size() < 2) {
      diagnostics.Count("line of a JIT map that could not be read", 1, begin);
      continue;
    }
    line = line.substr(1, kMaxNameBytes);
    rows.push_back({start, start + size, symbols.names_.size(), line.size()});
    symbols.names_.append(line);
  }
  symbols.LayOut(rows);
  return symbols;
}

// Compilers reuse memory, so a later line hides what it covers of earlier ones:
// from the last line to the first, each takes what is still free. `taken` holds
// merged ranges, so every one of them is passed over once.
void JitSymbols::LayOut(const std::vector<Row>& rows) {
  std::map<uint64_t, uint64_t> taken;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    uint64_t from = row->start;
    uint64_t merged_start = row->start;
    uint64_t merged_end = row->end;
    auto next = taken.upper_bound(from);
    if (next != taken.begin() && std::prev(next)->second >= from) --next;
    while (next != taken.end() && next->first <= row->end) {
      if (from < next->first) rows_.push_back({from, next->first, row->name, row->length});
      from = std::max(from, next->second);
      merged_start = std::min(merged_start, next->first);
      merged_end = std::max(merged_end, next->second);
      next = taken.erase(next);
    }
    if (from < row->end) rows_.push_back({from, row->end, row->name, row->length});
    taken[merged_start] = merged_end;
  }
  std::sort(rows_.begin(), rows_.end(),
            [](const Row& a, const Row& b) { return a.start < b.start; });
}

std::string_view JitSymbols::Lookup(uint64_t address) const {
  auto it = std::upper_bound(rows_.begin(), rows_.end(), address,
                             [](uint64_t at, const Row& row) { return at < row.start; });
  if (it == rows_.begin() || address >= (--it)->end) return {};
  return std::string_view(names_).substr(it->name, it->length);
}

}  // namespace culprit::symbol
