// SPDX-License-Identifier: Apache-2.0
//
// What a recording says about the machine it was made on, and what the recorder
// must know of its kernel before it begins. Pure reads of /proc and uname.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/bpf_engine.h"
#include "trace/syscall_table.h"
#include "trace/trace.h"

namespace culprit::record {

// Machine, OS, kernel, architecture, CPUs.
void FillMachine(trace::Metadata& metadata);

// What system calls are numbered by here; nothing: not known.
std::optional<trace::SyscallAbi> OwnSyscallAbi();

// Nanoseconds of CLOCK_MONOTONIC and of the wall clock.
int64_t MonotonicNs();
int64_t WallNs();
// Less than a second.
void SleepNs(int64_t dur_ns);
// CPU time of this process, all threads; of this thread.
int64_t OwnCpuNs();
int64_t ThreadCpuNs();

// Where interrupts enter the kernel, from the text of /proc/kallsyms: at most
// `max_ranges` of adjoining functions, the longest kept.
std::vector<AddressRange> InterruptEntries(std::string_view kallsyms, size_t max_ranges);

}  // namespace culprit::record
