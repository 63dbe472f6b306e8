// SPDX-License-Identifier: Apache-2.0
//
// InjectRuntime: brings the guard runtime into a process that runs already. One
// of its threads is held by ptrace at a wait for events (never within the C
// library's allocator or loader), made to call dlopen(runtime) and
// culprit_guard_start(session), and put back exactly as it was; a wait that the
// stop would have failed is entered anew. On x86-64 the other threads are held
// too while entries are patched. Typically a few milliseconds, for the one thread.
//
// Refused with the reason: no rights, a debugger attached, a seccomp filter,
// another mount namespace, no glibc, another machine's code. CheckAttachable says
// so without touching the process.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace culprit::guard {

struct InjectOptions {
#if defined(__x86_64__)
  bool hold_all_threads = true;
#else
  bool hold_all_threads = false;
#endif
  bool allow_seccomp = false;
  int64_t patience_ms = 10'000;  // with a process that waits for no event
};

struct InjectOutcome {
  uint64_t held_ns = 0;  // how long the thread did not run its own code
  int64_t tid = 0;
  uint64_t start_result = 0;  // of culprit_guard_start: 0 is success
};

// The path of a process's program; that there is none, or that it is somebody else's.
Result<std::string> ProgramOf(int64_t pid);

Status CheckAttachable(int64_t pid, const std::string& runtime, const InjectOptions& options);
Result<InjectOutcome> InjectRuntime(int64_t pid, const std::string& runtime,
                                    const std::string& session, const InjectOptions& options = {});

// For a session that has ended (control wants kRemove): processes of it whose
// threads all sleep on, and so have not seen that, are made to take their guards
// out. Returns how many still have not.
uint64_t ReleaseSleepers(const std::string& session);

// The injected library: beside this program, in ../lib*/culprit, or where
// CULPRIT_GUARD_RUNTIME says.
Result<std::string> FindRuntime();

}  // namespace culprit::guard
