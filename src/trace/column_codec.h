// SPDX-License-Identifier: Apache-2.0
//
// Columns of unsigned integers as bytes. A column is cut into byte planes (all
// lowest bytes, all second bytes, ...), as many as its largest value needs;
// each plane is stored on its own: as one byte if constant, raw if zstd gains
// nothing, else as a zstd frame. Planes have very different statistics (the
// low bytes of durations are noise, the high ones nearly constant), so apart
// they compress better and faster than varints, and joining them again is a
// loop the compiler vectorizes.
//
//   column := planes:u8 plane*
//   plane  := 0 byte:u8 | 1 raw bytes | 2 length:varint zstd frame
//
// The number of values is not stored: the block knows it.
#pragma once

#include <climits>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace culprit::trace {

// In place of a level: columns are written as they are.
inline constexpr int kNoCompression = INT_MIN;

class ColumnEncoder {
 public:
  explicit ColumnEncoder(int zstd_level);
  ~ColumnEncoder();

  void Column(std::span<const uint64_t> values, ByteWriter& out);
  void Bytes(std::string_view plane, ByteWriter& out);
  // Any bytes as `raw length, zstd frame`; the inverse is Decompress().
  void Compress(std::string_view raw, ByteWriter& out);
  bool compresses() const { return compresses_columns_; }

 private:
  std::string_view CompressInto(std::string_view raw);

  std::unique_ptr<ZSTD_CCtx_s, void (*)(ZSTD_CCtx_s*)> zstd_;
  bool compresses_columns_;
  std::string plane_;
  std::string compressed_;
};

// The decoder checks everything it reads; a false return means damaged input.
class ColumnDecoder {
 public:
  ColumnDecoder();
  ~ColumnDecoder();

  bool Column(ByteReader& in, size_t count, std::vector<uint64_t>& values);
  bool Bytes(ByteReader& in, size_t count, std::string& plane);
  // Refuses to make more than `max_raw` bytes.
  bool Decompress(ByteReader& in, size_t max_raw, std::string& raw);

 private:
  bool DecompressInto(std::string_view frame, char* out, size_t size);

  std::unique_ptr<ZSTD_DCtx_s, void (*)(ZSTD_DCtx_s*)> zstd_;
  std::string plane_;
};

}  // namespace culprit::trace
