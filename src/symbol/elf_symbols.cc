// SPDX-License-Identifier: Apache-2.0
#include "symbol/elf_symbols.h"

#include <algorithm>

#include "symbol/decompress.h"
#include "symbol/frame_ranges.h"

namespace culprit::symbol {
namespace {

constexpr size_t kMaxMiniDebugBytes = size_t{256} << 20;
constexpr size_t kMaxFrameBytes = size_t{1} << 30;

bool IsCode(const GElf_Sym& symbol, std::string_view name) {
  const auto type = GELF_ST_TYPE(symbol.st_info);
  if (type == STT_FUNC || type == STT_GNU_IFUNC) return true;
  // ARM and RISC-V mark code and data by labels "$x", "$d.7"; compilers leave ".L12".
  return type == STT_NOTYPE && !name.starts_with('$') && !name.starts_with(".L");
}

void AddTable(const ElfFile& file, const Section& section, SymbolTable& table) {
  Elf_Data* data = elf_getdata(section.handle, nullptr);
  const size_t entry = gelf_fsize(file.handle(), ELF_T_SYM, 1, EV_CURRENT);
  if (data == nullptr || data->d_buf == nullptr || entry == 0) return;
  const Section* text = file.relocatable() ? file.FindSection(".text") : nullptr;
  const auto count = static_cast<int>(std::min<size_t>(data->d_size / entry, INT32_MAX));
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr) break;
    // Sections are kept without the empty first one.
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx > file.sections().size()) continue;
    const Section& home = file.sections()[symbol.st_shndx - 1];
    if ((home.header.sh_flags & SHF_EXECINSTR) == 0) continue;
    if (file.relocatable() && &home != text) continue;
    const char* name = elf_strptr(file.handle(), section.header.sh_link, symbol.st_name);
    if (name == nullptr || *name == '\0' || !IsCode(symbol, name)) continue;
    uint64_t start = symbol.st_value;
    if (file.machine() == EM_ARM) start &= ~uint64_t{1};  // the bit that means Thumb
    const uint64_t base = file.relocatable() ? 0 : home.header.sh_addr;
    table.Add(start, symbol.st_size, base + home.header.sh_size, name,
              GELF_ST_BIND(symbol.st_info) != STB_LOCAL);
  }
}

struct PltShape {
  uint64_t header = 0;  // bytes of the first, special entry
  bool known = false;
};

PltShape PltShapeOf(const ElfFile& file, std::string_view section) {
  switch (file.machine()) {
    case EM_X86_64:
    case EM_386:
      return {.header = section == ".plt.sec" ? 0u : 16u, .known = true};
    case EM_AARCH64:
    case EM_RISCV:
      return {.header = 32, .known = section == ".plt"};
    default:
      return {};
  }
}

// The symbol that relocation `index` of a .rel[a].plt section is about.
const char* RelocatedName(const ElfFile& file, const Section& relocations, int index) {
  Elf_Data* data = elf_getdata(relocations.handle, nullptr);
  const size_t link = relocations.header.sh_link;
  if (data == nullptr || link == 0 || link > file.sections().size()) return nullptr;
  uint64_t info = 0;
  if (relocations.header.sh_type == SHT_RELA) {
    GElf_Rela relocation;
    if (gelf_getrela(data, index, &relocation) == nullptr) return nullptr;
    info = relocation.r_info;
  } else {
    GElf_Rel relocation;
    if (gelf_getrel(data, index, &relocation) == nullptr) return nullptr;
    info = relocation.r_info;
  }
  const Section& symbols = file.sections()[link - 1];
  GElf_Sym symbol;
  Elf_Data* symbol_data = elf_getdata(symbols.handle, nullptr);
  if (symbol_data == nullptr || GELF_R_SYM(info) == 0 || GELF_R_SYM(info) > INT32_MAX ||
      gelf_getsym(symbol_data, static_cast<int>(GELF_R_SYM(info)), &symbol) == nullptr) {
    return nullptr;
  }
  return elf_strptr(file.handle(), symbols.header.sh_link, symbol.st_name);
}

