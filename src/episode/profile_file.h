// SPDX-License-Identifier: Apache-2.0
//
// The file of a profile (.cprof):
//
//   file := "CPROF\x1a\n\0" major:u16 minor:u16 zero:u32 length:u64 hash:u64 payload[length]
//
// hash is XXH3 of the payload; inside it all numbers are varints and strings
// have their length before them (docs/inference.md). Reading trusts nothing:
// a file that is cut short, changed, of a newer major version or whose contents
// do not fit together is refused with a message that says which.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "episode/profile.h"

namespace culprit::episode {

std::string EncodeProfile(const Profile& profile);
// `name` stands for the path in messages.
Result<Profile> DecodeProfile(std::string_view bytes, const std::string& name);

Result<Profile> ReadProfile(const std::string& path);
Status WriteProfile(const Profile& profile, const std::string& path, Overwrite overwrite);

// The same bytes with the head's hash made right, for the fuzzer.
std::string WithRightHash(std::string bytes);

}  // namespace culprit::episode
