// SPDX-License-Identifier: Apache-2.0
#include "cli/mine_options.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "cli/gather_flags.h"
#include "stackmine/signature_store.h"

namespace culprit::cli {
namespace {

using stackmine::LambdaRule;
using stackmine::SortBy;
using waitgraph::Scope;
using waitgraph::WaitClass;

std::vector<std::string> SplitCommas(const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (std::string_view value : values) {
    while (!value.empty()) {
      const std::string_view part = value.substr(0, value.find(','));
      value.remove_prefix(std::min(value.size(), part.size() + 1));
      if (!part.empty()) parts.emplace_back(part);
    }
  }
  return parts;
}

Result<std::vector<WaitClass>> ReadClasses(const Arguments& arguments) {
  std::vector<WaitClass> classes;
  for (const std::string& name : SplitCommas(arguments.All("--class"))) {
    const auto it =
        std::find(waitgraph::kWaitClassNames.begin(), waitgraph::kWaitClassNames.end(), name);
    if (it == waitgraph::kWaitClassNames.end()) {
      std::string all;
      for (const std::string_view known : waitgraph::kWaitClassNames) {
        all += (all.empty() ? "" : ", ") + std::string(known);
      }
      return Error{.message = "'" + name + "' is no wait class", .hint = "the classes are " + all};
    }
    classes.push_back(static_cast<WaitClass>(it - waitgraph::kWaitClassNames.begin()));
  }
  return classes;
}

Scope ReadScope(const Arguments& arguments) {
  const std::string scope = arguments.Text("--scope");
  if (scope == "graph") return Scope::kGraph;
  return scope == "thread" ? Scope::kThread : Scope::kCriticalPath;
}

Result<LambdaRule> ReadLambda(const Arguments& arguments) {
  const std::array<std::string_view, 4> ways = {"--min-cost", "--min-share", "--rule", "--top"};
  const auto given = std::count_if(ways.begin(), ways.end(),
                                   [&](std::string_view flag) { return arguments.Has(flag); });
  if (given > 1) {
    return Error{.message = "more than one of --min-cost, --min-share, --rule and --top",
                 .hint = "each says how costly a pattern must be; give one"};
  }
  if (arguments.Has("--rule")) return stackmine::ParseTraceRule(arguments.Text("--rule"));
  LambdaRule rule;
  if (arguments.Has("--min-cost")) {
    rule.kind = LambdaRule::Kind::kCost;
    rule.cost_ns = arguments.DurationNs("--min-cost");
    if (rule.cost_ns <= 0) {
      return Error{.message = "--min-cost must be above zero",
                   .hint = "every stack would be a pattern; try --min-share 0.1%"};
    }
  } else if (arguments.Has("--top")) {
    rule.kind = LambdaRule::Kind::kTop;
    rule.top = arguments.Number("--top");
    if (rule.top == 0) return Error{.message = "--top must be at least 1"};
  } else {
    const std::string text = arguments.Text("--min-share");
    const auto share = stackmine::ParseShare(text);
    if (!share) {
      return Error{.message = "'" + text + "' is no share above zero and up to 100 %",
                   .hint = "write it as 0.5% or 0.005"};
    }
    rule.share = *share;
  }
  return rule;
}

SortBy ReadSort(const std::string& name) {
  if (name == "cost") return SortBy::kCost;
  if (name == "time") return SortBy::kTime;
  if (name == "traces") return SortBy::kTraces;
  if (name == "events") return SortBy::kEvents;
  if (name == "average") return SortBy::kAverage;
  if (name == "p95") return SortBy::kP95;
  if (name == "instances") return SortBy::kInstances;
  return SortBy::kImpact;
}

Result<cluster::ClusterOptions> ReadClustering(const Arguments& arguments) {
  cluster::ClusterOptions options;
  const std::string linkage = arguments.Text("--linkage");
  if (linkage == "complete") options.linkage = cluster::Linkage::kComplete;
  if (linkage == "single") options.linkage = cluster::Linkage::kSingle;
  options.weight_to_leaf = arguments.Has("--weight-leaf");
  options.jobs = arguments.Number("--jobs");
  if (arguments.Has("--cut")) {
    const double cut = arguments.Real("--cut");
    if (!(cut >= 0 && cut <= 1)) return Error{.message = "--cut must be from 0 to 1"};
    options.cut = static_cast<cluster::Fixed>(std::llround(cut * double{cluster::kOne}));
  }
  return options;
}

std::vector<Flag> AreaFlags() {
  return {
      {"--scope",
       0,
       ValueKind::kChoice,
       "SCOPE",
       "which events count: those that own the time, all of the wait graph, or the thread's own",
       "critical-path",
       {"critical-path", "graph", "thread"}},
      {"--with", 0, ValueKind::kText, "GLOB", "only events with such a frame; may be repeated"},
      {"--without", 0, ValueKind::kText, "GLOB", "no events with such a frame; may be repeated"},
      {"--class", 0, ValueKind::kText, "LIST", "only waits of these classes: lock,disk"},
      {"--scenario", 0, ValueKind::kText, "GLOB", "only these scenarios; may be repeated"},
      {"--slower-than", 0, ValueKind::kDuration, "D", "only instances that last at least D"},
      {"--auto", 0, ValueKind::kNone, "", "find instances even where they are marked"},
      {"--idle", 0, ValueKind::kText, "GLOB", "waits with such a frame are idle"},
      {"--not-idle", 0, ValueKind::kText, "GLOB", "waits with such a frame are never idle"}};
}

std::vector<Flag> PatternFlags() {
  return {
      {"--min-cost", 0, ValueKind::kDuration, "D", "lambda: patterns that cost at least D"},
      {"--min-share", 0, ValueKind::kText, "P", "lambda as a share of the area of interest", "1%"},
      {"--rule", 0, ValueKind::kText, "RULE",
       "lambda by traces=10%,delay=300ms: share of traces x mean delay x traces"},
      {"--top", 0, ValueKind::kNumber, "K", "lambda such that there are about K patterns"},
      {"--kind", 0, ValueKind::kChoice, "KIND", "what to mine", "all", {"all", "wait", "run"}},
      {"--max-patterns", 0, ValueKind::kNumber, "N", "stop at N patterns; 0: never", "20000"},
      {"--max-time", 0, ValueKind::kDuration, "D", "stop mining after D"},
      {"--max-memory", 0, ValueKind::kText, "SIZE", "for one trace, and for mining: 2GB, 500MB"},
      {"--sort",
       0,
       ValueKind::kChoice,
       "BY",
       "order of the clusters",
       "impact",
       {"impact", "cost", "time", "traces", "events", "average", "p95", "instances"}},
      {"--linkage",
       0,
       ValueKind::kChoice,
       "L",
       "how clusters merge",
       "average",
       {"average", "complete", "single"}},
      {"--cut", 0, ValueKind::kReal, "X", "merge while 1 - similarity is at most X"},
      {"--weight-leaf", 0, ValueKind::kNone, "", "frames near the leaf count more"},
      {"--once", 0, ValueKind::kNone, "", "no further rounds over the stacks that hold no pattern"},
      {"--no-anchors", 0, ValueKind::kNone, "", "clusters by similarity alone, as in the paper"},
      {"--jobs", 'j', ValueKind::kNumber, "N", "threads to use; 0: all", "0"}};
}

}  // namespace

std::vector<Flag> MineFlags() {
  std::vector<Flag> flags = AreaFlags();
  for (Flag& flag : PatternFlags()) flags.push_back(std::move(flag));
  for (Flag& flag : GatherFlags()) flags.push_back(std::move(flag));
  return flags;
}

Flag StoreFlag() {
  return {.name = "--store",
          .kind = ValueKind::kPath,
          .value = "FILE",
          .help = "signature store, instead of CULPRIT_SIGNATURES or the user's own"};
}

std::string StorePath(const Arguments& arguments) {
  return arguments.Has("--store") ? arguments.Text("--store") : stackmine::DefaultStorePath();
}

std::optional<uint64_t> ParseBytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}};
  double unit = 1;
  for (const auto& [name, bytes] : kUnits) {
    if (!text.ends_with(name)) continue;
    text.remove_suffix(name.size());
    unit = bytes;
    break;
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto value = ParseDouble(text);
  if (!value || !(*value > 0) || *value * unit > 1e18) return std::nullopt;
  return static_cast<uint64_t>(*value * unit);
}

