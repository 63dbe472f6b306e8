// SPDX-License-Identifier: Apache-2.0
//
// The planted truth of a simulated corpus (docs/synth.md): truth.json in its
// folder, read back so that results can be shown beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace culprit::cli {

struct PlantedBug {
  std::string name;
  std::string kind;
  std::string event_kind;            // "wait", "running", "syscall"
  std::vector<std::string> pattern;  // caller first
  int64_t cost_ns = 0;
  uint64_t instances = 0;
  bool noise = false;

  // Is the pattern a subsequence of these frames (caller first)?
  bool Matches(const std::vector<std::string>& frames) const;
};

// Empty when the folder has no truth.json.
Result<std::vector<PlantedBug>> ReadTruth(const std::string& corpus_folder);

}  // namespace culprit::cli
