// SPDX-License-Identifier: Apache-2.0
#include "import/perfetto_proto.h"

#include "import/event_format.h"

namespace culprit::import_ {

bool ProtoReader::TakeVarint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < 10 && i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool ProtoReader::Next(ProtoField& field) {
  if (left_.empty()) return false;
  uint64_t tag = 0;
  uint64_t length = 0;
  bool good = TakeVarint(left_, tag) && tag >> 3 != 0 && tag >> 3 < (uint64_t{1} << 29);
  field.number = static_cast<uint32_t>(tag >> 3);
  field.wire = static_cast<ProtoField::Wire>(tag & 7);
  field.value = 0;
  field.bytes = {};
  if (good) {
    switch (field.wire) {
      case ProtoField::Wire::kVarint:
        good = TakeVarint(left_, field.value);
        break;
      case ProtoField::Wire::kFixed64:
        length = 8;
        break;
      case ProtoField::Wire::kFixed32:
        length = 4;
        break;
      case ProtoField::Wire::kBytes:
        good = TakeVarint(left_, length);
        break;
      default:
        good = false;
    }
  }
  if (!good || length > left_.size()) {
    failed_ = true;
    left_ = {};
    return false;
  }
  const std::string_view bytes = left_.substr(0, length);
  left_.remove_prefix(length);
  if (field.wire == ProtoField::Wire::kBytes) {
    field.bytes = bytes;
  } else if (field.wire != ProtoField::Wire::kVarint) {
    field.value = LoadUnsigned(bytes, 0, length, ByteOrder::kLittle);
  }
  return true;
}

void AppendNumbers(const ProtoField& field, std::vector<uint64_t>& values) {
  if (field.wire != ProtoField::Wire::kBytes) {
    values.push_back(field.value);
    return;
  }
  std::string_view packed = field.bytes;
  uint64_t value = 0;
  while (!packed.empty() && ProtoReader::TakeVarint(packed, value)) values.push_back(value);
}

}  // namespace culprit::import_
