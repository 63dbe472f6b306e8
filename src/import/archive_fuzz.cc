// SPDX-License-Identifier: Apache-2.0
// Any bytes as an archive or a compressed file. The budget bounds what comes out.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "import/archive.h"
#include "import/stored_bytes.h"
#include "import/trace_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::import_;
  const MemoryBytes bytes(std::string(reinterpret_cast<const char*>(data), size));
  constexpr uint64_t kBytes = 1 << 20;
  constexpr size_t kMembers = 100;
  UnpackBudget budget{.bytes = kBytes, .members = kMembers};
  const Unpacked unpacked = Unpack(bytes, "fuzz", budget);
  uint64_t total = 0;
  std::vector<std::string> paths;
  for (const SourceFile& file : unpacked.files) {
    total += file.bytes->size();
    paths.push_back(file.path);
  }
  CULPRIT_CHECK(total <= kBytes && unpacked.files.size() <= kMembers);
  (void)GroupFiles(std::move(paths));
  return 0;
}
