// SPDX-License-Identifier: Apache-2.0
//
// Names and numbers of Linux system calls on x86-64 and arm64, and of errors:
// facts of the kernel's interface that text formats write as names where the
// model has numbers. Lookups are binary searches over constant tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace culprit::import_ {

enum class SyscallArch : uint8_t { kX86_64, kArm64 };

// "x86_64", "amd64", "aarch64", "arm64"; nothing for others.
std::optional<SyscallArch> SyscallArchOf(std::string_view machine);
std::string_view ArchName(SyscallArch arch);

inline constexpr int64_t kNoSyscall = -1;
// "read", "openat"; also the kernel's own names where they differ ("newstat").
// kNoSyscall: not a system call of that architecture.
int64_t SyscallNumber(std::string_view name, SyscallArch arch);
// The name of a number; empty: none.
std::string_view SyscallName(int64_t number, SyscallArch arch);

// "ENOENT" -> 2; 0: not known.
int64_t ErrnoNumber(std::string_view name);

}  // namespace culprit::import_
