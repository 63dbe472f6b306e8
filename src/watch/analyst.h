// SPDX-License-Identifier: Apache-2.0
//
// Analyst: analyses a watch's corpus again when it has changed, in a process of
// its own at the lowest priority, and keeps the last inbox as a file that is
// always whole. Poll() is called now and then and never waits. One thread at a
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/program.h"
#include "base/result.h"
#include "watch/state_folder.h"

namespace culprit::watch {

class Analyst {
 public:
  // `program` is culprit itself; the folder must outlive this.
  Analyst(const StateFolder& folder, std::string program)
      : folder_(folder), program_(std::move(program)) {}

  // `traces`: how many were taken in so far.
  void Poll(uint64_t traces, uint64_t now_ns);
  uint64_t done() const { return done_; }
  uint64_t failed() const { return failed_; }
  // Waits for the one at work, and does the last that is due.
  void Finish(uint64_t traces);

 private:
  void Start(uint64_t traces, uint64_t now_ns);
  void End(int code);

  const StateFolder& folder_;
  const std::string program_;
  std::optional<RunningProgram> running_;
  uint64_t seen_ = 0;  // traces of the last analysis begun
  uint64_t began_ns_ = 0;
  uint64_t done_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace culprit::watch
