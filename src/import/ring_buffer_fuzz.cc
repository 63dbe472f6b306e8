// SPDX-License-Identifier: Apache-2.0
// Any bytes as the pages of one CPU, beside formats that are right. Nothing may
// crash, loop or eat memory.
#include <cstdint>
#include <string>

#include "import/importers.h"
#include "import/ring_buffer_sample.h"
#include "import/stored_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  using import_::RingSample;
  const auto file = [](std::string path, std::string bytes) -> import_::SourceFile {
    return {std::move(path), std::make_shared<import_::MemoryBytes>(std::move(bytes))};
  };
  const import_::Source source(
      "fuzz", {file("formats/header_page", RingSample().HeaderPage()),
               file("formats/sched/sched_switch/format", RingSample::SwitchFormat()),
               file("formats/sched/sched_waking/format", RingSample::WakingFormat()),
               file("formats/ftrace/kernel_stack/format", RingSample::StackFormat()),
               file("formats/ftrace/print/format", RingSample::PrintFormat()),
               file("traces/cpu0", std::string(reinterpret_cast<const char*>(data), size))});
  trace::TraceWriter writer([](std::string_view) -> Status { return {}; });
  Diagnostics diagnostics;
  if (import_::RingBufferImporter().read(source, {}, writer, diagnostics).ok()) {
    (void)writer.Finish();
  }
  return 0;
}
