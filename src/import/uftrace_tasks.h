// SPDX-License-Identifier: Apache-2.0
//
// UftraceTasks: which tasks a uftrace recording has and which program each ran
// when, from its task.txt:
//
//   SESS timestamp=12.345 pid=10 sid=c94d exename="/bin/app"    a program began
//   TASK timestamp=12.346 tid=11 pid=10                         a thread began
//   FORK timestamp=12.347 pid=12 ppid=10                        a process began
//   DLOP timestamp=12.348 tid=10 sid=c94d base=ffff90 libname="/lib/x.so"
//
// A process without a program of its own runs its parent's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"

namespace culprit::import_ {

struct UftraceProgram {
  int64_t time_ns = 0;
  int64_t pid = 0;
  std::string sid;
  std::string path;
};

struct UftraceBirth {
  int64_t time_ns = 0;
  int64_t tid = 0;
  int64_t pid = 0;
  int64_t parent = 0;  // a process
};

// What a task runs, and how long that is sure.
struct UftraceRun {
  const UftraceProgram* program = nullptr;  // nullptr: not known
  int64_t until_ns = INT64_MAX;
};

struct UftraceLibrary {
  std::string sid;
  uint64_t base = 0;
  std::string path;
};

class UftraceTasks {
 public:
  UftraceTasks() = default;
  UftraceTasks(std::string_view text, Diagnostics& diagnostics);

  // In order of time.
  const std::vector<UftraceProgram>& programs() const { return programs_; }
  const std::vector<UftraceBirth>& births() const { return births_; }
  const std::vector<UftraceLibrary>& libraries() const { return libraries_; }

  int64_t PidOf(int64_t tid) const;
  // What a task ran at a time. Linear in the number of programs.
  UftraceRun RunOf(int64_t tid, int64_t time_ns) const;

 private:
  bool Line(std::string_view line);

  std::vector<UftraceProgram> programs_;
  std::vector<UftraceBirth> births_;
  std::vector<UftraceLibrary> libraries_;
  std::unordered_map<int64_t, int64_t> pid_of_;
  std::unordered_map<int64_t, int64_t> parent_of_;  // of processes
};

}  // namespace culprit::import_
