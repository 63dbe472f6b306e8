// SPDX-License-Identifier: Apache-2.0
// Any bytes as a profile file, and as its unpacked body; what is accepted must be
// free of contradictions, come back the same, and make plans.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "guard/plan_builder.h"
#include "guard/profile_codec.h"
#include "guard/profile_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace guard = culprit::guard;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = guard::UnpackProfile(bytes, "fuzz");
  if (file.ok()) guard::BuildPlan(file.value(), guard::wire::Mode::kGuard);
  guard::Profile profile;
  if (!guard::DecodeProfile(bytes, profile)) return 0;
  if (!guard::FirstContradiction(profile).empty()) return 0;
  guard::Profile again;
  CULPRIT_CHECK(guard::DecodeProfile(guard::EncodeProfile(profile), again));
  CULPRIT_CHECK(again == profile);
  guard::BuildPlan(profile, guard::wire::Mode::kCalibrate);
  return 0;
}
