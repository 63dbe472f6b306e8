// SPDX-License-Identifier: Apache-2.0
// Any bytes as a dump of xperf and, behind a header that is right, as its lines.
// What comes out must keep account of its time.
#include <cstdint>
#include <string>

#include "import/fuzz_import.h"
#include "import/importers.h"

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
  return import_::FuzzImport(import_::XperfCsvImporter(),
                             import_::MemorySource("fuzz", std::move(input)));
}
