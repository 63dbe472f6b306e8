// SPDX-License-Identifier: Apache-2.0
//
// MinePatterns: the maximal costly patterns of the area of interest (StackMine
// §V). Waiting and running stacks are mined apart: a frame of a wait and a
// frame of a run are different symbols of one database, so one lambda and one
// budget serve both and no pattern mixes them. The cost of a wait is its clipped
// length on the path, of a run that of the leaf. Runs without a sample take part
// only where there is no sampled run at all; they are then known by thread.
//
// A stack whose every costly subsequence is part of a longer costly one that the
// stack itself lacks holds no maximal pattern, however much it costs (a caller
// with much time of its own beside that of a costly callee). So the stacks that
// hold none are mined again, with the same lambda, until they cost less: what
// those rounds find is maximal among the stacks that no earlier round explains.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mine/maximal.h"
#include "mine/sequences.h"
#include "stackmine/evidence.h"
#include "stackmine/lambda.h"

namespace culprit::stackmine {

enum class StackKind : uint8_t { kWait = 0, kRun = 1 };
inline constexpr size_t kStackKinds = 2;
constexpr std::string_view Name(StackKind kind) {
  return kind == StackKind::kWait ? "wait" : "run";
}

struct StackCost {
  StackIndex stack = kNoStack;
  StackKind kind = StackKind::kWait;
  int64_t cost_ns = 0;
};

struct StackCosts {
  LargeVector<StackCost> stacks;  // distinct, waits first, by index; cost above zero
  int64_t wait_ns = 0;
  int64_t run_ns = 0;
  bool runs_by_thread = false;  // there was no sampled run
};
StackCosts CostsOfStacks(const Evidence& evidence);

// Does a node of the forest count as a stack of this kind?
bool CountsAs(const PathNode& node, StackKind kind, bool runs_by_thread);

struct MinedPattern {
  StackKind kind = StackKind::kWait;
  std::vector<FrameSymbol> frames;  // caller first
  int64_t cost_ns = 0;              // of all stacks that contain it
};

struct PatternOptions {
  LambdaRule lambda;
  bool waits = true;
  bool runs = true;
  bool once = false;          // only the maximal patterns of all stacks, as the paper has them
  uint64_t max_patterns = 0;  // budgets; 0: none
  int64_t max_time_ns = 0;
  uint64_t max_memory_bytes = 0;
  size_t jobs = 0;
};

struct MinedPatterns {
  std::vector<MinedPattern> patterns;  // by round, in the order of MineMaximal
  int64_t lambda_ns = 0;
  bool truncated = false;
  std::string why;
};
MinedPatterns MinePatterns(const Evidence& evidence, const StackCosts& costs,
                           const PatternOptions& options);

// Gives the answer of mine::MineMaximal, from hosts elsewhere, say.
using MaximalMiner = std::function<Result<mine::MaximalResult>(const mine::WeightedSequences&,
                                                               const mine::MaximalOptions&)>;
// The same, each round mined by `miner`; an Error of its is the answer.
Result<MinedPatterns> MinePatternsBy(const MaximalMiner& miner, const Evidence& evidence,
                                     const StackCosts& costs, const PatternOptions& options);

}  // namespace culprit::stackmine
