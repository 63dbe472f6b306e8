// SPDX-License-Identifier: Apache-2.0
//
// ByteReader and ByteWriter: little-endian integers, LEB128 varints and
// length-prefixed strings over memory. The reader never reads past its end:
// the first short or malformed read sets failed() and every later read gives
// zero, so a parser may read a whole structure and ask once. No allocation in
// the reader; the writer appends to a string it owns.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace culprit {

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint8_t U8() { return Fixed<uint8_t>(); }
  uint16_t U16() { return Fixed<uint16_t>(); }
  uint32_t U32() { return Fixed<uint32_t>(); }
  uint64_t U64() { return Fixed<uint64_t>(); }
  uint64_t Varint();
  int64_t SignedVarint();
  // A varint length, then that many bytes. The view points into the input.
  std::string_view String();
  std::string_view Bytes(size_t count);

  bool failed() const { return failed_; }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

 private:
  template <class T>
  T Fixed() {
    static_assert(sizeof(T) <= 8);
    T value = 0;
    if (remaining() < sizeof(T)) {
      Fail();
      return 0;
    }
    for (size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(static_cast<uint8_t>(bytes_[position_ + i]))
                                         << (8 * i));
    }
    position_ += sizeof(T);
    return value;
  }
  void Fail() {
    failed_ = true;
    position_ = bytes_.size();
  }

  std::string_view bytes_;
  size_t position_ = 0;
  bool failed_ = false;
};

class ByteWriter {
 public:
  void U8(uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void U16(uint16_t value) { Fixed(value); }
  void U32(uint32_t value) { Fixed(value); }
  void U64(uint64_t value) { Fixed(value); }
  void Varint(uint64_t value);
  void SignedVarint(int64_t value);
  void String(std::string_view text);
  void Bytes(std::string_view bytes) { out_.append(bytes); }

  const std::string& bytes() const { return out_; }
  std::string Take() { return std::move(out_); }
  size_t size() const { return out_.size(); }

 private:
  template <class T>
  void Fixed(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
  }

  std::string out_;
};

constexpr uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

}  // namespace culprit
