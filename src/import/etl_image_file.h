// SPDX-License-Identifier: Apache-2.0
//
// EtlImageFile: a Windows image (PE) at hand, for what it tells without debug
// symbols: its debug id, where its functions begin and end (the exception table
// of 64-bit x86 images), and the names of those that are exported. A name counts
// only for the function that begins where the export points: the nearest export
// before an address is mostly not what the address belongs to.
//
// FindImageFile looks below a folder that holds the recorded machine's files,
// whatever the case of their names. Input is untrusted; files above
// kMaxImageBytes are not read. Memory: 8 bytes a function, and the names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace culprit::import_ {

inline constexpr uint64_t kMaxImageBytes = uint64_t{256} << 20;

class EtlImageFile {
 public:
  // Nothing: not such an image.
  static std::optional<EtlImageFile> Parse(std::string_view bytes);

  struct Function {
    uint32_t start = 0;     // offset in the loaded image
    std::string_view name;  // empty: not exported
  };
  std::optional<Function> Find(uint64_t offset) const;

  // As EtlSurvey writes it; empty: it has none.
  const std::string& debug_id() const { return debug_id_; }
  uint64_t image_bytes() const { return image_bytes_; }

 private:
  struct Range {
    uint32_t start = 0;
    uint32_t end = 0;
  };

  std::string debug_id_;
  uint64_t image_bytes_ = 0;
  std::vector<Range> functions_;  // by start
  std::unordered_map<uint32_t, std::string> names_;
};

// The file that a path of Windows means below `root`; empty: there is none.
std::string FindImageFile(const std::string& root, std::string_view windows_path);

}  // namespace culprit::import_
