// SPDX-License-Identifier: Apache-2.0
//
// The body of a profile file (profile_file.h): tables of a Profile as varints.
// Decoding never trusts a count (each row takes a byte at least) and stops at the
// first thing that cannot be; indexes are checked afterwards by
// FirstContradiction (profile.h).
#pragma once

#include <string>
#include <string_view>

#include "guard/profile.h"

namespace culprit::guard {

std::string EncodeProfile(const Profile& profile);
// False: the bytes are no profile.
bool DecodeProfile(std::string_view bytes, Profile& profile);

}  // namespace culprit::guard
