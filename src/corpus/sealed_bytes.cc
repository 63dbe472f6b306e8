// SPDX-License-Identifier: Apache-2.0
#include "corpus/sealed_bytes.h"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/bytes.h"
#include "base/check.h"

namespace culprit::corpus {
namespace {

constexpr std::string_view kSealMagic = "CSEALED\n";
constexpr uint16_t kSealVersion = 1;
constexpr size_t kHashBytes = 8;
// Level 3 packs evidence to a fifth; higher levels gain a tenth and take thrice as long.
constexpr int kSealLevel = 3;

uint64_t HashOf(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct SealedParts {
  uint64_t raw_size = 0;
  std::string_view frame;
};

std::optional<SealedParts> OpenSeal(std::string_view kind, std::string_view id,
                                    std::string_view sealed) {
  if (sealed.size() < kSealMagic.size() + kHashBytes) return std::nullopt;
  ByteReader hash(sealed.substr(sealed.size() - kHashBytes));
  sealed.remove_suffix(kHashBytes);
  ByteReader reader(sealed);
  if (reader.Bytes(kSealMagic.size()) != kSealMagic || reader.U16() != kSealVersion) {
    return std::nullopt;
  }
  if (reader.String() != kind || reader.String() != id) return std::nullopt;
  SealedParts parts;
  parts.raw_size = reader.Varint();
  parts.frame = reader.Bytes(reader.remaining());
  if (reader.failed() || parts.raw_size > kMaxSealedBytes) return std::nullopt;
  // Last, for it reads everything.
  if (hash.U64() != HashOf(sealed)) return std::nullopt;
  return parts;
}

// By pieces: a size that lies is found out before its memory is asked for.
std::optional<std::string> Unpack(const SealedParts& parts) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> zstd(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  CULPRIT_CHECK(zstd != nullptr);
  constexpr uint64_t kPiece = 16 << 20;
  std::string raw;
  ZSTD_inBuffer in{parts.frame.data(), parts.frame.size(), 0};
  size_t left = 1;
  while (left != 0) {
    const size_t before = raw.size();
    // One byte more than is promised, so that the end of the frame is seen.
    raw.resize(static_cast<size_t>(std::min(parts.raw_size + 1, before + kPiece)));
    ZSTD_outBuffer out{raw.data(), raw.size(), before};
    left = ZSTD_decompressStream(zstd.get(), &out, &in);
    raw.resize(out.pos);
    if (ZSTD_isError(left) || raw.size() > parts.raw_size) return std::nullopt;
    if (left != 0 && raw.size() == before && in.pos == in.size) return std::nullopt;
  }
  if (raw.size() != parts.raw_size || in.pos != in.size) return std::nullopt;
  return raw;
}

}  // namespace

std::string Seal(std::string_view kind, std::string_view id, std::string_view payload) {
  CULPRIT_CHECK(payload.size() <= kMaxSealedBytes);
  ByteWriter head;
  head.Bytes(kSealMagic);
  head.U16(kSealVersion);
  head.String(kind);
  head.String(id);
  head.Varint(payload.size());
  std::string sealed = head.Take();
  const size_t begin = sealed.size();
  sealed.resize(begin + ZSTD_compressBound(payload.size()));
  const size_t packed = ZSTD_compress(sealed.data() + begin, sealed.size() - begin, payload.data(),
                                      payload.size(), kSealLevel);
  CULPRIT_CHECK(!ZSTD_isError(packed));
  sealed.resize(begin + packed);
  ByteWriter hash;
  hash.U64(HashOf(sealed));
  return sealed + hash.bytes();
}

std::optional<std::string> Unseal(std::string_view kind, std::string_view id,
                                  std::string_view sealed) {
  const std::optional<SealedParts> parts = OpenSeal(kind, id, sealed);
  return parts ? Unpack(*parts) : std::nullopt;
}

bool IsSealed(std::string_view kind, std::string_view id, std::string_view sealed) {
  return OpenSeal(kind, id, sealed).has_value();
}

std::string ShortDigest(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace culprit::corpus
