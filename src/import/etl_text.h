// SPDX-License-Identifier: Apache-2.0
//
// Strings of Windows as UTF-8: UTF-16 with a zero at the end, bytes with a zero
// at the end, and the file name at the end of a path. What is not valid becomes
// U+FFFD; a string whose end is missing ends with its bytes. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace culprit::import_ {

// Reads up to and including the terminating zero, or all that is left.
std::string TakeWideText(ByteReader& reader);
std::string TakeNarrowText(ByteReader& reader);

// The GUID and age of a debug id, as symbol servers want it: digits, then the age.
std::string TakeDebugId(ByteReader& reader);

// "ntfs.sys" of "\\SystemRoot\\System32\\drivers\\Ntfs.sys".
std::string ModuleNameOf(std::string_view path);

}  // namespace culprit::import_
