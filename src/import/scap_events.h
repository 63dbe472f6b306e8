// SPDX-License-Identifier: Apache-2.0
//
// What the types of sysdig's events mean. A type is 2n for the entry and 2n + 1
// for the exit of the n-th row of the recorder's event table, which only ever
// grows: a call whose parameters changed got a new row. Calls without a row of
// their own are recorded as generic events with the machine's own number, and
// with the recorder's; a file does not say which machine it is from, so the
// pairs of both numbers, or names that only one machine has, must tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/syscall_table.h"

namespace culprit::import_ {

enum class ScapMeaning : uint8_t {
  kUnknown,    // a type beyond the table
  kUnused,     // nothing that the model has a place for
  kSyscall,    // `name` is the call
  kGeneric,    // a call by number
  kExec,       // a call too
  kFork,       // a call too; its exit in the child tells of a birth
  kSwitch,     // parameter 0: who comes
  kExit,       // of a thread
  kContainer,  // parameter 0: JSON
  kDrop,       // the recorder left out events here
};

struct ScapEventRow {
  ScapMeaning meaning = ScapMeaning::kUnknown;
  std::string_view name;
};
ScapEventRow ScapEventOf(uint16_t type);

// Of the parameters of exec and fork exits, in all versions that have them.
enum ScapProcessParameter : size_t {
  kScapResult = 0,
  kScapProgram = 1,
  kScapArguments = 2,
  kScapTid = 3,
  kScapPid = 4,
  kScapParent = 5,
  kScapName = 13,
  kScapCgroups = 14,
};
// How many parameters an exit must have for the last two to be what they are
// called: before, others stood in their place.
struct ScapParameterCounts {
  size_t with_name = 0;
  size_t with_cgroups = 0;
};
inline constexpr ScapParameterCounts kScapExecCounts = {14, 16};
inline constexpr ScapParameterCounts kScapForkCounts = {17, 20};

// The number of a call that the recorder names; trace::kNoSyscall: not on that machine.
// The recorder has one name for some pairs of calls (pipe, pipe2).
int64_t ScapSyscallNumber(std::string_view name, trace::SyscallAbi arch);

// The machine on which the recorder's number and the machine's are of the same
// call, for the calls that most programs make.
std::optional<trace::SyscallAbi> ScapArchOf(int64_t recorder_number, int64_t machine_number);
// The same for a call that only one machine has.
std::optional<trace::SyscallAbi> ScapArchOf(std::string_view name);

}  // namespace culprit::import_
