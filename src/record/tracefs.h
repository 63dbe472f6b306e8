// SPDX-License-Identifier: Apache-2.0
//
// Tracefs, in which the kernel describes its trace events. On some machines (small ones,
// containers) nobody has mounted it: root then gets one that no other process sees.
#pragma once

#include <string>

namespace culprit::record {

// Without a slash at its end; empty: there is none, or this user may not read it. Looks once.
const std::string& TracefsFolder();

// Looks now.
std::string FindTracefs();

}  // namespace culprit::record
