// SPDX-License-Identifier: Apache-2.0
// Any bytes as a CTF trace: two bytes for the metadata's length, the metadata,
// the rest a stream file.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "import/importers.h"
#include "import/stored_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  if (size < 2) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t length = std::min<size_t>(data[0] | data[1] << 8, rest.size());
  const import_::Source source(
      "fuzz", {{"metadata", std::make_shared<import_::MemoryBytes>(rest.substr(0, length))},
               {"stream_0", std::make_shared<import_::MemoryBytes>(rest.substr(length))}});
  const import_::Importer importer = import_::CtfImporter();
  (void)importer.sniff(source, {});
  trace::TraceWriter writer([](std::string_view) { return Status(); });
  Diagnostics diagnostics;
  (void)importer.read(source, {.symbols = false}, writer, diagnostics);
  (void)writer.Finish();
  return 0;
}
