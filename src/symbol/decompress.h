// SPDX-License-Identifier: Apache-2.0
//
// Whole compressed objects into memory, with a bound on what comes out: the xz
// of .gnu_debugdata, and kernel modules that distributions ship as .ko.xz,
// .ko.zst. Input is untrusted. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::symbol {

Result<std::string> DecompressXz(std::string_view bytes, size_t max_bytes);
Result<std::string> DecompressZstd(std::string_view bytes, size_t max_bytes);

}  // namespace culprit::symbol
