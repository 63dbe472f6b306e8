// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

namespace culprit {

uint64_t ByteReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = U8();
    if (failed_) return 0;
    const uint64_t bits = byte & 0x7f;
    if (shift == 63 && bits > 1) break;
    value |= bits << shift;
    if (byte < 0x80) return value;
  }
  Fail();
  return 0;
}

int64_t ByteReader::SignedVarint() { return UnZigZag(Varint()); }

std::string_view ByteReader::String() {
  const uint64_t length = Varint();
  if (length > remaining()) {
    Fail();
    return {};
  }
  return Bytes(length);
}

std::string_view ByteReader::Bytes(size_t count) {
  if (count > remaining()) {
    Fail();
    return {};
  }
  std::string_view view = bytes_.substr(position_, count);
  position_ += count;
  return view;
}

void ByteWriter::Varint(uint64_t value) {
  while (value >= 0x80) {
    U8(static_cast<uint8_t>(value | 0x80));
    value >>= 7;
  }
  U8(static_cast<uint8_t>(value));
}

void ByteWriter::SignedVarint(int64_t value) { Varint(ZigZag(value)); }

void ByteWriter::String(std::string_view text) {
  Varint(text.size());
  Bytes(text);
}

}  // namespace culprit
