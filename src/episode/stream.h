// SPDX-License-Identifier: Apache-2.0
//
// Stream: inference while a program runs. A LoadWindow holds the load of the last
// minute or so: sums by symbol, a slice at a time, so memory depends on the number
// of slices and kinds of calls, not on how many calls there are. RankStream holds
// such a load against the normal ones, by the same rule as Infer's excess method
// (load.h, ownership.h). What needs single calls (units, episodes, active times)
// has no place here. One thread at a time; ranking is a pure function.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "episode/load.h"
#include "episode/ownership.h"
#include "episode/profile.h"

namespace culprit::episode {

// Calls of one symbol that returned, all with the same error.
struct CountedCall {
  Symbol symbol = 0;
  uint16_t error = 0;  // 0: did not fail
  uint64_t calls = 0;
  int64_t dur_ns = 0;
};

class LoadWindow {
 public:
  explicit LoadWindow(int64_t window_ns) : window_ns_(window_ns) {}

  // What happened in [from_ns, to_ns), which begins where the last one ended; so
  // much of that time calls were counted. Slices that end before the window are
  // forgotten.
  void Add(int64_t from_ns, int64_t to_ns, int64_t counted_ns, std::vector<CountedCall> calls);
  // The load of the window, with calls that go on added to its time.
  Load Sum(const std::vector<CountedCall>& open = {}) const;
  int64_t begin_ns() const { return slices_.empty() ? 0 : slices_.front().from_ns; }
  int64_t end_ns() const { return slices_.empty() ? 0 : slices_.back().to_ns; }
  size_t slices() const { return slices_.size(); }

 private:
  struct Slice {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    int64_t counted_ns = 0;
    std::vector<CountedCall> calls;
  };

  int64_t window_ns_;
  std::deque<Slice> slices_;
};

struct StreamRow {
  std::string function;                // label, or kNotInProfile
  std::vector<std::string> co_owners;  // labels of those that cannot be told from it
  double score = 0;                    // calls, or ns
  double own = 0;
  std::vector<Symbol> symbols;
};

struct StreamRanking {
  std::vector<StreamRow> functions;  // best first
  std::vector<StreamRow> time;       // the weaker list
  uint64_t left_out = 0;
  Comparison comparison;
  std::vector<std::string> warnings;

  // Whether the same are named in the same order.
  bool SameNames(const StreamRanking& other) const;
};

StreamRanking RankStream(const Profile& profile, const Load& load, std::span<const Load> normals,
                         const CompareOptions& compare = {},
                         const OwnershipOptions& ownership = {});

}  // namespace culprit::episode