FrameSection FrameBytes(const ElfFile& file, std::string_view bytes, uint64_t address) {
  const char* ident = elf_getident(file.handle(), nullptr);
  return {.bytes = bytes,
          .address = address,
          .big_endian = ident[EI_DATA] == ELFDATA2MSB,
          .is_64_bit = ident[EI_CLASS] == ELFCLASS64};
}

// The section, or without section headers what .eh_frame_hdr points to.
std::optional<FrameSection> FindFrames(const ElfFile& file) {
  if (const Section* section = file.FindSection(".eh_frame")) {
    return FrameBytes(file, file.SectionBytes(*section, kMaxFrameBytes), section->header.sh_addr);
  }
  if (!file.sections().empty() || !file.EhFrameHeaderAddress()) return std::nullopt;
  const uint64_t header = *file.EhFrameHeaderAddress();
  const auto frames = FrameSectionAddress(FrameBytes(file, file.SegmentBytes(header, 64), header));
  if (!frames) return std::nullopt;
  return FrameBytes(file, file.SegmentBytes(*frames, kMaxFrameBytes), *frames);
}

}  // namespace

bool HasSymbolTable(const ElfFile& file) {
  return std::any_of(file.sections().begin(), file.sections().end(),
                     [](const Section& section) { return section.header.sh_type == SHT_SYMTAB; });
}

void AddElfSymbols(const ElfFile& file, SymbolTable& table) {
  for (const Section& section : file.sections()) {
    if (section.header.sh_type == SHT_SYMTAB || section.header.sh_type == SHT_DYNSYM) {
      AddTable(file, section, table);
    }
  }
}

void AddPltSymbols(const ElfFile& file, SymbolTable& table) {
  const Section* relocations = file.FindSection(".rela.plt");
  if (relocations == nullptr) relocations = file.FindSection(".rel.plt");
  if (relocations == nullptr) return;
  const Elf_Type type = relocations->header.sh_type == SHT_RELA ? ELF_T_RELA : ELF_T_REL;
  const uint64_t count = relocations->header.sh_size /
                         std::max<size_t>(1, gelf_fsize(file.handle(), type, 1, EV_CURRENT));
  for (const char* name : {".plt", ".plt.sec"}) {
    const Section* stubs = file.FindSection(name);
    const PltShape shape = PltShapeOf(file, name);
    if (stubs == nullptr || !shape.known || count == 0 || stubs->header.sh_size <= shape.header) {
      continue;
    }
    const uint64_t bytes = stubs->header.sh_size - shape.header;
    const uint64_t size = bytes / count;
    // Stubs of several kinds would not divide evenly.
    if (size * count != bytes || size < 8 || size > 64) continue;
    for (uint64_t i = 0; i < count && i < INT32_MAX; ++i) {
      const char* function = RelocatedName(file, *relocations, static_cast<int>(i));
      if (function == nullptr || *function == '\0') continue;
      const uint64_t start = stubs->header.sh_addr + shape.header + i * size;
      table.Add(start, size, start + size, std::string(function) + "@plt", false);
    }
  }
}

void AddFrameRanges(const ElfFile& file, SymbolTable& table, Diagnostics& diagnostics) {
  if (file.relocatable()) return;  // its addresses wait for the linker
  const auto frames = FindFrames(file);
  if (!frames) return;
  uint64_t bad = 0;
  for (const CodeRange& range : ReadFrameRanges(*frames, bad)) table.AddRange(range);
  diagnostics.Count("frame description that could not be read", bad);
}

std::optional<ElfFile> OpenMiniDebugInfo(const ElfFile& file, Diagnostics& diagnostics) {
  const Section* section = file.FindSection(".gnu_debugdata");
  if (section == nullptr) return std::nullopt;
  auto bytes = DecompressXz(file.SectionBytes(*section, kMaxMiniDebugBytes), kMaxMiniDebugBytes);
  if (bytes.ok()) {
    auto inner = ElfFile::FromBytes(std::move(bytes).value(), file.path() + ":.gnu_debugdata");
    if (inner.ok()) return std::move(inner).value();
  }
  diagnostics.Count("compressed symbol table that could not be read");
  return std::nullopt;
}

}  // namespace culprit::symbol
