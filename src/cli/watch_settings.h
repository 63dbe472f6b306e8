// SPDX-License-Identifier: Apache-2.0
//
// WatchSettings: what the flags of `culprit watch` say, checked. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace culprit::cli {

struct WatchSettings {
  std::vector<std::string> command;
  int64_t pid = 0;
  std::string comm;
  std::string state;
  std::string culprit;  // this program
  uint64_t train_ns = 0;
  uint64_t flight_ns = 0;
  uint64_t for_ns = 0;
  uint64_t max_bytes = 0;
  uint64_t sample_every = 0;
  // The budget, and of it what guards and the watch's own looks at them may take.
  uint64_t budget_ppm = 0;
  uint64_t guard_ppm = 0;
  uint64_t look_ppm = 0;
  bool retrain = false;
  bool record = true;

  // What is left for the recorder beside guards that are expected to cost this much; a
  // quarter at least, without which it sees nothing.
  uint64_t RecordPpm(uint64_t guards_ppm) const {
    const uint64_t taken = look_ppm + std::max(guard_ppm, guards_ppm);
    return std::max(budget_ppm / 4, budget_ppm > taken ? budget_ppm - taken : 0);
  }
};

}  // namespace culprit::cli
