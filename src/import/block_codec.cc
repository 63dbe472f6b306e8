// SPDX-License-Identifier: Apache-2.0
#include "import/block_codec.h"

#include <archive.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

namespace culprit::import_ {
namespace {

constexpr size_t kStep = 256 * 1024;

Result<std::string> Zstd(std::string_view bytes, size_t limit) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> stream(ZSTD_createDCtx(),
                                                                    &ZSTD_freeDCtx);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::string out;
  for (;;) {
    const size_t used = out.size();
    out.resize(std::min(limit, used + kStep));
    ZSTD_outBuffer room{out.data() + used, out.size() - used, 0};
    const size_t left = ZSTD_decompressStream(stream.get(), &room, &in);
    if (ZSTD_isError(left)) return Error{.message = "damaged zstd data"};
    out.resize(used + room.pos);
    if (left == 0) return out;
    if (room.pos == 0 && in.pos == in.size) return Error{.message = "cut zstd data"};
    if (out.size() >= limit) return Error{.message = "zstd data is larger than stated"};
  }
}

// libarchive reads gzip; a zlib stream holds the same deflate data behind a
// head of two bytes, so it gets the head of a gzip file instead.
Result<std::string> Zlib(std::string_view bytes, size_t limit) {
  constexpr std::string_view kGzipHead("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < 6 || (byte(0) & 0x0f) != 8 || (byte(0) * 256 + byte(1)) % 31 != 0 ||
      (byte(1) & 0x20) != 0) {
    return Error{.message = "not zlib data"};
  }
  std::string gzip(kGzipHead);
  gzip.append(bytes.substr(2));
  gzip.append(8, '\0');  // room for the longer trailer, which nobody checks
  const std::unique_ptr<archive, decltype(&archive_read_free)> reader(archive_read_new(),
                                                                      &archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_entry* entry = nullptr;
  std::string out;
  if (archive_read_open_memory(reader.get(), gzip.data(), gzip.size()) != ARCHIVE_OK) {
    return Error{.message = "damaged zlib data"};
  }
  const int header = archive_read_next_header(reader.get(), &entry);
  if (header == ARCHIVE_EOF) return out;
  if (header != ARCHIVE_OK) return Error{.message = "damaged zlib data"};
  for (;;) {
    const size_t used = out.size();
    out.resize(std::min(limit + 1, used + kStep));
    const la_ssize_t got = archive_read_data(reader.get(), out.data() + used, out.size() - used);
    if (got < 0) return Error{.message = "damaged zlib data"};
    out.resize(used + static_cast<size_t>(got));
    if (got == 0) return out;
    if (out.size() > limit) return Error{.message = "zlib data is larger than stated"};
  }
}

}  // namespace

Result<std::string> Decompress(BlockCodec codec, std::string_view bytes, size_t limit) {
  return codec == BlockCodec::kZstd ? Zstd(bytes, limit) : Zlib(bytes, limit);
}

}  // namespace culprit::import_
