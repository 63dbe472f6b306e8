// SPDX-License-Identifier: Apache-2.0
#include "stackmine/patterns.h"

#include <algorithm>
#include <utility>

#include "stackmine/stack_match.h"

namespace culprit::stackmine {
namespace {

bool Wanted(StackKind kind, const PatternOptions& options) {
  return kind == StackKind::kWait ? options.waits : options.runs;
}

mine::WeightedSequences Database(const Evidence& evidence, const LargeVector<StackCost>& stacks) {
  const auto run_begins = static_cast<mine::Symbol>(evidence.stacks.frames());
  mine::WeightedSequences database;
  std::vector<FrameSymbol> frames;
  for (const StackCost& cost : stacks) {
    evidence.stacks.Frames(cost.stack, frames);
    if (cost.kind == StackKind::kRun) {
      for (FrameSymbol& frame : frames) frame += run_begins;
    }
    database.Add(frames, cost.cost_ns);
  }
  return database;
}

// By cost; those of one cost by the names of their frames, so that what is made of them
// (clusters above all) does not depend on the numbers that frames happen to have.
void OrderByNames(const StackTable& stacks, std::vector<MinedPattern>& patterns) {
  std::stable_sort(
      patterns.begin(), patterns.end(), [&](const MinedPattern& a, const MinedPattern& b) {
        if (a.cost_ns != b.cost_ns) return a.cost_ns > b.cost_ns;
        if (a.kind != b.kind) return a.kind < b.kind;
        return std::lexicographical_compare(a.frames.begin(), a.frames.end(), b.frames.begin(),
                                            b.frames.end(), [&](FrameSymbol f, FrameSymbol g) {
                                              return stacks.FrameName(f) < stacks.FrameName(g);
                                            });
      });
}

std::vector<MinedPattern> FromSymbols(const std::vector<mine::Pattern>& found,
                                      const Evidence& evidence) {
  const auto run_begins = static_cast<mine::Symbol>(evidence.stacks.frames());
  std::vector<MinedPattern> patterns;
  for (const mine::Pattern& from : found) {
    // Of an empty database the empty sequence may be the only one left.
    if (from.symbols.empty()) continue;
    MinedPattern& to = patterns.emplace_back(
        MinedPattern{.kind = StackKind::kWait, .frames = from.symbols, .cost_ns = from.cost});
    if (from.symbols.front() < run_begins) continue;
    to.kind = StackKind::kRun;
    for (FrameSymbol& frame : to.frames) frame -= run_begins;
  }
  OrderByNames(evidence.stacks, patterns);
  return patterns;
}

StackLabels LabelByPattern(const Evidence& evidence, const StackCosts& costs,
                           const std::vector<MinedPattern>& patterns, size_t jobs) {
  std::vector<LabelledPattern> labelled;
  for (const MinedPattern& pattern : patterns) {
    labelled.push_back({static_cast<uint32_t>(labelled.size()), pattern.kind, pattern.frames});
  }
  return MatchStacks(evidence, costs, labelled, jobs);
}

// A later round saw only the stacks that were left to it.
void CountWholeCosts(const StackCosts& costs, const StackLabels& labels,
                     std::vector<MinedPattern>& patterns) {
  for (MinedPattern& pattern : patterns) pattern.cost_ns = 0;
  for (const StackCost& cost : costs.stacks) {
    for (const uint32_t label : labels.of(cost.kind, cost.stack)) {
      patterns[label].cost_ns += cost.cost_ns;
    }
  }
}

// Whether the budget of patterns, if there is one, is spent by `found` more.
bool SpendPatterns(uint64_t found, mine::MaximalOptions& limits) {
  if (limits.max_patterns == 0) return false;
  limits.max_patterns -= std::min(limits.max_patterns, found);
  return limits.max_patterns == 0;
}

}  // namespace

bool CountsAs(const PathNode& node, StackKind kind, bool runs_by_thread) {
  if (kind == StackKind::kWait) return node.kind == PathKind::kWait;
  return node.kind == PathKind::kRunning || (runs_by_thread && node.kind == PathKind::kNotSampled);
}

StackCosts CostsOfStacks(const Evidence& evidence) {
  StackCosts costs;
  const LargeVector<PathNode>& nodes = evidence.forest.nodes();
  costs.runs_by_thread = std::none_of(nodes.begin(), nodes.end(), [](const PathNode& node) {
    return node.kind == PathKind::kRunning;
  });
  for (const StackKind kind : {StackKind::kWait, StackKind::kRun}) {
    LargeVector<int64_t> by_stack(evidence.stacks.stacks());
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
  return MinePatternsBy(&mine::MineMaximal, evidence, costs, options).value();
}

Result<MinedPatterns> MinePatternsBy(const MaximalMiner& miner, const Evidence& evidence,
                                     const StackCosts& costs, const PatternOptions& options) {
  LargeVector<StackCost> left;
  for (const StackCost& cost : costs.stacks) {
    if (Wanted(cost.kind, options)) left.push_back(cost);
  }
  mine::WeightedSequences database = Database(evidence, left);
  mine::MaximalOptions limits{.lambda = 1,
                              .jobs = options.jobs,
                              .max_patterns = options.max_patterns,
                              .max_time_ns = options.max_time_ns,
                              .max_memory_bytes = options.max_memory_bytes};
  limits.lambda =
      options.lambda.kind == LambdaRule::Kind::kTop
          ? mine::LambdaForTop(database, options.lambda.top, limits)
          : ResolveLambda(options.lambda, evidence.account.aoi_ns, evidence.traces.size());
  MinedPatterns mined;
  mined.lambda_ns = limits.lambda;
  for (;;) {
    CULPRIT_ASSIGN(const mine::MaximalResult found, miner(database, limits));
    mined.truncated = found.truncated;
    mined.why = found.why;
    std::vector<MinedPattern> round = FromSymbols(found.patterns, evidence);
    const StackLabels labels = LabelByPattern(evidence, costs, round, options.jobs);
    if (!mined.patterns.empty()) CountWholeCosts(costs, labels, round);
    mined.patterns.insert(mined.patterns.end(), std::make_move_iterator(round.begin()),
                          std::make_move_iterator(round.end()));
    if (options.once || found.truncated || round.empty() || SpendPatterns(round.size(), limits)) {
      return mined;
    }
    std::erase_if(left,
                  [&](const StackCost& cost) { return !labels.of(cost.kind, cost.stack).empty(); });
    database = Database(evidence, left);
  }
}

}  // namespace culprit::stackmine
