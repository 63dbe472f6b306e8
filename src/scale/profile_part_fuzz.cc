// SPDX-License-Identifier: Apache-2.0
// Any bytes as a part of a profile, as a damaged run folder might hold them. What
// is accepted must be what it would write, must add up, and must be fit for mining.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scale/profile_part_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using culprit::episode::ProfilePart;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto part = culprit::scale::DecodeProfilePart(bytes);
  if (!part) return 0;
  const std::string again = culprit::scale::EncodeProfilePart(*part);
  const auto decoded = culprit::scale::DecodeProfilePart(again);
  CULPRIT_CHECK(decoded && culprit::scale::EncodeProfilePart(*decoded) == again);
  ProfilePart sum;
  const auto all = [](const auto&) { return true; };
  AddPart(*part, all, sum);
  AddPart(*part, all, sum);
  CULPRIT_CHECK(sum.functions.size() == part->functions.size());
  CULPRIT_CHECK(sum.symbols.size() == part->symbols.size());
  const auto profile = MineProfile(std::move(*part), {.max_candidates = 200}, 1);
  CULPRIT_CHECK(profile.functions.size() == sum.functions.size());
  return 0;
}
