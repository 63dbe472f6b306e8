// SPDX-License-Identifier: Apache-2.0
//
// Code being written: bytes that will run at `address`. Writing beyond the end
// is remembered (`full`) and leaves the buffer as it is, so emitters need no
// checks of their own. Not owning; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace culprit::guard::runtime {

class CodeBuffer {
 public:
  CodeBuffer(std::span<uint8_t> bytes, uint64_t address) : bytes_(bytes), address_(address) {}

  uint64_t here() const { return address_ + size_; }
  size_t size() const { return size_; }
  bool full() const { return full_; }

  void Byte(uint8_t value) { Append(&value, 1); }
  void Word(uint32_t value) { Append(&value, 4); }  // both targets are little-endian
  void Long(uint64_t value) { Append(&value, 8); }
  void Append(const void* data, size_t count) {
    if (count > bytes_.size() - size_) {
      full_ = true;
      return;
    }
    std::memcpy(bytes_.data() + size_, data, count);
    size_ += count;
  }
  template <typename... Bytes>
  void All(Bytes... values) {
    (Byte(static_cast<uint8_t>(values)), ...);
  }
  void Overwrite(size_t offset, const void* data, size_t count) {
    if (offset + count <= size_) std::memcpy(bytes_.data() + offset, data, count);
  }

 private:
  std::span<uint8_t> bytes_;
  uint64_t address_;
  size_t size_ = 0;
  bool full_ = false;
};

}  // namespace culprit::guard::runtime
