// SPDX-License-Identifier: Apache-2.0
//
// WatchSettings: what the flags of `culprit watch` say, checked. Plain data.
#pragma once

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
  uint64_t guard_ppm = 0;  // of the budget
  uint64_t record_ppm = 0;
  bool retrain = false;
  bool record = true;
};

}  // namespace culprit::cli
