// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_metadata.h"

#include <algorithm>

#include "import/ctf_json.h"
#include "import/ctf_tsdl.h"

namespace culprit::import_ {
namespace {

// magic 4, uuid 16, checksum 4, content size 4, packet size 4, then compression,
// encryption and checksum schemes and the version, a byte each.
constexpr size_t kPacketHeadBytes = 37;
constexpr size_t kContentSizeAt = 24;
constexpr size_t kPacketSizeAt = 28;
constexpr size_t kSchemesAt = 32;

uint32_t Load32(std::string_view bytes, size_t at, bool big_endian) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[at + i]);
    value |= static_cast<uint32_t>(byte) << (8 * (big_endian ? 3 - i : i));
  }
  return value;
}

// 0: not in packets; else 'l' or 'b' for the byte order.
char PacketOrder(std::string_view bytes) {
  if (bytes.size() < 4) return 0;
  if (Load32(bytes, 0, false) == kCtfMetadataMagic) return 'l';
  if (Load32(bytes, 0, true) == kCtfMetadataMagic) return 'b';
  return 0;
}

size_t TextStart(std::string_view text) { return text.find_first_not_of(" \t\r\n\f\v"); }

void ResolveByteOrder(CtfSchema& schema) {
  for (CtfField& field : schema.fields) {
    if (field.order == CtfOrder::kNative) {
      field.order = schema.big_endian ? CtfOrder::kBig : CtfOrder::kLittle;
    }
  }
}

}  // namespace

bool LooksLikeCtfMetadata(std::string_view head) {
  if (PacketOrder(head) != 0) return true;
  const size_t start = TextStart(head);
  if (start == std::string_view::npos) return false;
  head.remove_prefix(start);
  if (head.starts_with('\x1e')) return head.find("\"preamble\"") != std::string_view::npos;
  if (head.starts_with("/* CTF ")) return true;
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  return (has("typealias") && has("integer") && has(":=")) || (has("trace {") && has("byte_order"));
}

std::string UnpackCtfMetadata(std::string_view bytes, Diagnostics& diagnostics) {
  const char order = PacketOrder(bytes);
  if (order == 0) return std::string(bytes);
  const bool big = order == 'b';
  std::string text;
  size_t at = 0;
  while (bytes.size() - at >= kPacketHeadBytes) {
    const size_t content = Load32(bytes, at + kContentSizeAt, big) / 8;
    const size_t packet = Load32(bytes, at + kPacketSizeAt, big) / 8;
    const bool plain = bytes[at + kSchemesAt] == 0 && bytes[at + kSchemesAt + 1] == 0;
    if (Load32(bytes, at, big) != kCtfMetadataMagic || content < kPacketHeadBytes ||
        packet < content) {
      diagnostics.Count("metadata packet that is damaged", 1, at);
      return text;
    }
    if (!plain) diagnostics.Count("metadata packet that is compressed or encrypted", 1, at);
    const size_t there = std::min(content, bytes.size() - at);
    if (there < content) diagnostics.Count("metadata packet cut short", 1, at);
    if (plain) text.append(bytes.substr(at + kPacketHeadBytes, there - kPacketHeadBytes));
    if (packet >= bytes.size() - at) return text;
    at += packet;
  }
  if (at < bytes.size()) diagnostics.Count("metadata packet cut short", 1, at);
  return text;
}

Result<CtfSchema> ReadCtfMetadata(std::string_view bytes, const std::string& name,
                                  Diagnostics& diagnostics) {
  const std::string text = UnpackCtfMetadata(bytes, diagnostics);
  const size_t start = TextStart(text);
  const bool is_json = start != std::string::npos && text[start] == '\x1e';
  CtfSchema schema = is_json ? ParseCtfJson(text, diagnostics) : ParseCtfTsdl(text, diagnostics);
  if (schema.streams.empty() && schema.events.empty()) {
    return Error{.message = "no stream and no event is described here",
                 .file = name,
                 .hint = "is this the metadata file of a Common Trace Format trace?"};
  }
  if (schema.streams.empty()) schema.streams.emplace_back();
  ResolveByteOrder(schema);
  return schema;
}

}  // namespace culprit::import_
