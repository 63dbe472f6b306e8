// SPDX-License-Identifier: Apache-2.0
//
// AddCalls: a recording with the function calls of a training session with times put
// into it: a copy with call events (from entry to exit, the callers as the stack) of
// every function in which system calls were made. Such a trace shows whose calls they
// are, as one with stacks does, of programs whose stacks cannot be walked as well.
//
// System calls of the injected runtime, to write its logs and when it came and went,
// are left out, and so are those of the loader before it. Both are
// of one machine and clock; threads are matched by id and time. Memory is the calls
// that are kept, 16 bytes a system call.
#pragma once

#include <cstdint>
#include <string>

#include "base/diagnostics.h"
#include "base/file.h"
#include "base/result.h"
#include "trace/trace_reader.h"

namespace culprit::guard {

struct AddedCalls {
  uint64_t entries = 0;   // of functions, in the logs
  uint64_t calls = 0;     // of functions, that were added
  uint64_t syscalls = 0;  // in the copy
  uint64_t owned = 0;     // of them, inside a function
  uint64_t own = 0;       // of the runtime, left out
};

Result<AddedCalls> AddCalls(const std::string& session_folder, const trace::TraceReader& recording,
                            const std::string& path, Overwrite overwrite, Diagnostics& diagnostics);

}  // namespace culprit::guard
