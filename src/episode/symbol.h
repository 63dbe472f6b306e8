// SPDX-License-Identifier: Apache-2.0
//
// Symbols: the alphabet of inference. A symbol is a system call, known by its
// name ("read"), with its operation where it is many in one and the trace tells
// ("futex(WAKE)"); a number without a name is "syscall 600". A SymbolTable
// belongs to one question and is shared by all traces and the profile in it,
// so that equal names are equal ids. SyscallSymbols maps the numbers of one
// trace into it.
//
// Ids are dense, in order of first use. There are at most kMaxSymbols; hostile
// traces with more distinct numbers have the rest under "[other]". One thread
// at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/string_table.h"
#include "trace/syscall_operation.h"

namespace culprit::episode {

using Symbol = uint16_t;
inline constexpr size_t kMaxSymbols = 4096;

class SymbolTable {
 public:
  Symbol Intern(std::string_view name);
  std::optional<Symbol> Find(std::string_view name) const;
  std::string_view Name(Symbol symbol) const { return names_.Get(StringId(symbol)); }
  size_t size() const { return names_.size(); }

 private:
  StringTable names_;
};

class SyscallSymbols {
 public:
  SyscallSymbols(std::optional<trace::SyscallAbi> abi, SymbolTable& table)
      : abi_(abi), table_(table) {}
  // `arg0` is that of the call's event: number and operation.
  Symbol Of(int64_t arg0);
  // False: the numbers of this trace could not be given names.
  bool named() const { return abi_.has_value(); }

 private:
  std::string NameOf(int64_t arg0) const;

  std::optional<trace::SyscallAbi> abi_;
  SymbolTable& table_;
  std::unordered_map<int64_t, Symbol> known_;
};

// The call of a symbol: "futex" of "futex(WAKE)".
std::string_view CallOf(std::string_view symbol);

// Calls that never come back (exit) or whose return is another story (execve,
// rt_sigreturn): their durations mean nothing.
bool NeverReturns(std::string_view name);
// Calls in which a server waits to be asked: their time is nobody's delay.
bool WaitsForRequests(std::string_view name);
// Calls that are such waits in some threads (idle workers, idle connections):
// their time follows the length of a recording as much as its work.
bool MayWaitForRequests(std::string_view name);

}  // namespace culprit::episode
