// SPDX-License-Identifier: Apache-2.0
//
// What the encodings of all parts (collector.h) have in common: lists of strings,
// diagnostics, and counts that are held against the bytes that are left before
// anything is reserved. Reading past the end sets the reader's failed(), as ever;
// a caller asks once at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/diagnostics.h"

namespace culprit::corpus {

// How many elements follow; each takes at least `bytes_each`. 0 where there
// cannot be as many, with the reader failed.
size_t ReadCount(ByteReader& reader, size_t bytes_each = 1);

void WriteStrings(const std::vector<std::string>& strings, ByteWriter& writer);
std::vector<std::string> ReadStrings(ByteReader& reader);

void WriteDiagnostics(const Diagnostics& diagnostics, ByteWriter& writer);
Diagnostics ReadDiagnostics(ByteReader& reader);

}  // namespace culprit::corpus
