// SPDX-License-Identifier: Apache-2.0
// Any text as the arguments of a probe: what comes out goes into the definition of a
// kernel event, so it is a register or a place relative to one, and nothing else.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "record/usdt_argument.h"

namespace {

bool IsRegister(std::string_view text) {
  if (!text.starts_with('%') || text.size() < 3 || text.size() > 4) return false;
  return std::all_of(text.begin() + 1, text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

bool IsFetch(std::string_view text) {
  if (IsRegister(text)) return true;
  const size_t open = text.find('(');
  if ((!text.starts_with('+') && !text.starts_with('-')) || open == std::string_view::npos ||
      !text.ends_with(')')) {
    return false;
  }
  const auto offset = culprit::ParseUnsigned(text.substr(1, open - 1));
  return offset && *offset <= INT32_MAX &&
         IsRegister(text.substr(open + 1, text.size() - open - 2));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (size_t index = 0; index < 8; ++index) {
    const auto fetch = culprit::record::FetchOfArgument(text, index);
    if (fetch) CULPRIT_CHECK(IsFetch(*fetch));
  }
  return 0;
}
