// SPDX-License-Identifier: Apache-2.0
// Any bytes as text of ftrace. What comes out must keep account of its time.
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
  std::string head;
  (void)source.bytes().ReadAt(0, import_::kSniffBytes, head);
  const import_::Importer importer = import_::FtraceTextImporter();
  (void)importer.sniff(source, head);
  std::string bytes;
  trace::TraceWriter writer([&](std::string_view part) {
    bytes += part;
    return Status();
  });
  Diagnostics diagnostics;
  if (!importer.read(source, {.symbols = false}, writer, diagnostics).ok()) return 0;
  if (!writer.Finish().ok()) return 0;
  auto reader = trace::TraceReader::FromBytes(std::move(bytes), "fuzz");
  CULPRIT_CHECK(reader.ok());
  const trace::Trace trace = std::move(reader).value().ReadAll();
  if (trace.metadata.has_switches) CULPRIT_CHECK(trace::CheckConservation(trace).ok());
  return 0;
}
