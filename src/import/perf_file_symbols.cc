// SPDX-License-Identifier: Apache-2.0
#include "import/perf_file_symbols.h"

#include "import/perf_data_layout.h"
#include "import/perfetto_proto.h"
#include "symbol/symbolizer.h"

namespace culprit::import_ {
namespace {

constexpr std::string_view kBadFile = "file of recorded symbols that makes no sense";
constexpr uint64_t kElfFileType = 2;
constexpr uint64_t kDexFileType = 3;

// "perf.data_jit_app_cache:784-1640", "..._jit_zygote_cache:...".
bool IsMadeCode(std::string_view path) {
  const std::string_view name = path.substr(0, path.rfind(':'));
  return name.size() < path.size() && name.ends_with("_cache") &&
         name.find("_jit_") != std::string_view::npos;
}

}  // namespace

PerfFileSymbols::File& PerfFileSymbols::FileOf(std::string_view path, uint64_t type) {
  if (type == static_cast<uint64_t>(Type::kKernel)) return kernel_;
  if (type != static_cast<uint64_t>(Type::kSymbolMap) && !IsMadeCode(path)) {
    File& file = files_[std::string(path)];
    file.bytecode = type == kDexFileType;
    return file;
  }
  has_made_code_ = true;
  return made_code_;
}

void PerfFileSymbols::AddFile(std::string_view bytes, uint64_t offset, Diagnostics& diagnostics) {
  FieldReader sections(bytes, false);
  while (sections.remaining() >= 4) {
    const uint64_t at = offset + sections.position();
    FieldReader in(sections.Bytes(sections.U32()), false);
    const std::string_view path = in.CString();
    const uint64_t type = in.U32();
    const uint64_t min_address = in.U64();
    const uint32_t count = in.U32();
    if (sections.failed() || in.failed() || path.empty()) {
      diagnostics.Count(kBadFile, 1, at);
      return;
    }
    File& file = FileOf(path, type);
    file.min_address = min_address;
    for (uint32_t i = 0; i < count && !in.failed(); ++i) {
      const uint64_t start = in.U64();
      const uint32_t length = in.U32();
      const std::string_view name = in.CString();
      if (!in.failed()) file.table.Add(start, length, UINT64_MAX, name, true);
    }
    if (type == kDexFileType) in.Skip(uint64_t{8} * in.U32());
    // Older versions do not have it.
    if (type == kElfFileType && in.remaining() >= 8) file.min_offset = in.U64();
    if (in.failed()) diagnostics.Count(kBadFile, 1, at);
  }
}

void PerfFileSymbols::AddFile2(std::string_view bytes, uint64_t offset, Diagnostics& diagnostics) {
  FieldReader sections(bytes, false);
  ProtoField field;
  while (sections.remaining() >= 4) {
    const uint64_t at = offset + sections.position();
    const std::string_view message = sections.Bytes(sections.U32());
    std::string_view path;
    uint64_t type = 0;
    ProtoReader head(message);
    while (head.Next(field)) {
      if (field.number == 1) path = field.bytes;
      if (field.number == 2) type = field.value;
    }
    if (sections.failed() || head.failed() || path.empty()) {
      diagnostics.Count(kBadFile, 1, at);
      continue;
    }
    File& file = FileOf(path, type);
    ProtoReader in(message);
    while (in.Next(field)) {
      if (field.number == 3) file.min_address = field.value;
      ProtoField inner;
      ProtoReader nested(field.bytes);
      if (field.number == 6 && nested.Next(inner) && inner.number == 1) {
        file.min_offset = inner.value;
      }
      if (field.number != 4) continue;
      uint64_t start = 0;
      uint64_t length = 0;
      std::string_view name;
      while (nested.Next(inner)) {
        if (inner.number == 1) start = inner.value;
        if (inner.number == 2) length = inner.value;
        if (inner.number == 3) name = inner.bytes;
      }
      file.table.Add(start, length, UINT64_MAX, name, true);
    }
  }
}

void PerfFileSymbols::Build() {
  for (auto& [path, file] : files_) file.table.Build();
  kernel_.table.Build();
  // Of many small files only the addresses count.
  made_code_.min_address = made_code_.min_offset = 0;
  made_code_.table.Build();
}

PerfFileSymbols::Found PerfFileSymbols::FindIn(const File& file, uint64_t address) {
  const uint32_t row = file.table.Find(address);
  if (row == symbol::SymbolTable::kNone) return {};
  return {.name = symbol::Demangle(file.table.Name(row)),
          .file_start = file.table.Start(row) - file.min_address + file.min_offset};
}

PerfFileSymbols::Found PerfFileSymbols::Lookup(std::string_view path, uint64_t address,
                                               uint64_t file_offset, bool is_return) const {
  const uint64_t back = is_return ? 1 : 0;
  if (Found made = LookupMadeCode(address - back); !made.name.empty()) return made;
  const auto it = files_.find(path);
  if (it == files_.end()) return {};
  const File& file = it->second;
  const uint64_t place = file_offset - (file.bytecode ? 0 : back);
  return FindIn(file, place - file.min_offset + file.min_address);
}

PerfFileSymbols::Found PerfFileSymbols::LookupMadeCode(uint64_t address) const {
  Found found = FindIn(made_code_, address);
  found.made_code = !found.name.empty();
  return found;
}

PerfFileSymbols::Found PerfFileSymbols::LookupKernel(uint64_t address) const {
  return FindIn(kernel_, address);
}

}  // namespace culprit::import_
