// SPDX-License-Identifier: Apache-2.0
#include "stackmine/patterns.h"

#include <algorithm>

namespace culprit::stackmine {
namespace {

bool Wanted(StackKind kind, const PatternOptions& options) {
  return kind == StackKind::kWait ? options.waits : options.runs;
}

mine::WeightedSequences Database(const Evidence& evidence, const StackCosts& costs,
                                 const PatternOptions& options) {
  const auto run_begins = static_cast<mine::Symbol>(evidence.stacks.frames());
  mine::WeightedSequences database;
  std::vector<FrameSymbol> frames;
  for (const StackCost& cost : costs.stacks) {
    if (!Wanted(cost.kind, options)) continue;
    evidence.stacks.Frames(cost.stack, frames);
    if (cost.kind == StackKind::kRun) {
      for (FrameSymbol& frame : frames) frame += run_begins;
    }
    database.Add(frames, cost.cost_ns);
  }
  return database;
}

MinedPattern FromSymbols(const mine::Pattern& found, mine::Symbol run_begins) {
  MinedPattern pattern{.kind = StackKind::kWait, .frames = found.symbols, .cost_ns = found.cost};
  if (found.symbols.empty() || found.symbols.front() < run_begins) return pattern;
  pattern.kind = StackKind::kRun;
  for (FrameSymbol& frame : pattern.frames) frame -= run_begins;
  return pattern;
}

}  // namespace

bool CountsAs(const PathNode& node, StackKind kind, bool runs_by_thread) {
  if (kind == StackKind::kWait) return node.kind == PathKind::kWait;
  return node.kind == PathKind::kRunning || (runs_by_thread && node.kind == PathKind::kNotSampled);
}

StackCosts CostsOfStacks(const Evidence& evidence) {
  StackCosts costs;
  const std::vector<PathNode>& nodes = evidence.forest.nodes();
  costs.runs_by_thread = std::none_of(nodes.begin(), nodes.end(), [](const PathNode& node) {
    return node.kind == PathKind::kRunning;
  });
  for (const StackKind kind : {StackKind::kWait, StackKind::kRun}) {
    std::vector<int64_t> by_stack(evidence.stacks.stacks());
    for (const PathRow& row : evidence.rows) {
      const PathNode& node = nodes[row.node];
      if (CountsAs(node, kind, costs.runs_by_thread)) by_stack[node.stack] += row.cost_ns;
    }
    for (StackIndex s = 0; s < by_stack.size(); ++s) {
      if (by_stack[s] == 0) continue;
      costs.stacks.push_back({s, kind, by_stack[s]});
      (kind == StackKind::kWait ? costs.wait_ns : costs.run_ns) += by_stack[s];
    }
  }
  return costs;
}

MinedPatterns MinePatterns(const Evidence& evidence, const StackCosts& costs,
                           const PatternOptions& options) {
  const mine::WeightedSequences database = Database(evidence, costs, options);
  mine::MaximalOptions limits{.lambda = 1,
                              .jobs = options.jobs,
                              .max_patterns = options.max_patterns,
                              .max_time_ns = options.max_time_ns,
                              .max_memory_bytes = options.max_memory_bytes};
  limits.lambda =
      options.lambda.kind == LambdaRule::Kind::kTop
          ? mine::LambdaForTop(database, options.lambda.top, limits)
          : ResolveLambda(options.lambda, evidence.account.aoi_ns, evidence.traces.size());
  const mine::MaximalResult found = mine::MineMaximal(database, limits);
  MinedPatterns mined;
  mined.lambda_ns = limits.lambda;
  mined.truncated = found.truncated;
  mined.why = found.why;
  const auto run_begins = static_cast<mine::Symbol>(evidence.stacks.frames());
  for (const mine::Pattern& pattern : found.patterns) {
    // Of an empty database the empty sequence may be the only one left.
    if (!pattern.symbols.empty()) mined.patterns.push_back(FromSymbols(pattern, run_begins));
  }
  return mined;
}

}  // namespace culprit::stackmine
