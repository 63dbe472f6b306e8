// SPDX-License-Identifier: Apache-2.0
//
// The body of every importer's fuzz target: sniff, read, finish, read the result
// back. Whatever the input, nothing may crash, loop or eat memory; what comes out
// must be a trace that can be read and keeps account of its time. For fuzz
// targets only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "import/importer.h"
#include "import/stored_bytes.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::import_ {

inline int FuzzImport(const Importer& importer, const Source& source) {
  std::string head;
  (void)source.bytes().ReadAt(0, kSniffBytes, head);
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
  // The check's sum over CPUs has room for some days, not for made-up centuries.
  if (trace.metadata.end_ns - trace.metadata.begin_ns > int64_t{1} << 46) return 0;
  CULPRIT_CHECK(trace::CheckConservation(trace).ok());
  return 0;
}

inline int FuzzImport(const Importer& importer, const uint8_t* data, size_t size) {
  return FuzzImport(importer,
                    MemorySource("fuzz", std::string(reinterpret_cast<const char*>(data), size)));
}

}  // namespace culprit::import_
