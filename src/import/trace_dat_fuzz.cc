// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace.dat.
#include "import/fuzz_import.h"
#include "import/importers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return culprit::import_::FuzzImport(culprit::import_::TraceDatImporter(), data, size);
}
