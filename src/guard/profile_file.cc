// SPDX-License-Identifier: Apache-2.0
#include "guard/profile_file.h"

#include <xxhash.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "guard/profile_codec.h"

namespace culprit::guard {
namespace {

constexpr std::string_view kProfileMagic = "CGUARD\r\n";
constexpr uint32_t kProfileVersion = 5;
constexpr uint64_t kMaxBody = uint64_t{256} << 20;
constexpr int kPackLevel = 9;

}  // namespace

std::string PackProfile(const Profile& profile) {
  const std::string body = EncodeProfile(profile);
  std::string packed(ZSTD_compressBound(body.size()), '\0');
  const size_t size =
      ZSTD_compress(packed.data(), packed.size(), body.data(), body.size(), kPackLevel);
  CULPRIT_CHECK(ZSTD_isError(size) == 0);
  packed.resize(size);
  ByteWriter out;
  out.Bytes(kProfileMagic);
  out.U32(kProfileVersion);
  out.U64(body.size());
  out.U64(XXH3_64bits(packed.data(), packed.size()));
  out.Bytes(packed);
  return out.Take();
}

Result<Profile> UnpackProfile(std::string_view bytes, const std::string& name) {
  ByteReader in(bytes);
  if (in.Bytes(kProfileMagic.size()) != kProfileMagic) {
    return Error{"not a guard profile", name, 0, "profiles are made by `culprit guard train`"};
  }
  const uint32_t version = in.U32();
  if (version != kProfileVersion) {
    return Error{"guard profile of version " + std::to_string(version) + ", this program reads " +
                     std::to_string(kProfileVersion),
                 name, kProfileMagic.size(), "train again, or use the program that wrote it"};
  }
  const uint64_t body_bytes = in.U64();
  const uint64_t checksum = in.U64();
  const uint64_t offset = in.position();
  const std::string_view packed = in.Bytes(in.remaining());
  const std::string hint = "the file is cut or changed: copy it again, or train again";
  if (in.failed() || XXH3_64bits(packed.data(), packed.size()) != checksum) {
    return Error{"guard profile with a wrong checksum", name, offset, hint};
  }
  if (body_bytes > kMaxBody ||
      ZSTD_getFrameContentSize(packed.data(), packed.size()) != body_bytes) {
    return Error{"guard profile with a wrong length", name, offset, hint};
  }
  std::string body(body_bytes, '\0');
  if (ZSTD_decompress(body.data(), body.size(), packed.data(), packed.size()) != body.size()) {
    return Error{"guard profile that cannot be unpacked", name, offset, hint};
  }
  Profile profile;
  if (!DecodeProfile(body, profile)) {
    return Error{"guard profile with a damaged table", name, offset, hint};
  }
  if (const std::string wrong = FirstContradiction(profile); !wrong.empty()) {
    return Error{"guard profile with a wrong " + wrong, name, offset, hint};
  }
  return profile;
}

Status WriteProfile(const Profile& profile, const std::string& path, Overwrite overwrite) {
  return WriteWholeFile(path, PackProfile(profile), overwrite);
}

Result<Profile> ReadProfile(const std::string& path) {
  CULPRIT_ASSIGN(const std::string bytes, ReadWholeFile(path));
  return UnpackProfile(bytes, path);
}

}  // namespace culprit::guard
