// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/flat_map.h"
#include "symbol/frame_ranges.h"

namespace culprit::record {
namespace {

constexpr size_t kMaxSectionBytes = size_t{1} << 30;
// Of one table; an offset must fit its 32 bits.
constexpr uint64_t kMaxCodeBytes = uint64_t{1} << 31;

using RuleWords = std::array<uint64_t, 2>;
static_assert(sizeof(RuleWords) == sizeof(UnwindRule));

struct RuleHash {
  uint64_t operator()(const RuleWords& rule) const {
    return IntegerHash()(rule[0] ^ IntegerHash()(rule[1]));
  }
};

std::optional<UnwindMachine> MachineOf(uint16_t elf_machine) {
  if (elf_machine == EM_AARCH64) return UnwindMachine::kArm64;
  if (elf_machine == EM_X86_64) return UnwindMachine::kX86_64;
  return std::nullopt;
}

// Files without section headers, as the vdso of some kernels, say it in
// .eh_frame_hdr.
CfiSection FindFrames(const symbol::ElfFile& file) {
  if (const symbol::Section* section = file.FindSection(".eh_frame")) {
    return {.bytes = file.SectionBytes(*section, kMaxSectionBytes),
            .address = section->header.sh_addr};
  }
  const std::optional<uint64_t> header = file.EhFrameHeaderAddress();
  if (!header) return {};
  const std::optional<uint64_t> address =
      symbol::FrameSectionAddress({.bytes = file.SegmentBytes(*header, 64), .address = *header});
  if (!address) return {};
  return {.bytes = file.SegmentBytes(*address, kMaxSectionBytes), .address = *address};
}

// Linkers describe the procedure linkage table of x86-64, but not that of arm64.
// Its first entry saves two registers and goes on to the dynamic linker; the others
// only jump.
std::optional<UnwindTable::Span> Arm64Plt(const symbol::ElfFile& file) {
  constexpr size_t kFirstEntryBytes = 32;
  constexpr uint32_t kSave = 0xa9bf7bf0;  // stp x16, x30, [sp, #-16]!
  const symbol::Section* section = file.FindSection(".plt");
  if (section == nullptr) return std::nullopt;
  const std::string_view bytes = file.SectionBytes(*section, kMaxSectionBytes);
  const uint64_t start = section->header.sh_addr;
  if (bytes.size() <= kFirstEntryBytes || start == 0) return std::nullopt;
  const UnwindRule untouched = {.cfa = kCfaStack, .return_place = kPlaceSame};
  const UnwindRule saved = {
      .cfa = kCfaStack, .return_place = kPlaceCfa, .cfa_offset = 16, .return_offset = -8};
  UnwindTable::Span span = {.start = start, .end = start + bytes.size()};
  span.rows.push_back({.address = start, .rule = untouched});
  for (size_t at = 0; at < kFirstEntryBytes - 4; at += 4) {
    uint32_t instruction = 0;
    memcpy(&instruction, bytes.data() + at, sizeof(instruction));
    if (instruction != kSave) continue;
    span.rows.push_back({.address = start + at + 4, .rule = saved});
    span.rows.push_back({.address = start + kFirstEntryBytes, .rule = untouched});
    break;
  }
  return span;
}

}  // namespace

Result<UnwindTable> UnwindTable::Build(const symbol::ElfFile& file) {
  const std::optional<UnwindMachine> machine = MachineOf(file.machine());
  if (!machine || gelf_getclass(file.handle()) != ELFCLASS64) {
    return Error{.message = "no code of arm64 or x86-64", .file = file.path()};
  }
  CfiSection section = FindFrames(file);
  if (section.bytes.empty()) {
    return Error{.message = "no unwind information (.eh_frame)", .file = file.path()};
  }
  section.machine = *machine;
  std::vector<Piece> pieces;
  std::vector<CfiRow> rows;
  const auto add = [&](uint64_t start, uint64_t end, const std::vector<CfiRow>& of_piece) {
    pieces.push_back(
        {.start = start, .end = end, .first_row = rows.size(), .rows = of_piece.size()});
    rows.insert(rows.end(), of_piece.begin(), of_piece.end());
  };
  if (*machine == UnwindMachine::kArm64) {
    if (const std::optional<Span> plt = Arm64Plt(file)) add(plt->start, plt->end, plt->rows);
  }
  const uint64_t bad = ReadCfi(section, [&](const CfiFunction& function) {
    add(function.start, function.end, function.rows);
  });
  UnwindTable table = FromPieces(std::move(pieces), rows);
  table.bad_ = bad;
  return table;
}

UnwindTable UnwindTable::FromSpans(const std::vector<Span>& spans) {
  std::vector<Piece> pieces;
  std::vector<CfiRow> rows;
  for (const Span& span : spans) {
    pieces.push_back(
        {.start = span.start, .end = span.end, .first_row = rows.size(), .rows = span.rows.size()});
    rows.insert(rows.end(), span.rows.begin(), span.rows.end());
  }
  return FromPieces(std::move(pieces), rows);
}

UnwindTable UnwindTable::FromPieces(std::vector<Piece> pieces, std::span<const CfiRow> rows) {
  UnwindTable table;
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.start < b.start; });
  if (pieces.empty()) return table;
  table.origin_ = pieces.front().start;
  FlatMap<RuleWords, uint32_t, RuleHash> known;
  *known.Insert(std::bit_cast<RuleWords>(UnwindRule{})).first = 0;
  const auto add = [&](uint64_t address, const UnwindRule& rule) {
    const auto [number, is_new] = known.Insert(std::bit_cast<RuleWords>(rule));
    if (is_new) {
      *number = static_cast<uint32_t>(table.rules_.size());
      table.rules_.push_back(rule);
    }
    if (!table.rows_.empty() && table.rows_.back().rule == *number) return;
    table.rows_.push_back({static_cast<uint32_t>(address - table.origin_), *number});
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (piece.end - table.origin_ > kMaxCodeBytes) break;
    const bool is_last = i + 1 == pieces.size();
    const uint64_t limit = is_last ? piece.end : std::min(piece.end, pieces[i + 1].start);
    for (const CfiRow& row : rows.subspan(piece.first_row, piece.rows)) {
      if (row.address < limit) add(row.address, row.rule);
    }
    if (limit > piece.start && (is_last || limit < pieces[i + 1].start)) add(limit, UnwindRule{});
  }
  // What follows may have been too far away.
  if (!table.rows_.empty() && table.rows_.back().rule != 0) {
    table.rows_.push_back({static_cast<uint32_t>(kMaxCodeBytes), 0});
  }
  return table;
}

const UnwindRule& UnwindTable::At(uint64_t address) const {
  if (address < origin_ || address >= end()) return rules_[0];
  const auto offset = static_cast<uint32_t>(address - origin_);
  const auto after = std::upper_bound(rows_.begin(), rows_.end(), offset,
                                      [](uint32_t at, const Row& row) { return at < row.offset; });
  return rules_[std::prev(after)->rule];
}

}  // namespace culprit::record
