// SPDX-License-Identifier: Apache-2.0
#include "import/jfr_reader.h"

#include <algorithm>

namespace culprit::import_ {
namespace {

enum JfrEncoding : uint8_t {
  kJfrNull = 0,
  kJfrEmpty = 1,
  kJfrPoolEntry = 2,
  kJfrUtf8 = 3,
  kJfrCharacters = 4,  // of UTF-16, an integer each
  kJfrLatin1 = 5,
};

// Halves of pairs come out one by one; names hardly have any.
void AppendCharacter(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xc0 | c >> 6));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out.push_back(static_cast<char>(0xe0 | (c >> 12 & 0xf)));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

}  // namespace

uint64_t JfrReader::Leb128() {
  uint64_t value = 0;
  for (int shift = 0; shift <= 56; shift += 7) {
    if (remaining() == 0) {
      Fail();
      return 0;
    }
    const auto byte = static_cast<uint8_t>(bytes_[position_++]);
    if (shift == 56) return value | static_cast<uint64_t>(byte) << shift;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return value;
}

uint64_t JfrReader::Big(size_t size) {
  if (remaining() < size) {
    Fail();
    return 0;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes_[position_++]);
  }
  return value;
}

void JfrReader::Skip(uint64_t count) {
  if (count > remaining()) return Fail();
  position_ += static_cast<size_t>(count);
}

size_t JfrReader::Count() {
  const int64_t count = Int();
  if (count >= 0 && static_cast<uint64_t>(count) <= remaining()) return static_cast<size_t>(count);
  Fail();
  return 0;
}

JfrString JfrReader::String() {
  JfrString string;
  const uint8_t encoding = Byte();
  if (encoding == kJfrNull || encoding == kJfrEmpty || failed_) return string;
  if (encoding == kJfrPoolEntry) {
    string.pool_entry = Long();
    return string;
  }
  if (encoding > kJfrLatin1) {
    Fail();
    return string;
  }
  const size_t count = Count();
  if (encoding == kJfrUtf8) {
    string.text = bytes_.substr(position_, count);
    Skip(count);
    return string;
  }
  for (size_t i = 0; i < count && !failed_; ++i) {
    AppendCharacter(string.text, encoding == kJfrLatin1 ? Byte() : static_cast<uint16_t>(Short()));
  }
  return string;
}

void JfrReader::SkipString() {
  const uint8_t encoding = Byte();
  if (encoding == kJfrPoolEntry) {
    (void)Long();
  } else if (encoding == kJfrUtf8 || encoding == kJfrLatin1) {
    Skip(Count());
  } else if (encoding == kJfrCharacters) {
    const size_t count = Count();
    for (size_t i = 0; i < count && !failed_; ++i) (void)Short();
  } else if (encoding > kJfrLatin1) {
    Fail();
  }
}

}  // namespace culprit::import_
