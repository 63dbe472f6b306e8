// SPDX-License-Identifier: Apache-2.0
//
// BpfRing: the reader's side of a ring that kernel programs write (BPF_MAP_TYPE_RINGBUF).
// Read in place, and given back to the writers a piece at a time. One reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace culprit::record {

class BpfRing {
 public:
  using Visitor = std::function<void(std::string_view)>;

  // The map stays the caller's; `bytes` is how many it has, a power of two.
  static Result<BpfRing> Open(int map_fd, uint64_t bytes);
  BpfRing() = default;
  BpfRing(BpfRing&& other) noexcept;
  BpfRing& operator=(BpfRing&& other) noexcept;
  ~BpfRing();

  // All records that are complete, up to the first that is not. They are the visitor's
  // only during its call.
  void Drain(const Visitor& visitor);
  // How many bytes wait to be read.
  uint64_t used() const;
  uint64_t bytes() const { return bytes_; }

 private:
  void Close();

  uint64_t bytes_ = 0;
  size_t page_ = 0;
  char* consumer_ = nullptr;        // a page, which begins with the reader's position
  const char* producer_ = nullptr;  // likewise the writers', and then the data, twice in a row
};

}  // namespace culprit::record
