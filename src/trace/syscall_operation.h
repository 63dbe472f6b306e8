// SPDX-License-Identifier: Apache-2.0
//
// Operations: some system calls are many in one, told apart by an argument:
// futex waits or wakes, fcntl sets flags or locks. Where a recording has that
// argument, the event of the call keeps it: its arg0 is the call's number in the
// low 32 bits and, above them, the operation plus one; 0 there: not known, or the
// call has none. So a number alone is what it always was. In a file the two have
// columns of their own (docs/format.md).
//
// An operation is the argument without what only modifies it (futex's
// FUTEX_PRIVATE_FLAG). Constant tables; any thread; a lookup is a short search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trace/event.h"
#include "trace/syscall_table.h"

namespace culprit::trace {

// arg0 of a call.
constexpr int64_t PackCall(int64_t number, std::optional<uint32_t> operation = {}) {
  if (!operation || *operation == UINT32_MAX || number != static_cast<int32_t>(number)) {
    return number;
  }
  return static_cast<int64_t>(static_cast<uint64_t>(number) + ((uint64_t{*operation} + 1) << 32));
}
constexpr int64_t CallNumber(int64_t arg0) { return static_cast<int32_t>(arg0); }
// What stands above the number: the operation plus one, or 0.
constexpr uint32_t CallDetail(int64_t arg0) {
  return static_cast<uint32_t>(
      (static_cast<uint64_t>(arg0) - static_cast<uint64_t>(CallNumber(arg0))) >> 32);
}
constexpr std::optional<uint32_t> CallOperation(int64_t arg0) {
  const uint32_t detail = CallDetail(arg0);
  if (detail == 0) return {};
  return detail - 1;
}

inline constexpr size_t kCallArguments = 6;

// Which argument of the call, from 0, holds its operation; nothing: it has none.
std::optional<size_t> OperationArgument(std::string_view call);
// The operation, of the value of that argument.
uint32_t OperationOf(std::string_view call, uint64_t argument);
// "WAIT" of futex, "F_SETFL" of fcntl; a number where there is no name.
std::string OperationName(std::string_view call, uint32_t operation);
// From what strace writes for the argument: "FUTEX_WAIT_PRIVATE", "TCGETS",
// "0x5421", "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME".
std::optional<uint32_t> ParseOperation(std::string_view call, std::string_view text);

// The same with numbers: arg0 of a call with these arguments. `argument(i)` is
// asked for at most one of them.
template <class Argument>
int64_t PackCallWith(int64_t number, SyscallAbi abi, Argument argument) {
  const std::string_view call = SyscallName(number, abi);
  const std::optional<size_t> index = OperationArgument(call);
  if (!index) return number;
  return PackCall(number, OperationOf(call, argument(*index)));
}

}  // namespace culprit::trace
