// SPDX-License-Identifier: Apache-2.0
//
// Lambda: how costly a pattern must be to be reported (StackMine §V). Given as
// a time, as a share of the area of interest, by the paper's rule (share of
// traces × mean delay × number of traces), or as the number of patterns wanted.
// Integer arithmetic throughout.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace culprit::stackmine {

inline constexpr uint64_t kShareOne = 1'000'000'000;  // a share of 1

struct LambdaRule {
  enum class Kind { kCost, kShare, kTraces, kTop };
  Kind kind = Kind::kShare;
  int64_t cost_ns = 0;               // kCost
  uint64_t share = kShareOne / 100;  // kShare: of the area of interest; kTraces: of the traces
  int64_t delay_ns = 0;              // kTraces: mean delay in such a trace
  uint64_t top = 0;                  // kTop: patterns wanted
};

// "1%", "0.5 %" or "0.01", in (0, 1]; as parts of kShareOne.
std::optional<uint64_t> ParseShare(std::string_view text);
// "traces=10%,delay=300ms"
Result<LambdaRule> ParseTraceRule(std::string_view text);
// share × whole, rounded up.
int64_t ShareOf(uint64_t share, int64_t whole);

// Lambda for every kind but kTop; at least 1.
int64_t ResolveLambda(const LambdaRule& rule, int64_t aoi_ns, uint64_t traces);

}  // namespace culprit::stackmine
