// SPDX-License-Identifier: Apache-2.0
#include "trace/column_codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace culprit::trace {
namespace {

constexpr int kFastLevel = -5;

enum PlaneMode : uint8_t { kConstant = 0, kRaw = 1, kZstd = 2 };

void FreeEncoder(ZSTD_CCtx_s* zstd) { ZSTD_freeCCtx(zstd); }
void FreeDecoder(ZSTD_DCtx_s* zstd) { ZSTD_freeDCtx(zstd); }

bool IsConstant(std::string_view plane) {
  return plane.empty() || std::memcmp(plane.data(), plane.data() + 1, plane.size() - 1) == 0;
}

}  // namespace

ColumnEncoder::ColumnEncoder(int zstd_level)
    : zstd_(ZSTD_createCCtx(), &FreeEncoder), compresses_columns_(zstd_level != kNoCompression) {
  CULPRIT_CHECK(zstd_ != nullptr);
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel,
                         compresses_columns_ ? zstd_level : kFastLevel);
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_contentSizeFlag, 1);
}

ColumnEncoder::~ColumnEncoder() = default;

std::string_view ColumnEncoder::CompressInto(std::string_view raw) {
  compressed_.resize(ZSTD_compressBound(raw.size()));
  const size_t size =
      ZSTD_compress2(zstd_.get(), compressed_.data(), compressed_.size(), raw.data(), raw.size());
  CULPRIT_CHECK(!ZSTD_isError(size));
  return std::string_view(compressed_).substr(0, size);
}

void ColumnEncoder::Bytes(std::string_view plane, ByteWriter& out) {
  if (IsConstant(plane)) {
    out.U8(kConstant);
    out.U8(plane.empty() ? 0 : static_cast<uint8_t>(plane.front()));
    return;
  }
  if (compresses_columns_) {
    const std::string_view frame = CompressInto(plane);
    // A gain under 1/32 is not worth the decoder's time.
    if (frame.size() + frame.size() / 32 < plane.size()) {
      out.U8(kZstd);
      out.String(frame);
      return;
    }
  }
  out.U8(kRaw);
  out.Bytes(plane);
}

void ColumnEncoder::Column(std::span<const uint64_t> values, ByteWriter& out) {
  uint64_t all_bits = 0;
  for (uint64_t value : values) all_bits |= value;
  const int planes = (std::bit_width(all_bits) + 7) / 8;
  out.U8(static_cast<uint8_t>(planes));
  for (int plane = 0; plane < planes; ++plane) {
    plane_.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      plane_[i] = static_cast<char>(values[i] >> (8 * plane));
    }
    Bytes(plane_, out);
  }
}

void ColumnEncoder::Compress(std::string_view raw, ByteWriter& out) {
  out.Varint(raw.size());
  out.String(CompressInto(raw));
}

ColumnDecoder::ColumnDecoder() : zstd_(ZSTD_createDCtx(), &FreeDecoder) {
  CULPRIT_CHECK(zstd_ != nullptr);
}

ColumnDecoder::~ColumnDecoder() = default;

bool ColumnDecoder::DecompressInto(std::string_view frame, char* out, size_t size) {
  // A frame that says another size than expected is not decoded at all.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != size) return false;
  return ZSTD_decompressDCtx(zstd_.get(), out, size, frame.data(), frame.size()) == size;
}

bool ColumnDecoder::Bytes(ByteReader& in, size_t count, std::string& plane) {
  plane.resize(count);
  switch (in.U8()) {
    case kConstant:
      std::memset(plane.data(), in.U8(), count);
      return !in.failed();
    case kRaw: {
      const std::string_view bytes = in.Bytes(count);
      if (in.failed()) return false;
      if (count > 0) std::memcpy(plane.data(), bytes.data(), count);
      return true;
    }
    case kZstd: {
      const std::string_view frame = in.String();
      return !in.failed() && DecompressInto(frame, plane.data(), count);
    }
    default:
      return false;
  }
}

bool ColumnDecoder::Column(ByteReader& in, size_t count, std::vector<uint64_t>& values) {
  const int planes = in.U8();
  if (in.failed() || planes > 8) return false;
  values.resize(count);
  if (planes == 0) std::fill(values.begin(), values.end(), 0);
  for (int plane = 0; plane < planes; ++plane) {
    if (!Bytes(in, count, plane_)) return false;
    const auto* bytes = reinterpret_cast<const uint8_t*>(plane_.data());
    if (plane == 0) {
      for (size_t i = 0; i < count; ++i) values[i] = bytes[i];
    } else {
      for (size_t i = 0; i < count; ++i)
        values[i] |= static_cast<uint64_t>(bytes[i]) << (8 * plane);
    }
  }
  return true;
}

bool ColumnDecoder::Decompress(ByteReader& in, size_t max_raw, std::string& raw) {
  const uint64_t size = in.Varint();
  const std::string_view frame = in.String();
  if (in.failed() || size > max_raw) return false;
  // Before making room, see that the frame itself agrees.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != size) return false;
  raw.resize(size);
  return DecompressInto(frame, raw.data(), size);
}

}  // namespace culprit::trace
