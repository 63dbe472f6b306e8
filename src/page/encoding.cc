// SPDX-License-Identifier: Apache-2.0
#include "page/encoding.h"

#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>

#include "base/check.h"

namespace culprit::page {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for a gzip header
constexpr int kBestLevel = 9;
constexpr int kMemoryLevel = 9;
// A multiple of three, so that pieces join without padding between them.
constexpr size_t kBase64Piece = 3 << 20;

}  // namespace

std::string Base64(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += kBase64Piece) {
    const std::string_view piece = bytes.substr(at, kBase64Piece);
    const size_t begin = out.size();
    out.resize(begin + (piece.size() + 2) / 3 * 4 + 1);  // EVP writes a final zero
    const int written = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data() + begin),
                                        reinterpret_cast<const unsigned char*>(piece.data()),
                                        static_cast<int>(piece.size()));
    out.resize(begin + static_cast<size_t>(written));
  }
  return out;
}

std::string Gzip(std::string_view bytes) {
  z_stream stream = {};
  CULPRIT_CHECK(deflateInit2(&stream, kBestLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                             Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out;
  // zlib counts in 32 bits.
  constexpr size_t kMost = size_t{1} << 30;
  size_t at = 0;
  int state = Z_OK;
  std::string buffer(size_t{1} << 16, '\0');
  do {
    const size_t size = std::min(kMost, bytes.size() - at);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
    stream.avail_in = static_cast<uInt>(size);
    at += size;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      state = deflate(&stream, at == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
      out.append(buffer, 0, buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (at < bytes.size());
  CULPRIT_CHECK(state == Z_STREAM_END);
  deflateEnd(&stream);
  return out;
}

}  // namespace culprit::page
