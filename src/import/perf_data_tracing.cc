// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_tracing.h"

#include "import/perf_data_layout.h"

namespace culprit::import_ {
namespace {

constexpr std::string_view kMagic = "\x17\x08\x44tracing";

void ReadFormats(FieldReader& in, std::string_view system, PerfTracingData& out, uint64_t offset,
                 Diagnostics& diagnostics) {
  const uint32_t count = in.U32();
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    const std::string_view text = in.Bytes(in.U64());
    if (in.failed()) break;
    auto format = ParseEventFormat(text, system);
    if (format) {
      out.formats.push_back(*std::move(format));
    } else {
      diagnostics.Count("tracepoint format that cannot be read", 1, offset + in.position());
    }
  }
}

}  // namespace

PerfTracingData ParsePerfTracingData(std::string_view bytes, bool big, uint64_t offset,
                                     Diagnostics& diagnostics) {
  PerfTracingData out;
  FieldReader in(bytes, big);
  if (in.Bytes(kMagic.size()) != kMagic) {
    diagnostics.Count("tracing data that does not begin as such", 1, offset);
    return out;
  }
  in.CString();
  in.Skip(1 + 1 + 4);
  for (int i = 0; i < 2; ++i) {
    in.CString();
    in.Skip(in.U64());
  }
  ReadFormats(in, "ftrace", out, offset, diagnostics);
  const uint32_t systems = in.U32();
  for (uint32_t i = 0; i < systems && !in.failed(); ++i) {
    const std::string_view system = in.CString();
    ReadFormats(in, system, out, offset, diagnostics);
  }
  if (in.failed()) {
    diagnostics.Count("tracing data that is cut short", 1, offset + in.position());
    return out;
  }
  out.kallsyms = in.Bytes(in.U32());
  return out;
}

}  // namespace culprit::import_
