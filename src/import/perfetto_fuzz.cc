// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Perfetto trace. Nothing may crash, loop or eat memory.
#include <cstdint>
#include <string>

#include "import/importers.h"
#include "import/stored_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  trace::TraceWriter writer([](std::string_view) -> Status { return {}; });
  Diagnostics diagnostics;
  const import_::ImportOptions options{.symbols = false};
  const import_::Source source = import_::MemorySource("fuzz", std::move(bytes));
  if (import_::PerfettoImporter().read(source, options, writer, diagnostics).ok()) {
    (void)writer.Finish();
  }
  return 0;
}
