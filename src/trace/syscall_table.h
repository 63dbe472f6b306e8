// SPDX-License-Identifier: Apache-2.0
//
// Linux system calls by name and by number, on x86-64, arm64 and i386: facts of
// the kernel's user-space headers. A trace keeps numbers; text formats, profiles
// and reports speak in names, so that one profile serves traces of the same
// architecture whatever tool wrote them. Constant tables: a name is found by one
// index, a number by a binary search. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/trace.h"

namespace culprit::trace {

enum class SyscallAbi : uint8_t { kX86_64, kArm64, kI386 };

// "x86_64", "amd64", "aarch64", "arm64", "i386" to "i686", "x86"; else nothing.
std::optional<SyscallAbi> SyscallAbiOf(std::string_view machine);
// What the numbers of a trace mean: the table its importer used, or its machine.
std::optional<SyscallAbi> SyscallAbiOf(const Metadata& metadata);
// "x86_64", "aarch64", "i386".
std::string_view MachineName(SyscallAbi abi);

// Empty: no such call.
std::string_view SyscallName(int64_t number, SyscallAbi abi);

inline constexpr int64_t kNoSyscall = -1;
// "read", "openat"; also the kernel's own names where they differ ("newstat").
// kNoSyscall: not a system call of that architecture.
int64_t SyscallNumber(std::string_view name, SyscallAbi abi);

}  // namespace culprit::trace
