// SPDX-License-Identifier: Apache-2.0
#include "symbol/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace culprit::symbol {
namespace {

constexpr size_t kMaxSections = 100'000;
constexpr size_t kMaxSegments = 10'000;

bool StartsWithAny(std::string_view path, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return path.starts_with(prefix); });
}

std::string Hexadecimal(const void* bytes, size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t byte = static_cast<const uint8_t*>(bytes)[i];
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

}  // namespace

ElfFile::Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Result<ElfFile> ElfFile::Open(const std::string& path) {
  if (StartsWithAny(path, {"/proc/", "/sys/", "/dev/"})) {
    return Error{.message = "not a place of binaries", .file = path};
  }
  // O_NONBLOCK: a path out of a trace may name a pipe.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoError("open", path);
  ElfFile file;
  file.descriptor_ = Descriptor(fd);
  file.path_ = path;
  struct stat status = {};
  if (fstat(fd, &status) != 0) return ErrnoError("stat", path);
  if (!S_ISREG(status.st_mode)) return Error{.message = "not a regular file", .file = path};
  elf_version(EV_CURRENT);
  file.handle_.reset(elf_begin(fd, ELF_C_READ, nullptr));
  CULPRIT_TRY(file.Read());
  return file;
}

Result<ElfFile> ElfFile::FromBytes(std::string bytes, const std::string& name) {
  ElfFile file;
  file.path_ = name;
  file.memory_ = std::make_unique<std::string>(std::move(bytes));
  elf_version(EV_CURRENT);
  file.handle_.reset(elf_memory(file.memory_->data(), file.memory_->size()));
  CULPRIT_TRY(file.Read());
  return file;
}

Status ElfFile::Read() {
  GElf_Ehdr header;
  if (handle_ == nullptr || elf_kind(handle_.get()) != ELF_K_ELF ||
      gelf_getehdr(handle_.get(), &header) == nullptr) {
    return Error{.message = "not an ELF file", .file = path_};
  }
  machine_ = header.e_machine;
  relocatable_ = header.e_type == ET_REL;
  ReadSegments();
  ReadSections();
  const void* id = nullptr;
  const ssize_t length = dwelf_elf_gnu_build_id(handle_.get(), &id);
  if (length > 0 && length <= 64) build_id_ = Hexadecimal(id, static_cast<size_t>(length));
  return {};
}

void ElfFile::ReadSegments() {
  size_t count = 0;
  if (elf_getphdrnum(handle_.get(), &count) != 0) return;
  for (size_t i = 0; i < std::min(count, kMaxSegments); ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(handle_.get(), static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type == PT_GNU_EH_FRAME) eh_frame_header_ = segment.p_vaddr;
    if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
    if (segment.p_offset + segment.p_filesz < segment.p_offset) continue;
    if (segment.p_vaddr + segment.p_filesz < segment.p_vaddr) continue;
    segments_.push_back({segment.p_offset, segment.p_vaddr, segment.p_filesz});
  }
}

void ElfFile::ReadSections() {
  size_t names = 0;
  if (elf_getshdrstrndx(handle_.get(), &names) != 0) return;
  Elf_Scn* handle = nullptr;
  while (sections_.size() < kMaxSections &&
         (handle = elf_nextscn(handle_.get(), handle)) != nullptr) {
    Section section;
    section.handle = handle;
    if (gelf_getshdr(handle, &section.header) == nullptr) section.header = {};
    const char* name = elf_strptr(handle_.get(), names, section.header.sh_name);
    if (name != nullptr) section.name = name;
    sections_.push_back(std::move(section));
  }
}

const Section* ElfFile::FindSection(std::string_view name) const {
  const auto it = std::find_if(sections_.begin(), sections_.end(),
                               [&](const Section& section) { return section.name == name; });
  return it == sections_.end() ? nullptr : &*it;
}

std::string_view ElfFile::SectionBytes(const Section& section, size_t max_bytes) const {
  if (section.header.sh_type == SHT_NOBITS || section.header.sh_size > max_bytes) return {};
  const Elf_Data* data = elf_rawdata(section.handle, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

std::string_view ElfFile::SegmentBytes(uint64_t address, size_t max_bytes) const {
  for (const Segment& segment : segments_) {
    if (address < segment.address || address - segment.address >= segment.size) continue;
    const uint64_t skipped = address - segment.address;
    const uint64_t count = std::min<uint64_t>(segment.size - skipped, max_bytes);
    const Elf_Data* data = elf_getdata_rawchunk(
        handle_.get(), static_cast<int64_t>(segment.offset + skipped), count, ELF_T_BYTE);
    if (data == nullptr || data->d_buf == nullptr) return {};
    return {static_cast<const char*>(data->d_buf), data->d_size};
  }
  return {};
}

std::optional<uint64_t> ElfFile::AddressOfOffset(uint64_t file_offset) const {
  if (relocatable_) return file_offset;
  for (const Segment& segment : segments_) {
    if (file_offset >= segment.offset && file_offset - segment.offset < segment.size) {
      return file_offset - segment.offset + segment.address;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfFile::OffsetOfAddress(uint64_t address) const {
  if (relocatable_) return address;
  for (const Segment& segment : segments_) {
    if (address >= segment.address && address - segment.address < segment.size) {
      return address - segment.address + segment.offset;
    }
  }
  return std::nullopt;
}

bool SameBuildId(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return !a.empty() && b.starts_with(a) && b.find_first_not_of('0', a.size()) == b.npos;
}

}  // namespace culprit::symbol
