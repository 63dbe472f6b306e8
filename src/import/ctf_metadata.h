// SPDX-License-Identifier: Apache-2.0
//
// The metadata file of a CTF trace, from bytes to a CtfSchema: plain text or
// cut into packets (of either byte order), version 1.8 or 2. Damage in the
// middle is counted and the classes that could be read are kept; only a file
// that describes no stream and no event at all is an Error.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/ctf_schema.h"

namespace culprit::import_ {

inline constexpr uint32_t kCtfMetadataMagic = 0x75D11D57;

// Whether `head` begins like a metadata file of either version.
bool LooksLikeCtfMetadata(std::string_view head);

// The text inside packets; text that is not in packets comes back as it is.
std::string UnpackCtfMetadata(std::string_view bytes, Diagnostics& diagnostics);

// `name` is for messages.
Result<CtfSchema> ReadCtfMetadata(std::string_view bytes, const std::string& name,
                                  Diagnostics& diagnostics);

}  // namespace culprit::import_
