// SPDX-License-Identifier: Apache-2.0
// Any bytes as a CTF trace: two bytes for the metadata's length, the metadata,
// the rest a stream file.
#include <algorithm>
#include <memory>

#include "import/fuzz_import.h"
#include "import/importers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::import_;
  if (size < 2) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t length = std::min<size_t>(data[0] | data[1] << 8, rest.size());
  const Source source("fuzz", {{"metadata", std::make_shared<MemoryBytes>(rest.substr(0, length))},
                               {"stream_0", std::make_shared<MemoryBytes>(rest.substr(length))}});
  return FuzzImport(CtfImporter(), source);
}
