// SPDX-License-Identifier: Apache-2.0
#include "symbol/inline_frames.h"

#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace culprit::symbol {
namespace {

constexpr size_t kMaxUnits = 1'000'000;
constexpr size_t kMaxDepth = 64;         // of nested scopes
constexpr size_t kMaxOverlap = 32;       // ranges looked at around an address
constexpr size_t kMaxDies = 50'000'000;  // of one unit

bool HasCode(int tag) { return tag == DW_TAG_subprogram; }

// Scopes that functions may stand in.
bool HoldsFunctions(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
      return true;
    default:
      return false;
  }
}

bool IsScope(int tag) {
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
         tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

template <class Take>
void ForEachRange(Dwarf_Die& die, const Take& take) {
  Dwarf_Addr base = 0;
  Dwarf_Addr start = 0;
  Dwarf_Addr end = 0;
  ptrdiff_t at = 0;
  while ((at = dwarf_ranges(&die, at, &base, &start, &end)) > 0) {
    // Code the linker dropped has its addresses set to zero or one.
    if (start > 1 && end > start) take(start, end);
  }
}

// The declaration a concrete or inlined copy refers to.
Dwarf_Die OriginOf(Dwarf_Die die) {
  for (size_t i = 0; i < kMaxDepth; ++i) {
    Dwarf_Attribute reference;
    Dwarf_Die next = {};
    if (dwarf_attr(&die, DW_AT_abstract_origin, &reference) == nullptr &&
        dwarf_attr(&die, DW_AT_specification, &reference) == nullptr) {
      break;
    }
    if (dwarf_formref_die(&reference, &next) == nullptr) break;
    die = next;
  }
  return die;
}

std::string_view ScopeName(Dwarf_Die& scope) {
  switch (dwarf_tag(&scope)) {
    case DW_TAG_namespace:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type: {
      const char* name = dwarf_diename(&scope);
      return name == nullptr ? "(anonymous namespace)" : name;
    }
    default:
      return {};
  }
}

// In C a function has no scope around it; libdw looks for one through the whole
// unit.
bool IsC(Dwarf_Die& die) {
  Dwarf_Die unit = {};
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return false;
  const int language = dwarf_srclang(&unit);
  return language == DW_LANG_C89 || language == DW_LANG_C || language == DW_LANG_C99 ||
         language == DW_LANG_C11;
}

std::string FunctionName(Dwarf_Die die) {
  for (const unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute found;
    if (dwarf_attr_integrate(&die, attribute, &found) == nullptr) continue;
    const char* name = dwarf_formstring(&found);
    if (name != nullptr && *name != '\0') return Demangle(name);
  }
  const char* name = dwarf_diename(&die);
  if (name == nullptr) return {};
  // Static functions have no linkage name; their scopes make it whole.
  std::string full = name;
  Dwarf_Die origin = OriginOf(die);
  if (IsC(origin)) return full;
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(&origin, &scopes);
  for (int i = 1; i < count; ++i) {
    const std::string_view scope = ScopeName(scopes[i]);
    if (!scope.empty()) full = std::string(scope) + "::" + full;
  }
  if (count > 0) std::free(scopes);
  return full;
}

uint32_t CallNumber(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  Dwarf_Word value = 0;
  if (dwarf_attr(&die, attribute, &found) == nullptr || dwarf_formudata(&found, &value) != 0) {
    return 0;
  }
  return static_cast<uint32_t>(value);
}

std::string CallFile(Dwarf_Die& unit, Dwarf_Die& call) {
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  const uint32_t index = CallNumber(call, DW_AT_call_file);
  if (dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count) return {};
  const char* name = dwarf_filesrc(files, index, nullptr, nullptr);
  return name == nullptr ? std::string() : std::string(name);
}

}  // namespace

std::unique_ptr<InlineFrames> InlineFrames::Open(const ElfFile& file) {
  if (file.relocatable()) return nullptr;  // its DWARF waits for the linker
  if (file.FindSection(".debug_info") == nullptr && file.FindSection(".zdebug_info") == nullptr) {
    return nullptr;
  }
  std::unique_ptr<InlineFrames> frames(new InlineFrames);
  frames->dwarf_.reset(dwarf_begin_elf(file.handle(), DWARF_C_READ, nullptr));
  if (frames->dwarf_ == nullptr) return nullptr;
  frames->ReadUnits();
  return frames->ranges_.empty() ? nullptr : std::move(frames);
}

