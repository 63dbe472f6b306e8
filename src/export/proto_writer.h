// SPDX-License-Identifier: Apache-2.0
//
// ProtoWriter: one protobuf message in wire format, field after field, as a
// growing string. Knows no schema: the caller gives field numbers. Nested
// messages are written apart and put in whole, so lengths are always right.
// Text must be valid UTF-8 where the schema says string (Utf8Text).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::export_ {

class ProtoWriter {
 public:
  ProtoWriter& Uint(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
    return *this;
  }
  // int32, int64, enum: negative numbers take ten bytes.
  ProtoWriter& Int(uint32_t field, int64_t value) {
    return Uint(field, static_cast<uint64_t>(value));
  }
  ProtoWriter& Bytes(uint32_t field, std::string_view bytes) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(bytes.size());
    out_ += bytes;
    return *this;
  }
  ProtoWriter& Message(uint32_t field, const ProtoWriter& message) {
    return Bytes(field, message.out_);
  }
  // Numbers only, without a tag each.
  ProtoWriter& Packed(uint32_t field, const std::vector<uint64_t>& values) {
    ProtoWriter list;
    for (uint64_t value : values) list.Varint(value);
    return Bytes(field, list.out_);
  }

  const std::string& bytes() const { return out_; }
  bool empty() const { return out_.empty(); }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }

  std::string out_;
};

}  // namespace culprit::export_
