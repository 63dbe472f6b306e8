// SPDX-License-Identifier: Apache-2.0
//
// WatchRecorder: the flight recorder of a watched server, a process of its own
// whose kernel programs go with it. It records the server's whole family, is
// started again when it ends though the server lives, and ends when the watch does,
// even if that is killed. Poll() never waits. Dump() and CostPpm() wait for an answer,
// and may be called from other threads than the rest.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/program.h"
#include "base/result.h"
#include "cli/watch_settings.h"
#include "watch/state_folder.h"

namespace culprit::cli {

class WatchRecorder {
 public:
  // The settings and the folder must outlive it. budget_ppm: of the server's CPU time.
  WatchRecorder(const WatchSettings& settings, uint64_t budget_ppm,
                const watch::StateFolder& folder, int64_t server)
      : settings_(settings), budget_ppm_(budget_ppm), folder_(folder), server_(server) {}
  WatchRecorder(const WatchRecorder&) = delete;
  WatchRecorder& operator=(const WatchRecorder&) = delete;
  ~WatchRecorder();

  // Starts it where it does not run; gives what there is to tell, mostly nothing.
  std::string Poll(uint64_t now_ns);
  // Has it write what it remembers; the path of the trace.
  Result<std::string> Dump() const;
  // What it has cost so far, in the budget's terms.
  Result<uint64_t> CostPpm() const;

 private:
  Status Start();
  // The answer without its "ok ".
  Result<std::string> Ask(const std::string& request) const;

  const WatchSettings& settings_;
  const uint64_t budget_ppm_;
  const watch::StateFolder& folder_;
  const int64_t server_;
  std::optional<RunningProgram> program_;
  std::atomic<pid_t> pid_ = 0;
  std::vector<int64_t> family_;  // of the last start
  uint64_t next_start_ns_ = 0;
  uint64_t starts_ = 0;
};

}  // namespace culprit::cli
