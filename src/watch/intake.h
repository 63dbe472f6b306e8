// SPDX-License-Identifier: Apache-2.0
//
// Intake: the way of a slow unit into the corpus. For each one taken it has the
// flight recorder write what it remembers, puts the unit, and the units of the
// time around it, into that trace as instances (scenario: the unit's type), adds
// the trace to the corpus under the type's label, and keeps the corpus within its
// bound. A thread of its own does the work, so whoever reports never waits; at
// most kQueue units wait for it, further ones are counted. A dump that was made
// is in the corpus or still in the dumps' folder, whatever fails.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
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
  std::vector<PassedUnit> around;
};

struct IntakeOptions {
  uint64_t max_corpus_bytes = uint64_t{2} << 30;
  uint64_t settle_ns = 300'000'000;  // after a unit's end, before the dump is asked for
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
    uint64_t taken = 0;  // traces in the corpus
    uint64_t failed = 0;
    uint64_t evicted = 0;
    std::string last_error;
  };
  Counts counts() const;

 private:
  void Work();
  Status Bring(const SlowUnit& unit);

  const StateFolder& folder_;
  const guard::Profile& profile_;
  const IntakeOptions options_;
  const Dump dump_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<SlowUnit> queue_;
  Counts counts_;
  bool stop_ = false;
  std::thread worker_;
};

// Adds a trace to the corpus and removes the file.
Status TakeIn(const StateFolder& folder, const std::string& path, const std::string& name,
              const std::string& type);

}  // namespace culprit::watch
