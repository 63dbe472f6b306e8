// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "symbol/symbol_table.h"
#include "symbol/symbolizer.h"

namespace culprit::symbol {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr uint64_t kMaxFunctionBytes = uint64_t{1} << 20;  // beyond it nothing is known

struct Line {
  uint64_t address = 0;
  char type = 0;
  std::string_view name;
  std::string_view module;  // "[ext4]", or empty
};

std::string_view NextWord(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t\r")));
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r"));
  rest.remove_prefix(word.size());
  return word;
}

// "ffff800080010000 T _stext", "ffff80007a0b1000 t ext4_find [ext4]".
std::optional<Line> ParseLine(std::string_view text) {
  Line line;
  const std::string_view address = NextWord(text);
  const std::string_view type = NextWord(text);
  line.name = NextWord(text);
  line.module = NextWord(text);
  const char* end = address.data() + address.size();
  const auto parsed = std::from_chars(address.data(), end, line.address, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end || type.size() != 1 || line.name.empty()) {
    return std::nullopt;
  }
  line.type = type.front();
  return line;
}

bool IsText(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }

// Labels of the linker script say where a part of the kernel begins, not which
// function stands there; arm64 labels code kinds with "$x".
bool IsMarker(std::string_view name) {
  return name == "_text" || name == "_stext" || name == "_etext" || name == "_sinittext" ||
         name == "_einittext" || name.ends_with("text_start") || name.ends_with("text_end") ||
         name.starts_with('$');
}

}  // namespace

Result<KernelSymbols> KernelSymbols::Parse(std::string_view text) {
  if (text.size() > kMaxTextBytes) return Error{.message = "kernel symbols are too long"};
  KernelSymbols symbols;
  symbols.text_ = text;
  symbols.modules_ = {"[kernel]"};
  std::map<std::string, uint32_t, std::less<>> module_index;
  std::string_view rest = symbols.text_;
  uint64_t lines = 0;
  uint64_t nonzero = 0;
  while (!rest.empty()) {
    const std::string_view line_text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line_text.size() + 1));
    const auto line = ParseLine(line_text);
    if (!line) continue;
    ++lines;
    nonzero += line->address != 0 ? 1 : 0;
    uint32_t module = 0;
    if (!line->module.empty()) {
      const auto [it, added] = module_index.emplace(std::string(line->module),
                                                    static_cast<uint32_t>(symbols.modules_.size()));
      if (added) symbols.modules_.push_back(it->first);
      module = it->second;
    }
    // perf prefers _text to _stext, whichever comes first.
    if (line->module.empty() &&
        (line->name == "_text" || (line->name == "_stext" && !symbols.base_))) {
      symbols.base_ = line->address;
    }
    const bool named = IsText(line->type);
    symbols.rows_.push_back(
        {.address = line->address,
         .name_offset = static_cast<uint32_t>(line->name.data() - symbols.text_.data()),
         .name_length = named ? static_cast<uint32_t>(line->name.size()) : 0,
         .module = module,
         .global = line->type != 't'});
  }
  if (lines == 0) {
    return Error{.message = "no kernel symbols in it",
                 .hint = "give the text of /proc/kallsyms, read as root"};
  }
  symbols.hidden_ = nonzero == 0;
  if (symbols.hidden_) {
    symbols.rows_.clear();
    symbols.base_.reset();
  }
  symbols.KeepBest();
  return symbols;
}

// One row an address, the best name first; data symbols stay only where they
// end a function.
void KernelSymbols::KeepBest() {
  const auto name = [this](const Row& row) {
    return std::string_view(text_).substr(row.name_offset, row.name_length);
  };
  std::sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) {
    if (a.address != b.address) return a.address < b.address;
    if ((a.name_length == 0) != (b.name_length == 0)) return b.name_length == 0;
    if (IsMarker(name(a)) != IsMarker(name(b))) return IsMarker(name(b));
    if (a.global != b.global) return a.global;
    if (name(a) != name(b)) return BetterName(name(a), name(b));
    return a.name_offset < b.name_offset;
  });
  std::vector<Row> kept;
  for (const Row& row : rows_) {
    if (!kept.empty() && kept.back().address == row.address) continue;
    if (row.name_length == 0 && (kept.empty() || kept.back().name_length == 0)) continue;
    kept.push_back(row);
  }
  rows_ = std::move(kept);
  named_ = static_cast<size_t>(std::count_if(rows_.begin(), rows_.end(),
                                             [](const Row& row) { return row.name_length != 0; }));
}

KernelSymbols::Found KernelSymbols::Lookup(uint64_t address) const {
  auto it = std::upper_bound(rows_.begin(), rows_.end(), address,
                             [](uint64_t at, const Row& row) { return at < row.address; });
  if (it == rows_.begin()) return {};
  --it;
  if (it->name_length == 0 || address - it->address >= kMaxFunctionBytes) return {};
  return {.name = std::string_view(text_).substr(it->name_offset, it->name_length),
          .module = modules_[it->module],
          .start = it->address};
}

size_t KernelSymbols::size() const { return named_; }

bool KernelSymbols::hidden() const { return hidden_; }

}  // namespace culprit::symbol
