// SPDX-License-Identifier: Apache-2.0
//
// StopSignals: while this object lives, SIGINT, SIGTERM and SIGHUP do not end the
// program but are asked about, for commands that go on until somebody stops them.
// One at a time.
#pragma once

#include <csignal>

namespace culprit::cli {

class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  // Has one come?
  bool asked() const;

 private:
  struct sigaction old_[3] = {};
};

}  // namespace culprit::cli
