// SPDX-License-Identifier: Apache-2.0
//
// Other programs, started without a shell: words in, exit code and output out.
// A child leads a process group of its own, so that an interrupt at the terminal
// reaches only culprit, which then ends the child and all that it started. Its
// standard input is empty. The exit code is as a shell has it: 128 + N after
// signal N. Safe from several threads.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace culprit {

inline constexpr int kKilledCode = 128 + 9;

struct ProgramOutput {
  int code = 0;
  std::string out;
  std::string err;
};

// Runs to its end, or kills it after `limit`. At most 64 MB of output are kept.
// An Error if it cannot be started.
Result<ProgramOutput> RunProgram(const std::vector<std::string>& words,
                                 std::chrono::milliseconds limit);

// A program at work in the background, its output appended to a file. Destroyed
// while it runs, it is killed with its group.
class RunningProgram {
 public:
  static Result<RunningProgram> Start(const std::vector<std::string>& words,
                                      const std::string& log_path);
  RunningProgram(RunningProgram&& other) noexcept;
  RunningProgram& operator=(RunningProgram&& other) noexcept;
  ~RunningProgram();

  pid_t pid() const { return pid_; }
  // Its exit code, or nothing while it runs.
  std::optional<int> Poll();
  // SIGTERM, or SIGKILL, to its group.
  void Terminate() const;
  void Kill() const;

 private:
  explicit RunningProgram(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;
  std::optional<int> code_;
};

// The path of the program that is running now.
Result<std::string> OwnProgram();

}  // namespace culprit
