// SPDX-License-Identifier: Apache-2.0
//
// WatchProcess: the loop over one running server: learn it if it is not known, put
// guards into its processes, keep a flight recorder beside it, take in what is
// slow, analyse. Returns when the server ends or the watch is over, with every
// guard taken out and everything that waited taken in. An Error leaves the server
// as it was.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "cli/command.h"
#include "cli/watch_settings.h"
#include "record/child_process.h"
#include "watch/state_folder.h"

namespace culprit::cli {

struct Watched {
  const WatchSettings& settings;
  const watch::StateFolder& folder;
  Output& output;
  uint64_t begin_ns = 0;
  record::ChildProcess* child = nullptr;  // the command, if it was started here

  // A signal came, or the time is up.
  bool Over() const;
  bool Alive(int64_t pid) const;
};

// `attempt` counts from 0: each further one learns twice as long, up to eight times.
Status WatchProcess(const Watched& watched, int64_t pid, uint32_t attempt);

}  // namespace culprit::cli
