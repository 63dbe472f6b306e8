// SPDX-License-Identifier: Apache-2.0
//
// What `culprit infer` found out, gathered once and shown as text or JSON.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "episode/inference.h"

namespace culprit::cli {

struct InferFacts {
  std::string path;
  std::string profile_path;
  std::vector<std::string> against;  // empty: the profile's totals
  std::vector<std::string> processes;
  episode::Profile profile;  // its symbols name everything
  episode::SyscallLog log;
  std::vector<std::string> thread_labels;  // by thread of the log
  episode::Inference inference;
  std::vector<std::string> warnings;
  Diagnostics diagnostics;

  std::string SymbolText(episode::Symbol symbol) const {
    return std::string(profile.symbols.Name(symbol));
  }
  // "accept4 … futex": what may lie between is left open.
  std::string EpisodeText(const episode::Episode& episode) const;
};

struct InferQuestion {
  std::string path;                         // a trace
  std::string profile;                      // a file
  std::vector<std::string> against = {};    // normal traces; empty: the profile's totals
  std::vector<std::string> processes = {};  // empty: those of the profile
  std::vector<std::string> modules = {};    // whose functions own calls, in the stacks' verdict
  bool unnamed = false;
  episode::Method method = episode::Method::kExcess;
  episode::UnitSource units = episode::UnitSource::kAuto;
  size_t jobs = 0;
};

Result<InferFacts> GatherInference(const InferQuestion& question);

struct InferTextOptions {
  size_t top = 10;
  size_t width = 100;
  bool color = false;
};

std::string InferText(const InferFacts& facts, const InferTextOptions& options);
std::string InferJson(const InferFacts& facts);

}  // namespace culprit::cli
