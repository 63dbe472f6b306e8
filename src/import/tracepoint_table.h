// SPDX-License-Identifier: Apache-2.0
//
// What the decoder of tracepoints knows by name: which events it reads and
// which of their fields, in the order its code asks for them; the kernel's
// names for interrupts, block operations and its own threads. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "import/tracepoint_facts.h"
#include "trace/syscall_operation.h"

namespace culprit::import_ {

struct TracepointRow {
  std::string_view system;
  std::string_view name;
  TracepointFacts::Kind kind = TracepointFacts::Kind::kUnused;
  std::array<std::string_view, 5> fields = {};
};

// The row of an event; kUnused if it is of no use. An empty system matches any.
TracepointRow RowOf(std::string_view system, std::string_view name);

// Of the event of a single system call that is many in one (sys_enter_futex): the
// field that tells which. nullptr: there is none.
const EventField* OperationField(const EventFormat& format);
// arg0 of the call that a record enters (trace/syscall_operation.h). `arguments`
// is the array of all of them or the one of OperationField; it may be nullptr.
int64_t EnteredCall(const RecordView& view, const EventField* number, const EventField* arguments,
                    std::optional<trace::SyscallAbi> abi);

// From rwbs, "WS" or "FWFS": 0 read, 1 write, 2 flush, 3 discard.
int64_t BlockOperation(std::string_view rwbs);
// "disk", "net" or "timer" where the name of an interrupt's handler tells,
// else that name.
std::string_view DeviceOfIrq(std::string_view handler);
// The same by the number of a softirq; empty: none of these.
std::string_view DeviceOfSoftirq(int64_t vector);
// Threads that only the kernel has: "kworker/0:1", "ksoftirqd/3".
bool IsKernelThreadName(std::string_view name);
// "/usr/bin/sleep" -> "sleep", as the kernel names a thread after exec.
std::string_view ShortName(std::string_view path);

}  // namespace culprit::import_
