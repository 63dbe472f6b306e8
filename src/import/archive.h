// SPDX-License-Identifier: Apache-2.0
//
// Archives and compressed files, unpacked with libarchive: .gz .zst .xz .bz2
// .lz4 single files, .zip, .7z and .tar in any compression. What a file is
// shows in its first bytes, never in its name. A member goes into memory while
// small, else into an unlinked temporary file; both count against a budget that
// is shared by everything one input unpacks, so that a bomb ends in an Error
// and not in a full machine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/source.h"

namespace culprit::import_ {

// What is left of OpenLimits. Shared by nested archives.
struct UnpackBudget {
  uint64_t bytes = 0;
  size_t members = 0;
  uint64_t memory_bytes = uint64_t{256} << 20;  // members beyond this go to temporary files
};

enum class Packing { kPlain, kCompressed, kArchive };

// How many first bytes PackingOf() needs to see.
inline constexpr size_t kPackingBytes = 512;
Packing PackingOf(std::string_view head);

struct Unpacked {
  // Paths as in the archive; "" for the content of a compressed file.
  std::vector<SourceFile> files;
  // Why it ended early, if it did; `files` is what came before, and the last
  // one may be cut short.
  std::optional<Error> error;
};

Unpacked Unpack(const Bytes& bytes, const std::string& name, UnpackBudget& budget);

}  // namespace culprit::import_
