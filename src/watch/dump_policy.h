// SPDX-License-Identifier: Apache-2.0
//
// DumpPolicy: which slow units get a trace of their own. The first few of a type
// do, then ever fewer: after `first` dumps the pause of that type doubles with
// each, up to `longest_pause_ns`. Between any two dumps lies `gap_ns`, so that a
// storm of slow units is a handful of traces and a count; only a unit that is far
// worse than the last one dumped need not wait for it. What got none is
// counted by type. Pure state, no clock of its own; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace culprit::watch {

struct DumpPolicyOptions {
  uint32_t first = 3;
  uint64_t gap_ns = 5'000'000'000;
  uint64_t worse_gap_ns = 1'000'000'000;  // for one `worse` times as bad as the last
  uint64_t worse = 8;
  uint64_t pause_ns = 60'000'000'000;  // of a type, after the first ones
  uint64_t longest_pause_ns = 3'600'000'000'000;
};

class DumpPolicy {
 public:
  explicit DumpPolicy(const DumpPolicyOptions& options = {}) : options_(options) {}

  // True: make one now, and it is counted as made. `excess`: how many times its
  // threshold the unit took.
  bool Wants(const std::string& type, uint64_t now_ns, uint64_t excess = 1);

  struct Count {
    uint64_t seen = 0;
    uint64_t dumped = 0;
  };
  const std::map<std::string, Count>& counts() const { return counts_; }

 private:
  uint64_t PauseOf(uint64_t dumped) const;

  DumpPolicyOptions options_;
  std::map<std::string, Count> counts_;
  std::map<std::string, uint64_t> last_ns_;
  uint64_t any_last_ns_ = 0;
  uint64_t any_last_excess_ = 0;
  bool any_ = false;
};

}  // namespace culprit::watch
