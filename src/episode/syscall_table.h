// SPDX-License-Identifier: Apache-2.0
//
// Names of Linux system calls by number, on x86-64, arm64 and i386: facts of
// the kernel's user-space headers. A trace keeps numbers; profiles and reports
// speak in names, so that one profile serves traces of the same architecture
// whatever tool wrote them. Constant tables; a lookup is one index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace culprit::episode {

enum class SyscallAbi : uint8_t { kX86_64, kArm64, kI386 };

// "x86_64", "amd64", "aarch64", "arm64", "i386" to "i686", "x86"; else nothing.
std::optional<SyscallAbi> SyscallAbiOf(std::string_view machine);
// What the numbers of a trace mean: the table its importer used, or its machine.
std::optional<SyscallAbi> SyscallAbiOf(const trace::Metadata& metadata);

// Empty: no such call.
std::string_view SyscallName(int64_t number, SyscallAbi abi);

// "EAGAIN" for 11; "error 200" where there is no common name.
std::string ErrorName(uint16_t number);

}  // namespace culprit::episode
