// SPDX-License-Identifier: Apache-2.0
//
// The two encodings of a report's data. Both are deterministic: gzip is written
// without a time or a name. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace culprit::page {

std::string Base64(std::string_view bytes);
std::string Gzip(std::string_view bytes);

}  // namespace culprit::page
