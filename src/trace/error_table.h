// SPDX-License-Identifier: Apache-2.0
//
// Names and numbers of the errors that Linux system calls fail with, those that
// only the kernel sees (ERESTARTSYS) included; the same on x86-64, arm64 and
// i386. A constant table; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::trace {

// "ENOENT" -> 2; 0: not known.
int64_t ErrorNumber(std::string_view name);
// "EAGAIN" for 11; "error 200" where there is no name.
std::string ErrorName(uint16_t number);

}  // namespace culprit::trace
