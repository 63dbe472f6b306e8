// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ETW log file and, behind a header that is right, as the records
// of its buffers. What comes out must keep account of its time.
#include <cstdint>
#include <string>

#include "import/etl_builder.h"
#include "import/etl_file.h"
#include "import/fuzz_import.h"
#include "import/importers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  std::string input(reinterpret_cast<const char*>(data), size);
  if (!import_::IsEtl(input) && !input.empty()) {
    const bool wide = (input.front() & 1) != 0;
    const bool packed = (input.front() & 2) != 0;
    import_::EtlBuilder builder({.pointer_bytes = wide ? size_t{8} : 4, .packed = packed});
    const size_t half = input.size() / 2;
    builder.Record(0, input.substr(1, half));
    builder.Record(1, input.substr(half));
    input = builder.Bytes();
  }
  return import_::FuzzImport(import_::EtlImporter(),
                             import_::MemorySource("fuzz", std::move(input)));
}
