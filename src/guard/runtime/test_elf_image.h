// SPDX-License-Identifier: Apache-2.0
//
// For tests only: an ELF file, mapped to be read, as the segments it would have
// in memory at bias 0. Of either architecture, so binaries of the other one can
// be looked at.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "guard/runtime/function_starts.h"

namespace culprit::guard::runtime {

class TestElfImage {
 public:
  explicit TestElfImage(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status = {};
    void* file = MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size > static_cast<off_t>(sizeof(Elf64_Ehdr))) {
      file = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (file == MAP_FAILED) return;
    bytes_ = {static_cast<const uint8_t*>(file), static_cast<size_t>(status.st_size)};
    Read();
  }
  TestElfImage(const TestElfImage&) = delete;
  TestElfImage& operator=(const TestElfImage&) = delete;
  ~TestElfImage() {
    if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  }

  bool good() const { return !segments_.empty() && eh_frame_hdr_ != 0; }
  bool is_x86() const { return machine_ == EM_X86_64; }
  bool is_arm64() const { return machine_ == EM_AARCH64; }
  std::span<const ImageSegment> segments() const { return segments_; }
  uint64_t eh_frame_hdr() const { return eh_frame_hdr_; }

  std::span<const uint8_t> Code(uint64_t address, uint64_t size) const {
    for (const ImageSegment& segment : segments_) {
      if (address < segment.address || address - segment.address >= segment.bytes.size()) continue;
      const auto rest = segment.bytes.subspan(address - segment.address);
      return rest.first(std::min<uint64_t>(size, rest.size()));
    }
    return {};
  }

 private:
  void Read() {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes_.data(), sizeof(header));
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
    machine_ = header.e_machine;
    for (uint32_t i = 0; i < header.e_phnum; ++i) {
      const uint64_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
      if (at + sizeof(Elf64_Phdr) > bytes_.size()) return;
      Elf64_Phdr part;
      std::memcpy(&part, bytes_.data() + at, sizeof(part));
      if (part.p_offset > bytes_.size() || part.p_filesz > bytes_.size() - part.p_offset) continue;
      if (part.p_type == PT_LOAD) {
        segments_.push_back({part.p_vaddr, bytes_.subspan(part.p_offset, part.p_filesz),
                             (part.p_flags & PF_X) != 0});
      }
      if (part.p_type == PT_GNU_EH_FRAME) eh_frame_hdr_ = part.p_vaddr;
    }
  }

  std::span<const uint8_t> bytes_;
  std::vector<ImageSegment> segments_;
  uint64_t eh_frame_hdr_ = 0;
  uint16_t machine_ = 0;
};

// Binaries to be looked at: servers of this system, its C library, and the C and
// C++ libraries of the x86-64 cross compiler; more in CULPRIT_TEST_BINARIES,
// separated by colons.
inline std::vector<std::string> TestBinaries() {
  std::vector<std::string> paths = {
      "/usr/bin/redis-server",
      "/usr/sbin/nginx",
      "/usr/sbin/mariadbd",
      "/usr/bin/memcached",
      "/usr/sbin/apache2",
      "/lib/aarch64-linux-gnu/libc.so.6",
      "/lib/x86_64-linux-gnu/libc.so.6",
      "/usr/x86_64-linux-gnu/lib/libc.so.6",
      "/usr/x86_64-linux-gnu/lib/libm.so.6",
      "/usr/x86_64-linux-gnu/lib/libstdc++.so.6",
  };
  const char* more = getenv("CULPRIT_TEST_BINARIES");
  for (std::string rest = more != nullptr ? more : ""; !rest.empty();) {
    const size_t colon = rest.find(':');
    paths.push_back(rest.substr(0, colon));
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return paths;
}

}  // namespace culprit::guard::runtime
