// SPDX-License-Identifier: Apache-2.0
// Any bytes as a profile: with their own checksum, with a right one, and as the
// contents behind a right head, so that the reader's inside is reached. What is
// accepted must be what it would write.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "episode/profile_file.h"

namespace {

void Read(const std::string& bytes) {
  const auto profile = culprit::episode::DecodeProfile(bytes, "fuzz");
  if (!profile.ok()) return;
  const std::string again = culprit::episode::EncodeProfile(profile.value());
  CULPRIT_CHECK(culprit::episode::DecodeProfile(again, "again").ok());
  const auto merged = culprit::episode::MergeProfiles(profile.value(), profile.value());
  CULPRIT_CHECK(merged.functions.size() == profile.value().functions.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Read(bytes);
  Read(culprit::episode::WithRightHash(bytes));
  static const std::string head = culprit::episode::EncodeProfile({}).substr(0, 32);
  Read(culprit::episode::WithRightHash(head + bytes));
  return 0;
}
