// SPDX-License-Identifier: Apache-2.0
//
// GuardTarget: the program that `culprit guard train`, `run` and `attach` work on:
// a command started with the runtime preloaded, or a process that it was brought
// into. Started ones are ours: signals are passed on, and they end with us.
// GuardSignals holds the signals of this process for the time of a session. One
// thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "guard/injector.h"
#include "guard/proc_file.h"
#include "guard/program_check.h"
#include "guard/session_folder.h"
#include "record/child_process.h"

namespace culprit::cli {

class GuardTarget {
 public:
  // The command begins at once, with the session's name in its environment.
  static Result<GuardTarget> Start(const std::vector<std::string>& command,
                                   const guard::SessionFolder& session);
  // The same in two steps: it begins with Release().
  static Result<GuardTarget> Prepare(const std::vector<std::string>& command,
                                     const guard::SessionFolder& session);
  Status Release();
  static Result<GuardTarget> Attach(int64_t pid, const guard::SessionFolder& session,
                                    const guard::InjectOptions& options);

  int64_t pid() const { return pid_; }
  bool started() const { return child_.has_value(); }
  // Of a started one; nothing while it runs, and for attached ones.
  std::optional<int> ExitCode();
  bool alive();
  // How long an attached process was held.
  uint64_t held_ns() const { return held_ns_; }
  // Asks a started one to end, insists after a while.
  void End(int signal);

 private:
  explicit GuardTarget(int64_t pid) : pid_(pid), life_(pid) {}

  int64_t pid_;
  guard::ProcessLife life_;
  std::optional<record::ChildProcess> child_;
  uint64_t held_ns_ = 0;
};

class GuardSignals {
 public:
  GuardSignals();
  ~GuardSignals();
  GuardSignals(const GuardSignals&) = delete;
  GuardSignals& operator=(const GuardSignals&) = delete;

  // 0: none came yet.
  static int Stop();
};

void SleepMs(int64_t ms);

}  // namespace culprit::cli
