// SPDX-License-Identifier: Apache-2.0
//
// DebugServer: binaries and debug files by build-id from debuginfod servers, in
// the background and within bounds. Nothing here runs unless somebody asked for
// it; DEBUGINFOD_URLS alone asks for nothing. Downloads start with Start(), a
// few at a time; Wait() returns when all are done or the time is over, and what
// did not come is told. The bytes of all downloads together are bounded too: a
// file that would pass the bound is given up as soon as its size is known.
//
// The work is libdebuginfod's, opened when first needed: files end in the
// user's client cache, where the Symbolizer (debuginfod_cache) and other tools
// find them. It takes its settings from the environment, so Start() sets some
// variables: call it before other threads read them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"

namespace culprit::symbol {

struct DebugServerOptions {
  std::string urls = {};   // separated by spaces; empty: those of DEBUGINFOD_URLS
  std::string cache = {};  // empty: the user's usual one
  int64_t max_time_ns = 60'000'000'000;
  uint64_t max_bytes = 1'000'000'000;
  size_t connections = 4;
};

struct Download {
  enum class State {
    kWaiting,
    kHere,
    kUnknown,   // no server has it
    kTooLate,   // the time was over
    kTooLarge,  // it would have passed the bound on bytes
    kFailed,
  };
  std::string build_id = {};
  bool debug = false;  // the debug file; otherwise the binary
  State state = State::kWaiting;
  uint64_t bytes = 0;    // that were transferred; 0 where the cache had it
  std::string why = {};  // of kFailed
};

class DebugServer {
 public:
  // An Error if there are no servers, or no library to ask them with.
  static Result<DebugServer> Start(const DebugServerOptions& options, std::vector<Download> wanted);
  DebugServer(DebugServer&&) noexcept;
  ~DebugServer();  // gives up what is not done

  // Blocks until all are done or the time is over; in the order of `wanted`.
  std::vector<Download> Wait(Progress& progress);

 private:
  struct State;
  explicit DebugServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace culprit::symbol
