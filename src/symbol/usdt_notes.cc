// SPDX-License-Identifier: Apache-2.0
#include "symbol/usdt_notes.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"

namespace culprit::symbol {
namespace {

constexpr uint32_t kUsdtNoteType = 3;
constexpr std::string_view kUsdtOwner{"stapsdt\0", 8};
constexpr size_t kMaxUsdtBytes = size_t{64} << 20;

size_t PaddedTo4(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

// Up to its zero byte; nothing if there is none.
std::optional<std::string> TakeText(std::string_view& bytes) {
  const size_t end = bytes.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  std::string text(bytes.substr(0, end));
  bytes.remove_prefix(end + 1);
  return text;
}

std::optional<UsdtNote> ParseDescription(std::string_view bytes, bool wide) {
  ByteReader in(bytes);
  UsdtNote note;
  for (uint64_t* value : {&note.address, &note.base, &note.semaphore}) {
    *value = wide ? in.U64() : in.U32();
  }
  if (in.failed()) return std::nullopt;
  std::string_view rest = bytes.substr(bytes.size() - in.remaining());
  const std::optional<std::string> provider = TakeText(rest);
  const std::optional<std::string> name = TakeText(rest);
  if (!provider || !name) return std::nullopt;
  note.provider = *provider;
  note.name = *name;
  note.arguments = TakeText(rest).value_or(std::string());
  return note;
}

}  // namespace

std::vector<UsdtNote> ParseUsdtNotes(std::string_view bytes, bool wide) {
  std::vector<UsdtNote> notes;
  constexpr size_t kHeaderBytes = 12;
  while (bytes.size() >= kHeaderBytes) {
    ByteReader in(bytes.substr(0, kHeaderBytes));
    const size_t owner_bytes = in.U32();
    const size_t description_bytes = in.U32();
    const uint32_t type = in.U32();
    bytes.remove_prefix(kHeaderBytes);
    if (owner_bytes > bytes.size()) break;
    const std::string_view owner = bytes.substr(0, owner_bytes);
    bytes.remove_prefix(std::min(PaddedTo4(owner_bytes), bytes.size()));
    if (description_bytes > bytes.size()) break;
    const std::string_view description = bytes.substr(0, description_bytes);
    bytes.remove_prefix(std::min(PaddedTo4(description_bytes), bytes.size()));
    if (type != kUsdtNoteType || owner != kUsdtOwner) continue;
    if (std::optional<UsdtNote> note = ParseDescription(description, wide)) {
      notes.push_back(std::move(*note));
    }
  }
  return notes;
}

std::vector<UsdtProbe> ReadUsdtProbes(const ElfFile& file) {
  std::vector<UsdtProbe> probes;
  const Section* section = file.FindSection(".note.stapsdt");
  if (section == nullptr) return probes;
  const bool wide = gelf_getclass(file.handle()) == ELFCLASS64;
  const Section* base = file.FindSection(".stapsdt.base");
  for (const UsdtNote& note : ParseUsdtNotes(file.SectionBytes(*section, kMaxUsdtBytes), wide)) {
    // What moved the program after it was linked (prelink) moved that section, too.
    const uint64_t moved = base != nullptr ? base->header.sh_addr - note.base : 0;
    const std::optional<uint64_t> offset = file.OffsetOfAddress(note.address + moved);
    if (!offset) continue;
    UsdtProbe probe = {.provider = note.provider,
                       .name = note.name,
                       .arguments = note.arguments,
                       .offset = *offset};
    if (note.semaphore != 0) {
      const std::optional<uint64_t> counter = file.OffsetOfAddress(note.semaphore + moved);
      // A probe whose counter cannot be found may never be reached.
      if (!counter) continue;
      probe.semaphore_offset = *counter;
    }
    probes.push_back(std::move(probe));
  }
  return probes;
}

}  // namespace culprit::symbol
