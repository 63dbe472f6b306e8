// SPDX-License-Identifier: Apache-2.0
//
// Which CTF events mean something here, by the names that tracers gave them:
// LTTng's kernel tracer from 2.0 on (whose names changed twice), `perf data
// convert --to-ctf`, LTTng's user-space tracer. For each kind, the fields that
// CtfFacts asks for and the slot each comes in. Constant data and one lookup.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "import/ctf_compiler.h"

namespace culprit::import_ {

enum class CtfEventKind : uint8_t {
  kUnused,
  kSwitch,
  kWaking,
  kWakeup,
  kFork,
  kExit,
  kExec,
  kEnter,     // one system call's own event; the name says which
  kLeave,     // the same; without a name: of whichever is open
  kRawEnter,  // of any, with its number
  kRawLeave,
  kIssue,
  kComplete,
  kIrqEntry,
  kIrqExit,
  kVectorEntry,  // x86's own interrupts
  kVectorExit,
  kSoftirqRaise,
  kSoftirqEntry,
  kSoftirqExit,
  kTimerEntry,
  kTimerExit,
  kProcessState,
  kSample,
  kFunctionEntry,
  kFunctionExit,
  kModule,
  kBuildId,
  kSliceBegin,  // a pair of a program's own events
  kSliceEnd,
};

struct CtfEventMeaning {
  CtfEventKind kind = CtfEventKind::kUnused;
  std::string_view name = {};           // of the system call, sampler or vector
  std::span<const CtfWant> wants = {};  // of the payload
};

CtfEventMeaning MeaningOf(std::string_view event_name);

// "app:request_begin" and "app:request_end" are the slice "app:request", if both
// are there. The name of the slice with kSliceBegin or kSliceEnd; else kUnused.
CtfEventMeaning SliceOf(std::string_view event_name);

// Slots of payload fields, by kind.
enum CtfSlot : uint16_t {
  kSlotTid = 0,  // switch: of the previous thread; fork: of the child
  kSlotNextTid = 1,
  kSlotState = 2,
  kSlotName = 3,  // switch: of the previous thread; modules: the path
  kSlotNextName = 4,
  kSlotPid = 1,
  kSlotParent = 2,
  kSlotType = 4,
  kSlotNumber = 0,
  kSlotResult = 1,
  kSlotDevice = 1,
  kSlotSector = 2,
  kSlotSectors = 4,
  kSlotBytes = 5,
  kSlotFlags = 6,
  kSlotAddress = 0,
  kSlotSize = 1,
  kSlotPeriod = 1,
  // perf puts these into the payload of every event.
  kSlotPerfChain = 7,
  kSlotPerfTid = 8,
  kSlotPerfPid = 9,
  kSlotPerfCpu = 10,
  kSlotPerfFlags = 11,
  // Contexts, LTTng's word for fields that any event may carry.
  kSlotContextTid = 12,
  kSlotContextPid = 13,
  kSlotContextVtid = 14,
  kSlotContextVpid = 15,
  kSlotContextName = 16,
  kSlotKernelStack = 17,
  kSlotUserStack = 18,
};

std::span<const CtfWant> CtfContextWants();

}  // namespace culprit::import_
