// SPDX-License-Identifier: Apache-2.0
//
// LiveView: the last seconds of a machine, as a trace that can be looked at again
// and again while recording goes on: `culprit top`. By the kernel programs it is
// one recording with a sliding window; what still goes on (a wait that has not
// ended) is in it as far as it has come. By perf events every look is a short
// recording of its own.
//
// Bounded: the window, max_bytes of events, and a dictionary that is begun anew
// when it has grown too large. The budget is about what recording costs; what
// looking costs is told apart. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "record/recorder.h"
#include "record/target.h"
#include "trace/trace.h"

namespace culprit::record {

struct LiveOptions {
  RecordTarget target = {};
  int64_t window_ns = 10'000'000'000;
  int64_t interval_ns = 2'000'000'000;  // how long one of perf's recordings is
  uint64_t max_bytes = uint64_t{96} << 20;
  int64_t sample_period_ns = 1'000'000;
  double budget = 0.03;
  std::optional<Tier> tier = {};  // nothing: the best there is
};

struct LiveCost {
  double share = 0;    // of recording, in the budget's terms, lately
  double look_ns = 0;  // CPU time of looking, a second
  std::string level;   // what the governor leaves out; empty: nothing
  uint64_t lost = 0;   // records, so far
};

class LiveView {
 public:
  virtual ~LiveView() = default;
  // The best way there is, or the one asked for.
  static Result<std::unique_ptr<LiveView>> Start(const LiveOptions& options);

  virtual Tier tier() const = 0;
  // Lets recording go on for so long; returns early, and often enough for keys to
  // be asked, when `stop` says so.
  virtual Status Run(int64_t dur_ns, const std::function<bool()>& stop) = 0;
  // The window as of now; valid until the next look.
  virtual Result<const trace::Trace*> Look() = 0;
  virtual LiveCost cost() const = 0;
};

}  // namespace culprit::record
