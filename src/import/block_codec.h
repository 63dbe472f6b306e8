// SPDX-License-Identifier: Apache-2.0
//
// Decompress: one compressed block whose size when unpacked is stated beside it
// or at least bounded, as trace.dat and Perfetto have them. The stated size is
// not trusted: nothing beyond `limit` bytes is ever made. Pure function.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::import_ {

enum class BlockCodec { kZstd, kZlib };

// At most `limit` bytes; more than that is an Error, as are damaged bytes.
Result<std::string> Decompress(BlockCodec codec, std::string_view bytes, size_t limit);

}  // namespace culprit::import_
