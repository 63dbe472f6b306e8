// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pprof profile, of whichever format they look most like.
#include <cstdint>
#include <string>

#include "import/importers.h"
#include "import/stored_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  const import_::Source source =
      import_::MemorySource("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  std::string head;
  (void)source.bytes().ReadAt(0, import_::kSniffBytes, head);
  const import_::Importer importer = import_::PprofImporter();
  (void)importer.sniff(source, head);
  trace::TraceWriter writer([](std::string_view) { return Status(); });
  Diagnostics diagnostics;
  (void)importer.read(source, {.symbols = false}, writer, diagnostics);
  (void)writer.Finish();
  return 0;
}
