// SPDX-License-Identifier: Apache-2.0
#include "symbol/decompress.h"

#include <lzma.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

namespace culprit::symbol {
namespace {

constexpr size_t kFirstBytes = 64 * 1024;
constexpr uint64_t kMaxDecoderBytes = uint64_t{256} << 20;

Error TooLong() { return Error{.message = "decompressed data is too long"}; }

// Room for more output: doubles up to the bound; false when there is none left.
bool Grow(std::string& out, size_t used, size_t max_bytes) {
  if (used < out.size()) return true;
  if (out.size() >= max_bytes) return false;
  out.resize(std::min(max_bytes, std::max(kFirstBytes, out.size() * 2)));
  return true;
}

}  // namespace

Result<std::string> DecompressXz(std::string_view bytes, size_t max_bytes) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMaxDecoderBytes, LZMA_CONCATENATED) != LZMA_OK) {
    return Error{.message = "cannot start the xz decoder"};
  }
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> owner(&stream, &lzma_end);
  stream.next_in = reinterpret_cast<const uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  std::string out;
  lzma_ret state = LZMA_OK;
  while (state == LZMA_OK) {
    const size_t used = stream.total_out;
    if (!Grow(out, used, max_bytes)) return TooLong();
    stream.next_out = reinterpret_cast<uint8_t*>(out.data()) + used;
    stream.avail_out = out.size() - used;
    state = lzma_code(&stream, LZMA_FINISH);
  }
  if (state != LZMA_STREAM_END) return Error{.message = "damaged xz data"};
  out.resize(stream.total_out);
  return out;
}

Result<std::string> DecompressZstd(std::string_view bytes, size_t max_bytes) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> decoder(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  std::string out;
  ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
  size_t used = 0;
  while (true) {
    if (!Grow(out, used, max_bytes)) return TooLong();
    ZSTD_outBuffer output = {out.data(), out.size(), used};
    const size_t before = input.pos;
    const size_t left = ZSTD_decompressStream(decoder.get(), &output, &input);
    if (ZSTD_isError(left) != 0) return Error{.message = "damaged zstd data"};
    const bool moved = output.pos != used || input.pos != before;
    used = output.pos;
    if (left == 0 && input.pos == input.size) break;
    if (!moved) return Error{.message = "zstd data ends too early"};
  }
  out.resize(used);
  return out;
}

}  // namespace culprit::symbol