Result<MineSettings> ReadMineFlags(const Arguments& arguments) {
  MineSettings settings;
  stackmine::ReduceOptions& reduce = settings.gather.reduce;
  reduce.area.scope = ReadScope(arguments);
  reduce.area.with = arguments.All("--with");
  reduce.area.without = arguments.All("--without");
  CULPRIT_ASSIGN(reduce.area.classes, ReadClasses(arguments));
  reduce.automatic.idle = arguments.All("--idle");
  reduce.automatic.not_idle = arguments.All("--not-idle");
  reduce.always_automatic = arguments.Has("--auto");
  reduce.scenarios = arguments.All("--scenario");
  reduce.slower_than_ns = arguments.DurationNs("--slower-than");
  settings.gather.jobs = arguments.Number("--jobs");
  CULPRIT_ASSIGN(const GatherBounds bounds, ReadGatherFlags(arguments));
  settings.gather.memory_bytes = bounds.memory_bytes;
  settings.gather.max_memory_bytes = bounds.max_trace_bytes;
  settings.gather.use_summaries = bounds.use_summaries;
  stackmine::PatternOptions& patterns = settings.mine.patterns;
  CULPRIT_ASSIGN(patterns.lambda, ReadLambda(arguments));
  const std::string kind = arguments.Text("--kind");
  patterns.waits = kind != "run";
  patterns.runs = kind != "wait";
  patterns.once = arguments.Has("--once");
  patterns.max_patterns = arguments.Number("--max-patterns");
  patterns.max_time_ns = arguments.DurationNs("--max-time");
  if (arguments.Has("--max-memory")) {
    const auto bytes = ParseBytes(arguments.Text("--max-memory"));
    if (!bytes) {
      return Error{.message = "'" + arguments.Text("--max-memory") + "' is no size",
                   .hint = "write it as 500MB or 2GB"};
    }
    patterns.max_memory_bytes = *bytes;
    settings.gather.max_memory_bytes = *bytes;
  }
  patterns.jobs = arguments.Number("--jobs");
  CULPRIT_ASSIGN(settings.mine.clustering, ReadClustering(arguments));
  settings.mine.anchors = !arguments.Has("--no-anchors");
  settings.mine.sort = ReadSort(arguments.Text("--sort"));
  return settings;
}

}  // namespace culprit::cli
