// SPDX-License-Identifier: Apache-2.0
//
// `culprit infer --live`: inference over the system calls that happen now. The
// loop that looks, and a look as text or as a line of JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/command.h"
#include "episode/profile.h"
#include "episode/stream.h"
#include "record/call_counter.h"

namespace culprit::cli {

// What is known at one look.
struct LiveInference {
  int64_t wall_ns = 0;    // Unix time of the look
  int64_t window_ns = 0;  // so far; at most what was asked for
  std::string target = {};
  std::string against = {};
  episode::Load load = {};
  episode::StreamRanking ranking = {};
  record::CallCounterCost cost = {};
};

struct LiveTextOptions {
  size_t top = 10;
  size_t width = 100;
  bool color = false;
};

std::string LiveInferText(const LiveInference& look, const episode::SymbolTable& symbols,
                          const LiveTextOptions& options);
// One line.
std::string LiveInferJson(const LiveInference& look, const episode::SymbolTable& symbols);

Result<int> RunInferLive(const Arguments& arguments, Output& output);

}  // namespace culprit::cli
