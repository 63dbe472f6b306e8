// SPDX-License-Identifier: Apache-2.0
//
// JfrReader: the primitive values of Java Flight Recorder files. Integers are
// LEB128 (of at most nine bytes, the last one whole) in chunks that say so, else
// big-endian; floating-point numbers are always big-endian. Never reads past its
// end: the first short read sets failed() and every later one gives zero.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::import_ {

// A string is written in place or is an entry of the pool of strings.
struct JfrString {
  std::string text;
  int64_t pool_entry = -1;
};

class JfrReader {
 public:
  JfrReader(std::string_view bytes, bool compressed) : bytes_(bytes), compressed_(compressed) {}

  int64_t Long() { return static_cast<int64_t>(compressed_ ? Leb128() : Big(8)); }
  int64_t Int() { return static_cast<int32_t>(compressed_ ? Leb128() : Big(4)); }
  int64_t Short() { return static_cast<int16_t>(compressed_ ? Leb128() : Big(2)); }
  uint8_t Byte() { return static_cast<uint8_t>(Big(1)); }
  void Skip(uint64_t count);
  JfrString String();
  void SkipString();
  // One value more was looked at. Fails when there were far more than bytes:
  // values without any bytes could keep a reader busy for ever.
  void Step() {
    if (++steps_ > 4 * bytes_.size() + 4096) Fail();
  }
  // How many elements follow; never more than there are bytes left.
  size_t Count();

  bool failed() const { return failed_; }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

 private:
  uint64_t Leb128();
  uint64_t Big(size_t size);
  void Fail() {
    failed_ = true;
    position_ = bytes_.size();
  }

  std::string_view bytes_;
  bool compressed_;
  size_t position_ = 0;
  size_t steps_ = 0;
  bool failed_ = false;
};

}  // namespace culprit::import_
