// SPDX-License-Identifier: Apache-2.0
// Any bytes as .eh_frame: every function's rows lie in it, in order; table and image
// agree with them.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "record/unwind_image.h"
#include "record/unwind_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using culprit::record::CfiFunction;
  using culprit::record::UnwindMachine;
  using culprit::record::UnwindTable;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const UnwindMachine machine : {UnwindMachine::kArm64, UnwindMachine::kX86_64}) {
    std::vector<UnwindTable::Span> spans;
    culprit::record::ReadCfi(
        {.bytes = bytes, .address = 0x1000, .machine = machine}, [&](const CfiFunction& function) {
          CULPRIT_CHECK(function.start < function.end);
          CULPRIT_CHECK(function.rows.front().address == function.start);
          for (size_t i = 1; i < function.rows.size(); ++i) {
            CULPRIT_CHECK(function.rows[i - 1].address < function.rows[i].address);
          }
          CULPRIT_CHECK(function.rows.back().address < function.end);
          // Code of gigabytes makes an index of megabytes, which only takes time.
          if (function.end - 0x1000 < (1 << 22) && spans.size() < 1000) {
            spans.push_back({function.start, function.end, function.rows});
          }
        });
    const UnwindTable table = UnwindTable::FromSpans(spans);
    culprit::record::UnwindImage image(4);
    const auto pieces = image.Add(table);
    if (!pieces) continue;
    for (const auto& piece : *pieces) {
      for (const auto& row : table.rows()) {
        const uint64_t address = table.origin() + row.offset;
        if (address < piece.start || address >= piece.end) continue;
        CULPRIT_CHECK(image.Find(piece, address) == table.At(address));
      }
    }
  }
  return 0;
}
