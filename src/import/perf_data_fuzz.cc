// SPDX-License-Identifier: Apache-2.0
// Any bytes as a perf.data.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "import/importers.h"
#include "import/stored_bytes.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  const import_::Source source =
      import_::MemorySource("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  std::string bytes;
  trace::TraceWriter writer([&](std::string_view part) {
    bytes += part;
    return Status();
  });
  Diagnostics diagnostics;
  const Status status =
      import_::PerfDataImporter().read(source, {.symbols = false}, writer, diagnostics);
  if (!status.ok() || !writer.Finish().ok()) return 0;
  auto reader = trace::TraceReader::FromBytes(std::move(bytes), "fuzz");
  CULPRIT_CHECK(reader.ok());
  const trace::Trace trace = std::move(reader).value().ReadAll();
  // The check's sum over CPUs has room for some days, not for made-up centuries.
  if (trace.metadata.end_ns - trace.metadata.begin_ns > int64_t{1} << 46) return 0;
  CULPRIT_CHECK(CheckConservation(trace).ok());
  return 0;
}
