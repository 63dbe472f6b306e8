// SPDX-License-Identifier: Apache-2.0
//
// SyscallTrace: a trace of system calls written down call by call, for tests.
// Names are those of arm64, with operations as in symbols; threads are made on first mention.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/check.h"
#include "episode/syscall_log.h"
#include "trace/small_trace.h"

namespace culprit::episode {

class SyscallTrace {
 public:
  explicit SyscallTrace(int64_t end_ns = 1'000'000'000) : small(0, end_ns) {
    small.trace.metadata.arch = "aarch64";
    for (int64_t number = 0; number < 500; ++number) {
      const std::string_view name = trace::SyscallName(number, trace::SyscallAbi::kArm64);
      if (!name.empty()) numbers_.emplace(name, number);
    }
  }

  trace::Event& Call(const std::string& thread, const std::string& name, int64_t time_ns,
                     int64_t dur_ns, std::string_view stack = {}) {
    const std::string call(CallOf(name));
    std::optional<uint32_t> operation;
    if (call.size() < name.size()) {
      operation =
          trace::ParseOperation(call, name.substr(call.size() + 1, name.size() - call.size() - 2));
      CULPRIT_CHECK(operation);
    }
    CULPRIT_CHECK(numbers_.contains(call));
    trace::Event& event =
        small.Add(trace::EventKind::kSyscall, thread, time_ns, time_ns + dur_ns, stack);
    event.arg0 = trace::PackCall(numbers_.at(call), operation);
    return event;
  }

  SyscallLog Log(SymbolTable& symbols, const SyscallLogOptions& options = {}) const {
    return ReadSyscallLog(small.Reader(), options, symbols);
  }

  // The calls of a thread of the log, as "read write".
  static std::string Names(const SyscallLog& log, const SymbolTable& symbols, size_t thread) {
    std::string names;
    for (const Syscall& call : log.threads[thread].calls) {
      names += (names.empty() ? "" : " ") + std::string(symbols.Name(call.symbol));
    }
    return names;
  }

  trace::SmallTrace small;

 private:
  std::map<std::string, int64_t, std::less<>> numbers_;
};

}  // namespace culprit::episode
