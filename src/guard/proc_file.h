// SPDX-License-Identifier: Apache-2.0
//
// What /proc tells of another process, and its memory. Files of /proc have no
// size, so they are read to their end. Processes end at any time: every answer may
// be missing, and none is trusted. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::guard {

// "/proc/PID/NAME".
std::string ProcPath(int64_t pid, std::string_view name);
Result<std::string> ReadProcFile(const std::string& path);
// A field of /proc/PID/status ("Seccomp"), without its name; empty: absent.
std::string ProcStatusField(int64_t pid, std::string_view field);
// False: it ended, also if its parent has not asked for its exit code yet (a
// zombie). Some 20 us.
bool IsRunning(int64_t pid);
// The same for who asks again and again: a zombie is found out at every 16th time.
class ProcessLife {
 public:
  explicit ProcessLife(int64_t pid) : pid_(pid) {}
  bool alive() const;

 private:
  int64_t pid_;
  mutable uint32_t asked_ = 0;
  mutable bool zombie_ = false;
};
// Ids of the threads, ascending; empty: it ended.
std::vector<int64_t> ThreadsOf(int64_t pid);
// The target of a symbolic link such as exe; empty: it cannot be read.
std::string ProcLink(int64_t pid, std::string_view name);

// How many bytes could be read.
size_t ReadRemoteMemory(int64_t pid, uint64_t address, void* to, size_t bytes);
bool WriteRemoteMemory(int64_t pid, uint64_t address, const void* from, size_t bytes);

}  // namespace culprit::guard
