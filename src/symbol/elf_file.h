// SPDX-License-Identifier: Apache-2.0
//
// ElfFile: one ELF object, opened for reading: a file, or bytes in memory (a
// decompressed module, the vdso). Both classes and both byte orders, by libelf.
// Keeps what addresses need: loadable segments, machine, build-id. The file is
// read by pread, never mapped, so that a file cut short while in use gives
// errors and no signal. Only regular files outside /proc, /sys and /dev are
// opened: paths come from traces. Move-only; one thread at a time.
#pragma once

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::symbol {

struct Section {
  Elf_Scn* handle = nullptr;
  GElf_Shdr header = {};
  std::string name;
};

class ElfFile {
 public:
  static Result<ElfFile> Open(const std::string& path);
  static Result<ElfFile> FromBytes(std::string bytes, const std::string& name);

  const std::string& path() const { return path_; }
  // Hexadecimal; empty if it has none.
  const std::string& build_id() const { return build_id_; }
  uint16_t machine() const { return machine_; }
  // A kernel module or object file: its offsets count from the start of .text.
  bool relocatable() const { return relocatable_; }
  Elf* handle() const { return handle_.get(); }

  const std::vector<Section>& sections() const { return sections_; }
  const Section* FindSection(std::string_view name) const;
  // The section's bytes as they are in the file; empty if it has none there or
  // is larger than `max_bytes`.
  std::string_view SectionBytes(const Section& section, size_t max_bytes = SIZE_MAX) const;
  // Bytes at an address, up to the end of the segment that holds it.
  std::string_view SegmentBytes(uint64_t address, size_t max_bytes) const;
  std::optional<uint64_t> EhFrameHeaderAddress() const { return eh_frame_header_; }

  std::optional<uint64_t> AddressOfOffset(uint64_t file_offset) const;
  std::optional<uint64_t> OffsetOfAddress(uint64_t address) const;

 private:
  struct Segment {
    uint64_t offset;
    uint64_t address;
    uint64_t size;
  };
  struct CloseElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };
  class Descriptor {
   public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~Descriptor();
    int get() const { return fd_; }

   private:
    int fd_;
  };

  ElfFile() = default;
  Status Read();
  void ReadSegments();
  void ReadSections();

  std::string path_;
  Descriptor descriptor_;
  std::unique_ptr<std::string> memory_;
  std::unique_ptr<Elf, CloseElf> handle_;  // ends before what it reads from
  std::string build_id_;
  uint16_t machine_ = EM_NONE;
  bool relocatable_ = false;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
  std::optional<uint64_t> eh_frame_header_;
};

// Are two hexadecimal build-ids the same? perf pads short ones with zeros.
bool SameBuildId(std::string_view a, std::string_view b);

}  // namespace culprit::symbol
