// SPDX-License-Identifier: Apache-2.0
//
// SyscallLog: the system calls of a trace as inference sees them: a sequence
// per thread, by time. With them, where the trace has it, what explains gaps
// (time off the CPU), the instances, and the function entries and exits of each
// thread.
//
// A call that is still open at the trace's end is kOpen, but only as its
// thread's last: an exit that was lost is no giant wait, so a call that lasts
// into the next one has no duration and is counted. Calls that never return
// have none either.
//
// Reading costs one pass over the blocks that hold such events, in parallel;
// 32 bytes a call. Passive data afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "episode/symbol.h"
#include "trace/trace_reader.h"

namespace culprit::episode {

struct Syscall {
  static constexpr uint8_t kOpen = 1 << 0;

  int64_t time_ns = 0;
  int64_t dur_ns = 0;
  trace::StackId stack;
  Symbol symbol = 0;
  uint16_t error = 0;  // 0: did not fail
  uint16_t cpu = trace::Event::kNoCpu;
  uint8_t flags = 0;

  int64_t end_ns() const { return time_ns + dur_ns; }
};

struct Span {
  int64_t time_ns = 0;
  int64_t dur_ns = 0;
  trace::StackId stack;  // of a function call: its leaf is the function

  int64_t end_ns() const { return time_ns + dur_ns; }
};

struct ThreadLog {
  trace::ThreadId thread;
  std::string process;
  std::string role;  // its name, with # for numbers in it
  std::vector<Syscall> calls;
  std::vector<Span> off_cpu;    // waits and times of being ready; by time, disjoint
  std::vector<Span> functions;  // by time, callers before callees
  std::vector<Span> instances;  // by time
};

struct SyscallLog {
  std::vector<ThreadLog> threads;  // those with system calls, in the order of the dictionary
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t syscalls = 0;
  uint64_t with_stack = 0;
  uint64_t function_calls = 0;
  uint64_t other_processes = 0;  // system calls of processes that were not asked for
  bool has_switches = false;
  bool has_durations = false;
  bool named = true;  // numbers have names
  std::string arch;
  Diagnostics diagnostics;
};

struct SyscallLogOptions {
  // Globs over process and thread names; empty: all.
  std::vector<std::string> processes;
  // Of traces that do not say theirs (text of other tools).
  std::string default_arch;
  size_t jobs = 0;
};

// Of one thread: by time, callers before callees.
void OrderCalls(std::vector<Span>& functions);

SyscallLog ReadSyscallLog(const trace::TraceReader& reader, const SyscallLogOptions& options,
                          SymbolTable& symbols);

}  // namespace culprit::episode
