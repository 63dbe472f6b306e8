// SPDX-License-Identifier: Apache-2.0
//
// The profile file NAME.cguard, version 5. Little-endian; varints are LEB128:
//
//   file   = magic "CGUARD\r\n" | u32 version | u64 bytes of body, unpacked
//            | u64 checksum (XXH3) of the packed body | packed body (zstd)
//   body   = program | modules | functions | paths | places | loops | shapes
//            | types | guards | quality | training | thresholds
//   table  = varint count, then its rows; ascending indexes as differences
//
// Reading checks magic, version, checksum, every count against the bytes that
// are left and every index: a file that was read has no contradictions.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "guard/profile.h"

namespace culprit::guard {

std::string PackProfile(const Profile& profile);
// `name` stands in errors.
Result<Profile> UnpackProfile(std::string_view bytes, const std::string& name);

Status WriteProfile(const Profile& profile, const std::string& path,
                    Overwrite overwrite = Overwrite::kRefuse);
Result<Profile> ReadProfile(const std::string& path);

}  // namespace culprit::guard
