// SPDX-License-Identifier: Apache-2.0
//
// ProcessImage: which files a process has mapped as code and where: what turns
// an address of it into a place in a file, and by the file's symbols into a name.
// A picture of one moment; Read() again when libraries came or went. Names come
// from the files as they are on disk: one that was replaced since the process
// started gives no names instead of wrong ones (its map says "(deleted)").
// Finding is a binary search. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbol/symbolizer.h"

namespace culprit::guard {

struct MappedCode {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;  // of `begin`
  std::string path;          // empty: no file
};

class ProcessImage {
 public:
  ProcessImage() = default;
  static Result<ProcessImage> Read(int64_t pid);
  // The text of /proc/PID/maps.
  static ProcessImage Parse(std::string_view maps);

  // Null where no code is.
  const MappedCode* Find(uint64_t address) const;
  const std::vector<MappedCode>& code() const { return code_; }
  // In a file: the injected runtime's, or another.
  enum class Owner { kNoFile, kRuntime, kOther };
  Owner OwnerOf(uint64_t address) const;

 private:
  std::vector<MappedCode> code_;  // by address
};

struct NamedFrame {
  uint64_t address = 0;
  std::string module;    // "redis-server"; empty: not in a file
  std::string function;  // empty: no name, `offset` says where
  std::string file;      // source file, where known
  uint32_t line = 0;
  uint64_t offset = 0;  // in the module's file; of the function's start where known
  bool inlined = false;

  // "redis-server!call", "redis-server!+0x3f20", "[0x7f12]".
  std::string ToString() const;
};

// Innermost first in, innermost first out; `first_is_place`: the first address
// is where the thread stands, not where a call returns to. Frames of the
// injected runtime are left out.
std::vector<NamedFrame> NameFrames(const std::vector<uint64_t>& addresses, bool first_is_place,
                                   const ProcessImage& image, symbol::Symbolizer& symbolizer);

}  // namespace culprit::guard
