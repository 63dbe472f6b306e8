// SPDX-License-Identifier: Apache-2.0
//
// ProfilePart (episode/profile_part.h) and its options as bytes, for the outputs of
// runs. Canonical: equal parts give equal bytes. Decoding trusts nothing: every
// symbol is held against its table. O(size); no state.
//
//   part     := version symbols function* total* processes archs counts:varint{5}
//               has_durations:u8 named:u8 diagnostics
//   function := module build_id name count* count* sequence*
//   sequence := weight symbol*
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "episode/profile_part.h"

namespace culprit::scale {

std::string EncodeProfilePart(const episode::ProfilePart& part);
std::optional<episode::ProfilePart> DecodeProfilePart(std::string_view bytes);

// All that a profile depends on besides the traces; jobs is not.
std::string EncodeProfileOptions(const episode::ProfileOptions& options);
std::optional<episode::ProfileOptions> DecodeProfileOptions(std::string_view bytes);

}  // namespace culprit::scale
