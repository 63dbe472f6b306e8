// SPDX-License-Identifier: Apache-2.0
// Any text as an event's format, read over a small record.
#include <cstdint>

#include "import/event_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::import_;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto format = ParseEventFormat(text);
  (void)TaskStates::FromPrint(text);
  if (!format.has_value()) return 0;
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    const RecordView record(text.substr(0, 64), order);
    for (const EventField& field : format->fields) {
      (void)record.Signed(&field);
      (void)record.Text(&field);
    }
  }
  return 0;
}
