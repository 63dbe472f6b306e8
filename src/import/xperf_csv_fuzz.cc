// SPDX-License-Identifier: Apache-2.0
// Any bytes as a dump of xperf and, behind a header that is right, as its lines.
// What comes out must keep account of its time.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "import/importers.h"
#include "import/stored_bytes.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace {

constexpr char kHeader[] =
    "BeginHeader\n"
    "CSwitch, TimeStamp, New Process Name ( PID), New TID, Old TID, OldState, CPU\n"
    "ReadyThread, TimeStamp, Process Name ( PID), ThreadID, Rdy TID, InDPC\n"
    "SampledProfile, TimeStamp, Process Name ( PID), ThreadID, PrgrmCtr, CPU\n"
    "Stack, TimeStamp, ThreadID, No., Address, Image!Function\n"
    "T-Start, TimeStamp, Process Name ( PID), ThreadID\n"
    "T-End, TimeStamp, Process Name ( PID), ThreadID\n"
    "DiskReadInit, TimeStamp, Process Name ( PID), ThreadID, IrpPtr\n"
    "DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, IOSize, ElapsedTime, DiskNum\n"
    "EndHeader\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  std::string input(reinterpret_cast<const char*>(data), size);
  if (!input.starts_with("BeginHeader")) input.insert(0, kHeader);
  const import_::Source source = import_::MemorySource("fuzz", std::move(input));
  std::string bytes;
  trace::TraceWriter writer([&](std::string_view part) {
    bytes += part;
    return Status();
  });
  Diagnostics diagnostics;
  const Status status = import_::XperfCsvImporter().read(source, {}, writer, diagnostics);
  if (!status.ok() || !writer.Finish().ok()) return 0;
  auto reader = trace::TraceReader::FromBytes(std::move(bytes), "fuzz");
  CULPRIT_CHECK(reader.ok());
  const trace::Trace trace = std::move(reader).value().ReadAll();
  // The check's sum over CPUs has room for some days, not for made-up centuries.
  if (trace.metadata.end_ns - trace.metadata.begin_ns > int64_t{1} << 46) return 0;
  CULPRIT_CHECK(CheckConservation(trace).ok());
  return 0;
}
