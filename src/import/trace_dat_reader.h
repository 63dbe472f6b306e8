// SPDX-License-Identifier: Apache-2.0
//
// TraceDatReader: integers, NUL-ended strings and sized blobs of trace.dat, in
// either byte order, over any Bytes. Like ByteReader, the first read that is
// short or beyond a bound sets failed() and every later one gives nothing, so a
// part may be read as a whole and asked once. One thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "import/event_format.h"
#include "import/source.h"

namespace culprit::import_ {

class TraceDatReader {
 public:
  TraceDatReader(const Bytes& bytes, uint64_t offset, ByteOrder order)
      : bytes_(bytes), input_(bytes, offset, 64 * 1024), order_(order) {}

  uint64_t Unsigned(size_t size) { return LoadUnsigned(Blob(size), 0, size, order_); }
  uint16_t U16() { return static_cast<uint16_t>(Unsigned(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Unsigned(4)); }
  uint64_t U64() { return Unsigned(8); }
  // Up to the next NUL, which is skipped.
  std::string String(size_t max_bytes = 4096);
  // Exactly `size` bytes; a size beyond the input or kMaxBlob fails.
  std::string Blob(uint64_t size);

  bool failed() const { return failed_; }
  uint64_t offset() const { return input_.offset(); }

 private:
  static constexpr uint64_t kMaxBlob = uint64_t{256} << 20;

  const Bytes& bytes_;
  BytesReader input_;
  ByteOrder order_;
  bool failed_ = false;
};

}  // namespace culprit::import_
