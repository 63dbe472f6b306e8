// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: the command of `culprit record -- COMMAND`, made but not yet
// running: it waits before its exec until Release(), so that the recording sees
// all of it. If the recorder dies before that, the command never starts; after,
// it goes on by itself. Its exit code is kept. One thread at a time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace culprit::record {

class ChildProcess {
 public:
  static Result<ChildProcess> Prepare(const std::vector<std::string>& command);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  // An Error if the command could not be executed.
  Status Release();
  // As a shell has it: 128 + N after signal N. Nothing while it runs.
  std::optional<int> ExitCode();

 private:
  ChildProcess(pid_t pid, int go, int failure, std::string name)
      : pid_(pid), go_(go), failure_(failure), name_(std::move(name)) {}

  pid_t pid_;
  int go_;       // written to once to let it go
  int failure_;  // errno of exec comes from here, or its end
  std::string name_;
  std::optional<int> exit_code_;
};

}  // namespace culprit::record
