// SPDX-License-Identifier: Apache-2.0
#include "analyze/frame_names.h"
#include "analyze/heaviest.h"
#include "analyze/part.h"
#include "base/json_writer.h"

namespace culprit::analyze {
namespace {

using stackmine::kNoStack;
using stackmine::StackIndex;
using stackmine::StackKind;

// By stack, with all below it.
struct StackTimes {
  std::vector<int64_t> total_ns;
  std::vector<int64_t> fast_ns;
  std::vector<int64_t> slow_ns;
  std::vector<int64_t> before_ns;  // of the older recording
};

void AddToCallers(const stackmine::StackTable& stacks, std::vector<int64_t>& times) {
  for (StackIndex s = static_cast<StackIndex>(times.size()); s-- > 0;) {
    const StackIndex parent = stacks.Parent(s);
    if (parent != kNoStack) times[parent] += times[s];
  }
}

// add(instance, stack, time) for all time of a kind.
template <typename Add>
void ForEachTime(const stackmine::Evidence& evidence, StackKind kind, bool runs_by_thread,
                 const Add& add) {
  RowCursor rows(evidence.rows);
  for (size_t i = 0; i < evidence.instances.size(); ++i) {
    const uint64_t end = evidence.instances[i].rows_end;
    for (const stackmine::PathRow& row : rows.Read(evidence.rows_begin(i), end)) {
      const stackmine::PathNode& node = evidence.forest.nodes()[row.node];
      if (stackmine::CountsAs(node, kind, runs_by_thread)) add(i, node.stack, row.cost_ns);
    }
  }
}

// `stacks` becomes the table of both recordings: those of the analysis keep
// their numbers, and a parent's stays below its children's.
StackTimes TimesOf(const Analysis& analysis, StackKind kind, const stackmine::Evidence* before,
                   stackmine::StackTable& stacks) {
  BringAll(analysis.evidence.stacks, stacks);
  std::vector<StackIndex> brought;
  if (before != nullptr) brought = BringAll(before->stacks, stacks);
  StackTimes times;
  for (auto* column : {&times.total_ns, &times.fast_ns, &times.slow_ns, &times.before_ns}) {
    column->resize(stacks.stacks());
  }
  const bool by_thread = analysis.mined.runs_by_thread;
  ForEachTime(analysis.evidence, kind, by_thread, [&](size_t i, StackIndex stack, int64_t ns) {
    const Speed speed = analysis.speeds.by_instance[i];
    times.total_ns[stack] += ns;
    if (speed == Speed::kFast) times.fast_ns[stack] += ns;
    if (speed == Speed::kSlow) times.slow_ns[stack] += ns;
  });
  if (before != nullptr) {
    ForEachTime(*before, kind, by_thread, [&](size_t, StackIndex stack, int64_t ns) {
      times.before_ns[brought[stack]] += ns;
    });
  }
  for (auto* column : {&times.total_ns, &times.fast_ns, &times.slow_ns, &times.before_ns}) {
    AddToCallers(stacks, *column);
  }
  return times;
}

template <typename Get>
void WriteColumn(JsonWriter& json, std::string_view name, const std::vector<uint32_t>& kept,
                 Get get) {
  json.Key(name).BeginArray();
  for (const uint32_t node : kept) json.Int(get(node));
  json.EndArray();
}

Part FlamePart(const Analysis& analysis, StackKind kind, const PartOptions& options,
               const stackmine::Evidence* before) {
  stackmine::StackTable stacks;
  const StackTimes times = TimesOf(analysis, kind, before, stacks);
  std::vector<int64_t> weights = times.total_ns;
  for (size_t s = 0; s < weights.size(); ++s) weights[s] += times.before_ns[s];
  const std::vector<uint32_t> kept = Heaviest(weights, options.flame_nodes);
  std::vector<int64_t> place(stacks.stacks(), -1);
  for (size_t i = 0; i < kept.size(); ++i) place[kept[i]] = static_cast<int64_t>(i);
  // What the kept stacks do not show of their own time is at their callers.
  int64_t left_out_ns = 0;
  for (uint32_t s = 0; s < stacks.stacks(); ++s) {
    const StackIndex parent = stacks.Parent(s);
    const bool top = place[s] < 0 && (parent == kNoStack || place[parent] >= 0);
    if (top) left_out_ns += times.total_ns[s];
  }
  FrameNames names(stacks);
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject();
  WriteColumn(json, "frame", kept, [&](uint32_t s) { return names.Number(stacks.Leaf(s)); });
  WriteColumn(json, "parent", kept, [&](uint32_t s) {
    return stacks.Parent(s) == kNoStack ? int64_t{-1} : place[stacks.Parent(s)];
  });
  WriteColumn(json, "total_ns", kept, [&](uint32_t s) { return times.total_ns[s]; });
  WriteColumn(json, "fast_ns", kept, [&](uint32_t s) { return times.fast_ns[s]; });
  WriteColumn(json, "slow_ns", kept, [&](uint32_t s) { return times.slow_ns[s]; });
  if (before != nullptr) {
    WriteColumn(json, "before_ns", kept, [&](uint32_t s) { return times.before_ns[s]; });
    json.Field("before_instances", before->instances.size());
  }
  names.WriteNames(json);
  json.Field("instances", analysis.evidence.instances.size());
  json.Field("fast_instances", analysis.speeds.fast).Field("slow_instances", analysis.speeds.slow);
  json.Field("left_out_ns", left_out_ns).EndObject();
  return {.name = "flame-" + std::string(Name(kind)), .json = json.Take()};
}

}  // namespace

std::vector<Part> FlameParts(const Analysis& analysis, const PartOptions& options,
                             const stackmine::Evidence* before) {
  return {FlamePart(analysis, StackKind::kWait, options, before),
          FlamePart(analysis, StackKind::kRun, options, before)};
}

}  // namespace culprit::analyze
