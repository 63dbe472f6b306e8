// SPDX-License-Identifier: Apache-2.0
#include "corpus/part_codec.h"

#include <limits>
#include <optional>

namespace culprit::corpus {

size_t ReadCount(ByteReader& reader, size_t bytes_each) {
  const uint64_t count = reader.Varint();
  if (count <= reader.remaining() / bytes_each) return static_cast<size_t>(count);
  (void)reader.Bytes(std::numeric_limits<size_t>::max());
  return 0;
}

void WriteStrings(const std::vector<std::string>& strings, ByteWriter& writer) {
  writer.Varint(strings.size());
  for (const std::string& text : strings) writer.String(text);
}

std::vector<std::string> ReadStrings(ByteReader& reader) {
  std::vector<std::string> strings(ReadCount(reader));
  for (std::string& text : strings) text = reader.String();
  return strings;
}

std::vector<std::string_view> ReadViews(ByteReader& reader) {
  std::vector<std::string_view> views(ReadCount(reader));
  for (std::string_view& view : views) view = reader.String();
  return views;
}

void WriteDiagnostics(const Diagnostics& diagnostics, ByteWriter& writer) {
  writer.Varint(diagnostics.rows().size());
  for (const auto& [what, row] : diagnostics.rows()) {
    writer.String(what);
    writer.Varint(row.count);
    writer.U8(row.first_offset ? 1 : 0);
    if (row.first_offset) writer.Varint(*row.first_offset);
  }
}

Diagnostics ReadDiagnostics(ByteReader& reader) {
  Diagnostics diagnostics;
  const size_t rows = ReadCount(reader, 3);
  for (size_t i = 0; i < rows; ++i) {
    const std::string_view what = reader.String();
    const uint64_t count = reader.Varint();
    std::optional<uint64_t> offset;
    if (reader.U8() != 0) offset = reader.Varint();
    if (!reader.failed()) diagnostics.Count(what, count, offset);
  }
  return diagnostics;
}

}  // namespace culprit::corpus
