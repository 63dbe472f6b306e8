// SPDX-License-Identifier: Apache-2.0
//
// WatchCosts: tells what watching costs, part by part, against the budget: half a
// minute after the begin, then every hour, and at the end. The recorder is asked every
// half minute, by a thread of its own, because one that writes a trace answers late. One
// thread.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/watch_recorder.h"
#include "cli/watch_settings.h"

namespace culprit::cli {

class WatchCosts {
 public:
  // recorder: none if there is none. What it is given must outlive it.
  WatchCosts(const WatchSettings& settings, uint64_t guards_ppm, const WatchRecorder* recorder,
             uint64_t now_ns);

  // A line to tell, mostly nothing. Never waits.
  std::string Poll(uint64_t now_ns, uint64_t looks_ppm);
  // The line as of now; waits for the recorder's answer. Of one that ended (its server
  // did) it is the last that was given.
  std::string Last(uint64_t looks_ppm);

 private:
  void Take(const Result<uint64_t>& answer);
  std::string Line(uint64_t looks_ppm) const;

  const WatchSettings& settings_;
  const uint64_t guards_ppm_;
  const WatchRecorder* recorder_;
  uint64_t ask_ns_;   // when next
  uint64_t tell_ns_;  // when next
  std::future<Result<uint64_t>> answer_;
  std::optional<uint64_t> recorder_ppm_;
};

}  // namespace culprit::cli
