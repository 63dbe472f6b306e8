// SPDX-License-Identifier: Apache-2.0
//
// CtfSyscalls: numbers for the names of system calls in CTF event names. A CTF
// trace rarely says which machine it is from; where its environment does not,
// the events it describes give it away (of the little-endian 64-bit machines
// only x86 has open). Names of 32-bit and old variants ("fstat64", "getuid16",
// "futex_time32") get the number of the plain call. Machines without a table
// here use that of x86-64: the numbers then stand for names, not for what the
// machine's kernel used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/ctf_schema.h"
#include "trace/syscall_table.h"

namespace culprit::import_ {

class CtfSyscalls {
 public:
  explicit CtfSyscalls(const CtfSchema& schema);

  // trace::kNoSyscall: no such name.
  int64_t Number(std::string_view name) const;
  trace::SyscallAbi table() const { return table_; }
  // As the trace says, or as deduced; empty: not known.
  const std::string& machine() const { return machine_; }

 private:
  trace::SyscallAbi table_ = trace::SyscallAbi::kX86_64;
  std::string machine_;
};

}  // namespace culprit::import_