void InlineFrames::ReadUnits() {
  Dwarf_CU* unit = nullptr;
  Dwarf_Half version = 0;
  uint8_t type = 0;
  Dwarf_Die die = {};
  Dwarf_Die split = {};
  while (units_.size() < kMaxUnits &&
         dwarf_get_units(dwarf_.get(), unit, &unit, &version, &type, &die, &split) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    const auto index = static_cast<uint32_t>(units_.size());
    units_.push_back({.lines = die, .tree = split.addr != nullptr ? split : die});
    ForEachRange(die, [&](uint64_t start, uint64_t end) {
      ranges_.push_back({start, end, index});
    });
  }
  const auto order = [](const Range& a, const Range& b) {
    return a.start != b.start ? a.start < b.start : a.index < b.index;
  };
  std::sort(ranges_.begin(), ranges_.end(), order);
}

// Of the ranges that hold the address the one that starts last: the innermost.
const InlineFrames::Range* InlineFrames::FindRange(const std::vector<Range>& ranges,
                                                   uint64_t address) {
  auto it = std::upper_bound(ranges.begin(), ranges.end(), address,
                             [](uint64_t at, const Range& range) { return at < range.start; });
  for (size_t i = 0; i < kMaxOverlap && it != ranges.begin(); ++i) {
    --it;
    if (address < it->end) return &*it;
  }
  return nullptr;
}

void InlineFrames::IndexFunctions(Unit& unit) {
  unit.indexed = true;
  // Depth first by an explicit stack: DWARF nests as deep as its author likes.
  std::vector<Dwarf_Die> stack;
  Dwarf_Die die = {};
  size_t visited = 0;
  if (dwarf_child(&unit.tree, &die) == 0) stack.push_back(die);
  while (!stack.empty() && ++visited < kMaxDies) {
    die = stack.back();
    stack.pop_back();
    Dwarf_Die next = {};
    if (dwarf_siblingof(&die, &next) == 0) stack.push_back(next);
    const int tag = dwarf_tag(&die);
    if (HasCode(tag)) {
      const auto index = static_cast<uint32_t>(unit.functions.size());
      const size_t before = unit.ranges.size();
      ForEachRange(die, [&](uint64_t start, uint64_t end) {
        unit.ranges.push_back({start, end, index});
      });
      if (unit.ranges.size() > before) unit.functions.push_back(die);
    }
    if (HoldsFunctions(tag) && stack.size() < kMaxDepth && dwarf_child(&die, &next) == 0) {
      stack.push_back(next);
    }
  }
  std::sort(unit.ranges.begin(), unit.ranges.end(), [](const Range& a, const Range& b) {
    return a.start != b.start ? a.start < b.start : a.index < b.index;
  });
}

// The function that holds the address, then the calls inlined into it.
void InlineFrames::AppendChain(Unit& unit, uint64_t address, std::vector<Dwarf_Die>& chain) {
  if (!unit.indexed) IndexFunctions(unit);
  const Range* range = FindRange(unit.ranges, address);
  if (range == nullptr) return;
  Dwarf_Die scope = unit.functions[range->index];
  chain.push_back(scope);
  for (size_t depth = 0; depth < kMaxDepth; ++depth) {
    Dwarf_Die child = {};
    int more = dwarf_child(&scope, &child);
    while (more == 0 && !(IsScope(dwarf_tag(&child)) && dwarf_haspc(&child, address) == 1)) {
      Dwarf_Die next = {};
      more = dwarf_siblingof(&child, &next);
      child = next;
    }
    if (more != 0) return;
    scope = child;
    if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine) chain.push_back(scope);
  }
}

const std::string& InlineFrames::NameOf(Dwarf_Die& die) {
  const Dwarf_Die origin = OriginOf(die);
  const auto [it, added] = names_.try_emplace(origin.addr);
  if (added) it->second = FunctionName(die);
  return it->second;
}

bool InlineFrames::Lookup(uint64_t address, bool has_name, std::vector<Symbol>& frames) {
  const Range* range = FindRange(ranges_, address);
  if (range == nullptr) return false;
  Unit& unit = units_[range->index];
  std::vector<Dwarf_Die> chain;
  AppendChain(unit, address, chain);
  if (chain.empty()) {
    frames.emplace_back();
  }
  for (size_t i = 0; i < chain.size(); ++i) {
    Symbol& frame = frames.emplace_back();
    if (i > 0 || !has_name) frame.function = NameOf(chain[i]);
    frame.inlined = i > 0;
    if (i + 1 < chain.size()) {  // it stands at the call of the next one
      frame.file = CallFile(unit.tree, chain[i + 1]);
      frame.line = CallNumber(chain[i + 1], DW_AT_call_line);
    }
  }
  if (Dwarf_Line* line = dwarf_getsrc_die(&unit.lines, address)) {
    const char* file = dwarf_linesrc(line, nullptr, nullptr);
    int number = 0;
    if (file != nullptr) frames.back().file = file;
    if (dwarf_lineno(line, &number) == 0 && number > 0) {
      frames.back().line = static_cast<uint32_t>(number);
    }
  }
  return true;
}

}  // namespace culprit::symbol
