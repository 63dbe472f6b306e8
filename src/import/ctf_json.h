// SPDX-License-Identifier: Apache-2.0
//
// ParseCtfJson: the metadata of CTF 2, a sequence of JSON texts ("fragments",
// each after a record separator, 0x1E), to a CtfSchema. All field classes of
// CTF2-SPEC-2.0 are read; aliases may be used before or after other fragments,
// but after their own. A fragment that makes no sense is counted with its offset
// and left out.
#pragma once

#include <string_view>

#include "base/diagnostics.h"
#include "import/ctf_schema.h"

namespace culprit::import_ {

CtfSchema ParseCtfJson(std::string_view text, Diagnostics& diagnostics);

}  // namespace culprit::import_
