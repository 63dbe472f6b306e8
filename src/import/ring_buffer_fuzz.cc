// SPDX-License-Identifier: Apache-2.0
// Any bytes as the pages of one CPU, beside formats that are right.
#include <memory>

#include "import/fuzz_import.h"
#include "import/importers.h"
#include "import/ring_buffer_sample.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::import_;
  const auto file = [](std::string path, std::string bytes) -> SourceFile {
    return {std::move(path), std::make_shared<MemoryBytes>(std::move(bytes))};
  };
  const Source source(
      "fuzz", {file("formats/header_page", RingSample().HeaderPage()),
               file("formats/sched/sched_switch/format", RingSample::SwitchFormat()),
               file("formats/sched/sched_waking/format", RingSample::WakingFormat()),
               file("formats/ftrace/kernel_stack/format", RingSample::StackFormat()),
               file("formats/ftrace/print/format", RingSample::PrintFormat()),
               file("traces/cpu0", std::string(reinterpret_cast<const char*>(data), size))});
  return FuzzImport(RingBufferImporter(), source);
}
