// SPDX-License-Identifier: Apache-2.0
//
// Intake: the way of a slow unit into the corpus. For each one taken it has the
// flight recorder write what it remembers, puts the unit, and the units of the
// time around it, into that trace as instances (scenario: the unit's type), adds
// the trace to the corpus under the type's label, and keeps the corpus within its
// bound. A thread of its own does the work, so whoever reports never waits; at
// most kQueue units wait for it, further ones are counted. A dump that was made
// is in the corpus or still in the dumps' folder with what is known about it
// (DUMP.units, DUMP.labels), whatever fails or whoever is killed; what could not be
// taken in, for want of room say, is tried again every half minute.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "guard/profile.h"
#include "guard/runtime/wire.h"
#include "guard/unit_report.h"
#include "watch/state_folder.h"

namespace culprit::watch {

// A unit that was not slow.
struct PassedUnit {
  int64_t pid = 0;
  guard::wire::Sample sample;
};

struct SlowUnit {
  guard::UnitReport report;
  std::vector<guard::UnitReport> others;  // slow ones around that get no trace of their own
  std::vector<PassedUnit> around;         // sampled ones
};

struct IntakeOptions {
  uint64_t max_corpus_bytes = uint64_t{2} << 30;
  uint64_t settle_ns = 300'000'000;    // after a unit's end, before the dump is asked for
  uint64_t again_ns = 30'000'000'000;  // between tries to take in what was left
};

// Has the recorder write; gives the path of the trace.
using Dump = std::function<Result<std::string>()>;

class Intake {
 public:
  static constexpr size_t kQueue = 16;

  // The folder and the profile must outlive it.
  Intake(const StateFolder& folder, const guard::Profile& profile, IntakeOptions options,
         Dump dump);
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;
  ~Intake();  // finishes what waits

  // False: there is no room in the queue.
  bool Take(SlowUnit unit);

  struct Counts {
    uint64_t taken = 0;   // traces in the corpus
    uint64_t failed = 0;  // to be taken in at once; what a later try brings is taken too
    uint64_t evicted = 0;
    std::string last_error;
    uint64_t done = 0;  // units that were worked on, with or without success
  };
  Counts counts() const;

 private:
  void Work();
  // Nothing: it is time to look for what was left.
  std::optional<SlowUnit> Next();
  Status Bring(const SlowUnit& unit);
  std::string ThresholdText(const std::vector<guard::UnitReport>& seen) const;
  void BringLeft();
  void Count(const Status& brought);

  const StateFolder& folder_;
  const guard::Profile& profile_;
  const IntakeOptions options_;
  const Dump dump_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<SlowUnit> queue_;
  Counts counts_;
  bool stop_ = false;
  bool left_ = false;  // a dump could not be taken in; the worker's alone
  std::thread worker_;
};

// Adds a dump to the corpus, with its units and labels if they are beside it and
// with what was seen of slow units (look_tiles.h), and removes the files.
Status TakeInDump(const StateFolder& folder, const std::string& dump,
                  std::span<const guard::UnitReport> seen = {});

}  // namespace culprit::watch
