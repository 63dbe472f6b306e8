// SPDX-License-Identifier: Apache-2.0
//
// ProtoReader: the fields of one protobuf message, one after the other. It
// knows the wire format and nothing of any schema: the caller switches on the
// field's number and takes its value as the schema says. Bytes that are no
// message end it and set failed(). Views point into the message; nothing is
// allocated.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace culprit::import_ {

struct ProtoField {
  enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;      // of a varint or fixed field
  std::string_view bytes;  // of a string, bytes or message field

  // Negative numbers are ten-byte varints; the cast restores them.
  int64_t Signed() const { return static_cast<int64_t>(value); }
  int64_t Signed32() const { return static_cast<int32_t>(static_cast<uint32_t>(value)); }
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : left_(message) {}

  // False at the end or at the first byte that fits no field.
  bool Next(ProtoField& field);
  bool failed() const { return failed_; }

  // A varint at the front of `bytes`, which is moved past it; false if cut.
  static bool TakeVarint(std::string_view& bytes, uint64_t& value);

 private:
  std::string_view left_;
  bool failed_ = false;
};

// Appends the values of a repeated number, packed or not.
void AppendNumbers(const ProtoField& field, std::vector<uint64_t>& values);

}  // namespace culprit::import_
