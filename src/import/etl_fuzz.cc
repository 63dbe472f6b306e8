// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ETW log file and, behind a header that is right, as the records
// of its buffers. What comes out must keep account of its time.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "import/etl_builder.h"
#include "import/etl_file.h"
#include "import/importers.h"
#include "import/stored_bytes.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

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
  const import_::Source source = import_::MemorySource("fuzz", std::move(input));
  std::string bytes;
  trace::TraceWriter writer([&](std::string_view part) {
    bytes += part;
    return Status();
  });
  Diagnostics diagnostics;
  const Status status = import_::EtlImporter().read(source, {}, writer, diagnostics);
  if (!status.ok() || !writer.Finish().ok()) return 0;
  auto reader = trace::TraceReader::FromBytes(std::move(bytes), "fuzz");
  CULPRIT_CHECK(reader.ok());
  const trace::Trace trace = std::move(reader).value().ReadAll();
  // The check's sum over CPUs has room for some days, not for made-up centuries.
  if (trace.metadata.end_ns - trace.metadata.begin_ns > int64_t{1} << 46) return 0;
  CULPRIT_CHECK(CheckConservation(trace).ok());
  return 0;
}
