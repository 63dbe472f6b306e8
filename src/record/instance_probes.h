// SPDX-License-Identifier: Apache-2.0
//
// Instances by what programs tell of themselves: a pair of probes, the one where
// an operation begins and the one where it ends on the same thread. As users
// write them:
//
//   [FILE:]PROVIDER:BEGIN..[PROVIDER:]END[=NAME]   USDT probes
//   [GROUP:]BEGIN..[GROUP:]END[=NAME]              trace events; GROUP is user_events
//
// Without a NAME the scenario is BEGIN without "__start", "_begin" and the like.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/perf_ring.h"

namespace culprit::record {

struct InstanceProbe {
  bool is_usdt = true;
  std::string file;   // of USDT probes; empty: that of the command or of the processes
  std::string group;  // or provider
  std::string begin;
  std::string end_group;
  std::string end;
  std::string scenario;
};
Result<InstanceProbe> ParseUsdtProbe(std::string_view text);
Result<InstanceProbe> ParseEventProbe(std::string_view text);

// Which probe was met: 2 * its index, + 1 where an operation ends.
using ProbeCookie = uint64_t;

// Where in which file a uprobe goes.
struct ProbeSite {
  std::string path;
  uint64_t offset = 0;
  uint64_t semaphore_offset = 0;  // 0: none
  ProbeCookie cookie = 0;
};
// The sites of all USDT probes. `files` are looked into where a probe names none;
// an Error if one is nowhere, with what there is.
Result<std::vector<ProbeSite>> FindProbeSites(const std::vector<InstanceProbe>& probes,
                                              const std::vector<std::string>& files);

// A probe was met.
struct ProbeHit {
  int64_t time_ns = 0;
  int64_t pid = -1;
  int64_t tid = -1;
  ProbeCookie cookie = 0;
};

// The trace events among the probes, read by perf rings: user_events have no
// other way. One thread at a time.
class TraceEventProbes {
 public:
  // Those that are no trace events are ignored.
  static Result<TraceEventProbes> Open(const std::vector<InstanceProbe>& probes);
  // What has come since the last call, by time.
  std::vector<ProbeHit> Take();

 private:
  Status Watch(const std::string& group, const std::string& name, ProbeCookie cookie);

  struct Watched {
    PerfRing ring;
    ProbeCookie cookie;
  };
  std::vector<Watched> watched_;
};

}  // namespace culprit::record
