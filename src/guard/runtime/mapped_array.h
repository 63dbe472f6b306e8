// SPDX-License-Identifier: Apache-2.0
//
// A growing array of plain values whose memory comes from mmap, for code that
// runs inside somebody else's program and must not call its malloc. Move only;
// Append returns false when memory is short and then changes nothing. Elements
// move when it grows, so pointers into it do not last.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "guard/runtime/raw_syscall.h"

namespace culprit::guard::runtime {

template <typename T>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  MappedArray() = default;
  MappedArray(MappedArray&& other) noexcept { Swap(other); }
  MappedArray& operator=(MappedArray&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~MappedArray() {
    if (data_ != nullptr) RawUnmap(data_, bytes_);
  }

  bool Append(const T& value) {
    if (size_ == capacity() && !Grow(size_ + 1)) return false;
    std::memcpy(static_cast<void*>(data_ + size_), &value, sizeof(T));
    ++size_;
    return true;
  }
  bool Reserve(size_t count) { return count <= capacity() || Grow(count); }
  void Truncate(size_t count) {
    if (count < size_) size_ = count;
  }
  void clear() { size_ = 0; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

 private:
  static constexpr size_t kPage = 4096;

  size_t capacity() const { return bytes_ / sizeof(T); }
  void Swap(MappedArray& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(bytes_, other.bytes_);
  }
  bool Grow(size_t count) {
    size_t wanted = bytes_ * 2;
    if (wanted < count * sizeof(T)) wanted = count * sizeof(T);
    wanted = (wanted + kPage - 1) / kPage * kPage;
    void* memory = RawMap(wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (memory == nullptr) return false;
    if (data_ != nullptr) {
      std::memcpy(memory, static_cast<const void*>(data_), size_ * sizeof(T));
      RawUnmap(data_, bytes_);
    }
    data_ = static_cast<T*>(memory);
    bytes_ = wanted;
    return true;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t bytes_ = 0;
};

}  // namespace culprit::guard::runtime
