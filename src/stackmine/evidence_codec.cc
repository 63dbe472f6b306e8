// SPDX-License-Identifier: Apache-2.0
#include "stackmine/evidence_codec.h"

#include <limits>

#include "base/bytes.h"
#include "corpus/call_forest.h"
#include "corpus/part_codec.h"

namespace culprit::stackmine {
namespace {

using corpus::ReadCount;

constexpr uint32_t kMaxIndex = UINT32_MAX - 1;  // UINT32_MAX is "none" everywhere

// ---- writing

// A forest (corpus/call_forest.h); the names behind those of frames are of scenarios.
void WriteStacks(const Evidence& evidence, ByteWriter& out) {
  const StackTable& table = evidence.stacks;
  out.Varint(table.frames() + evidence.scenarios.size());
  for (FrameSymbol f = 0; f < table.frames(); ++f) out.String(table.FrameName(f));
  for (const std::string& scenario : evidence.scenarios) out.String(scenario);
  out.Varint(table.frames());
  const auto stacks = static_cast<StackIndex>(table.stacks());
  out.Varint(stacks);
  corpus::WriteParents(
      stacks, [&](size_t s) { return table.Parent(static_cast<StackIndex>(s)); }, out);
  for (StackIndex s = 0; s < stacks; ++s) out.Varint(table.Leaf(s));
}

// Where the function begins in nearly every name: behind the module.
size_t UsualFunctionAt(std::string_view name) {
  const size_t bang = name.find('!');
  return bang == std::string_view::npos ? 0 : bang + 1;
}

// Zero for a frame that has a name, which begins where it usually does.
void WriteFrames(const StackTable& table, ByteWriter& out) {
  for (FrameSymbol f = 0; f < table.frames(); ++f) {
    const std::string_view name = table.FrameName(f);
    const size_t function_at = name.size() - table.Function(f).size();
    const bool usual = function_at == UsualFunctionAt(name);
    out.Varint((usual ? 0 : function_at + 1) << 1 | (table.Named(f) ? 0U : 1U));
  }
}

// What the rows charge to each stack for waiting and for running. That is the time of
// the distinct events as well, but for events that several instances were charged for.
struct StackCharges {
  explicit StackCharges(const Evidence& evidence)
      : wait_ns(evidence.stacks.stacks()), run_ns(evidence.stacks.stacks()) {
    for (const PathRow& row : evidence.rows) {
      const PathNode& node = evidence.forest.nodes()[row.node];
      const auto cost_ns = static_cast<uint64_t>(row.cost_ns);
      if (node.kind == PathKind::kWait) wait_ns[node.stack] += cost_ns;
      const bool ran = node.kind == PathKind::kRunning || node.kind == PathKind::kNotSampled;
      if (ran) run_ns[node.stack] += cost_ns;
    }
  }

  std::vector<uint64_t> wait_ns;  // may wrap, where costs are damage
  std::vector<uint64_t> run_ns;
};

void WriteCounts(const Evidence& evidence, ByteWriter& out) {
  const StackCharges charges(evidence);
  const size_t stacks = evidence.stacks.stacks();
  for (size_t s = 0; s < stacks; ++s) out.Varint(evidence.occurrences[s]);
  for (size_t s = 0; s < stacks; ++s) {
    const auto distinct_ns = static_cast<uint64_t>(evidence.distinct_wait_ns[s]);
    out.SignedVarint(static_cast<int64_t>(charges.wait_ns[s] - distinct_ns));
  }
  for (size_t s = 0; s < stacks; ++s) {
    const auto distinct_ns = static_cast<uint64_t>(evidence.distinct_run_ns[s]);
    out.SignedVarint(static_cast<int64_t>(charges.run_ns[s] - distinct_ns));
  }
}

void WriteNodes(const PathForest& forest, ByteWriter& out) {
  const LargeVector<PathNode>& nodes = forest.nodes();
  out.Varint(nodes.size());
  corpus::WriteParents(
      nodes.size(), [&](size_t n) { return nodes[n].parent; }, out);
  for (const PathNode& node : nodes) out.Varint(corpus::OrNone(node.stack));
  for (const PathNode& node : nodes) {
    out.U8(static_cast<uint8_t>(node.kind));
    out.U8(static_cast<uint8_t>(node.wait_class));
  }
}

void WriteInstances(const Evidence& evidence, ByteWriter& out) {
  out.Varint(evidence.instances.size());
  for (size_t i = 0; i < evidence.instances.size(); ++i) {
    const InstanceFacts& facts = evidence.instances[i];
    out.Varint(facts.trace);
    out.Varint(facts.index);
    out.Varint(facts.scenario);
    out.SignedVarint(facts.dur_ns);
    out.Varint(facts.rows_end - evidence.rows_begin(i));
  }
}

void WriteRole(const waitgraph::Role& role, ByteWriter& out) {
  out.String(role.scenario);
  out.String(role.process);
  out.String(role.loop_frame);
  out.String(role.idle_frame);
  out.U8(static_cast<uint8_t>(role.basis));
  out.U8(role.by_sync ? 1 : 0);
  for (const uint64_t number : {role.threads, role.instances, role.left_out_threads}) {
    out.Varint(number);
  }
  for (const int64_t dur_ns : {role.instance_ns, role.idle_ns, role.left_out_ns}) {
    out.SignedVarint(dur_ns);
  }
}

// The same walk over an account's numbers serves both directions.
template <class Account_, class Signed, class Unsigned>
void EachNumber(Account_& account, const Signed& each_ns, const Unsigned& each_count) {
  auto& area = account.area;
  for (auto* number : {&area.total_ns, &area.running_ns, &area.ready_ns, &area.hardware_ns,
                       &area.unattributed_ns, &area.wait_ns, &area.kept_ns, &account.not_sampled_ns,
                       &account.aoi_ns, &account.summed_wait_ns, &account.instances_left_out_ns,
                       &account.idle_ns, &account.idle_threads_ns}) {
    each_ns(*number);
  }
  for (auto* number :
       {&area.events, &area.kept_events, &area.dropped_events, &account.waits_without_stack,
        &account.instances_left_out, &account.idle_threads}) {
    each_count(*number);
  }
}

// ---- reading

class EvidenceReader {
 public:
  explicit EvidenceReader(std::string_view bytes) : in_(bytes) {}

  std::optional<Evidence> Read() {
    size_t frames = 0;
    if (!corpus::ReadForest(in_, forest_, frames)) return std::nullopt;
    if (in_.Varint() != kEvidenceVersion) return std::nullopt;
    const uint8_t scope = in_.U8();
    if (scope > static_cast<uint8_t>(waitgraph::Scope::kThread)) return std::nullopt;
    evidence_.scope = static_cast<waitgraph::Scope>(scope);
    const bool whole = Frames(frames) && Stacks() && Nodes() &&
                       corpus::ReadRows(evidence_.forest.nodes().size(), evidence_.rows, in_) &&
                       Counts() && Instances() && Roles() && Rest();
    if (!whole || in_.failed() || in_.remaining() != 0) return std::nullopt;
    return std::move(evidence_);
  }

 private:
  // What names are left is of scenarios.
  bool Frames(size_t count) {
    const std::vector<std::string_view>& names = forest_.names;
    for (FrameSymbol f = 0; f < count; ++f) {
      const uint64_t flags = in_.Varint();
      const uint64_t at = flags >> 1 == 0 ? UsualFunctionAt(names[f]) : (flags >> 1) - 1;
      if (in_.failed() || at > names[f].size()) return false;
      const auto function_at = static_cast<uint32_t>(at);
      // A name that was there already would have its old number.
      if (evidence_.stacks.InternFrame(names[f], function_at, (flags & 1) == 0) != f) return false;
    }
    evidence_.scenarios.assign(names.begin() + static_cast<ptrdiff_t>(count), names.end());
    return true;
  }

  bool Stacks() {
    const auto count = static_cast<StackIndex>(forest_.size());
    if (count > kMaxIndex) return false;
    evidence_.stacks.Reserve(count);
    for (StackIndex s = 0; s < count; ++s) {
      // Nor would an equal stack have a number of its own.
      if (evidence_.stacks.InternStack(forest_.parents[s], forest_.symbols[s]) != s) return false;
    }
    return true;
  }

  bool Counts() {
    const size_t count = forest_.size();
    if (in_.remaining() / 3 < count) return false;
    const StackCharges charges(evidence_);
    evidence_.occurrences.resize(count);
    evidence_.distinct_wait_ns.resize(count);
    evidence_.distinct_run_ns.resize(count);
    for (uint64_t& number : evidence_.occurrences) number = in_.Varint();
    const auto less = [&](uint64_t charged_ns) {
      return static_cast<int64_t>(charged_ns - static_cast<uint64_t>(in_.SignedVarint()));
    };
    for (size_t s = 0; s < count; ++s) evidence_.distinct_wait_ns[s] = less(charges.wait_ns[s]);
    for (size_t s = 0; s < count; ++s) evidence_.distinct_run_ns[s] = less(charges.run_ns[s]);
    return !in_.failed();
  }

  // Those of the others are the stack of the wait before, if there was one.
  static bool MustHaveStack(PathKind kind) {
    return kind != PathKind::kReady && kind != PathKind::kPreempted;
  }

  bool Nodes() {
    const size_t count = ReadCount(in_, 4);
    if (count > kMaxIndex) return false;
    std::vector<PathNode> nodes(count);
    const auto take = [&](size_t n, uint32_t parent) { nodes[n].parent = parent; };
    if (!corpus::ReadParents(count, take, in_)) return false;
    for (PathNode& node : nodes) {
      const uint64_t stack = in_.Varint();
      if (stack > evidence_.stacks.stacks()) return false;
      node.stack = static_cast<StackIndex>(stack - 1);
    }
    for (size_t n = 0; n < count; ++n) {
      const uint8_t kind = in_.U8();
      const uint8_t wait_class = in_.U8();
      if (kind > static_cast<uint8_t>(PathKind::kHardware)) return false;
      if (wait_class >= waitgraph::kWaitClasses) return false;
      nodes[n].kind = static_cast<PathKind>(kind);
      nodes[n].wait_class = static_cast<waitgraph::WaitClass>(wait_class);
      if (nodes[n].stack == kNoStack && MustHaveStack(nodes[n].kind)) return false;
      if (evidence_.forest.Intern(nodes[n]) != n) return false;
    }
    return !in_.failed();
  }

  bool Instances() {
    corpus::ReadTraces(evidence_.traces, in_);
    evidence_.instances.resize(ReadCount(in_, 5));
    uint64_t end = 0;
    for (InstanceFacts& facts : evidence_.instances) {
      const uint64_t trace = in_.Varint();
      const uint64_t index = in_.Varint();
      const uint64_t scenario = in_.Varint();
      facts.dur_ns = in_.SignedVarint();
      const uint64_t rows = in_.Varint();
      if (trace >= evidence_.traces.size() || index > UINT32_MAX) return false;
      if (scenario >= evidence_.scenarios.size()) return false;
      if (rows > evidence_.rows.size() - end) return false;
      facts.trace = static_cast<uint32_t>(trace);
      facts.index = static_cast<uint32_t>(index);
      facts.scenario = static_cast<uint32_t>(scenario);
      facts.rows_end = end += rows;
    }
    return end == evidence_.rows.size();
  }

  bool Roles() {
    const size_t count = ReadCount(in_, 12);
    for (size_t i = 0; i < count; ++i) {
      waitgraph::Role role;
      const std::string scenario(in_.String());
      const std::string idle_frame(in_.String());
      role.scenario = in_.String();
      role.process = in_.String();
      role.loop_frame = in_.String();
      role.idle_frame = in_.String();
      const uint8_t basis = in_.U8();
      if (basis > static_cast<uint8_t>(waitgraph::RoleBasis::kStacks)) return false;
      role.basis = static_cast<waitgraph::RoleBasis>(basis);
      role.by_sync = in_.U8() != 0;
      for (uint64_t* number : {&role.threads, &role.instances, &role.left_out_threads}) {
        *number = in_.Varint();
      }
      for (int64_t* dur_ns : {&role.instance_ns, &role.idle_ns, &role.left_out_ns}) {
        *dur_ns = in_.SignedVarint();
      }
      evidence_.roles.emplace(std::pair(scenario, idle_frame), std::move(role));
    }
    return !in_.failed() && evidence_.roles.size() == count;
  }

  bool Rest() {
    EachNumber(
        evidence_.account, [&](int64_t& number) { number = in_.SignedVarint(); },
        [&](uint64_t& number) { number = in_.Varint(); });
    evidence_.diagnostics = corpus::ReadDiagnostics(in_);
    evidence_.unreadable = corpus::ReadStrings(in_);
    return !in_.failed();
  }

  ByteReader in_;
  corpus::CallForest forest_;
  Evidence evidence_;
};

}  // namespace

std::string EncodeEvidence(const Evidence& evidence) {
  ByteWriter out;
  WriteStacks(evidence, out);
  out.Varint(kEvidenceVersion);
  out.U8(static_cast<uint8_t>(evidence.scope));
  WriteFrames(evidence.stacks, out);
  WriteNodes(evidence.forest, out);
  corpus::WriteRows(evidence.rows, out);
  WriteCounts(evidence, out);
  corpus::WriteTraces(evidence.traces, out);
  WriteInstances(evidence, out);
  out.Varint(evidence.roles.size());
  for (const auto& [key, role] : evidence.roles) {
    out.String(key.first);
    out.String(key.second);
    WriteRole(role, out);
  }
  EachNumber(
      evidence.account, [&](const int64_t& number) { out.SignedVarint(number); },
      [&](const uint64_t& number) { out.Varint(number); });
  corpus::WriteDiagnostics(evidence.diagnostics, out);
  corpus::WriteStrings(evidence.unreadable, out);
  return out.Take();
}

std::optional<Evidence> DecodeEvidence(std::string_view bytes) {
  return EvidenceReader(bytes).Read();
}

std::string EncodeOptions(const ReduceOptions& options) {
  // Every member by name: one that is added cannot be forgotten here.
  const auto& [area, automatic, always_automatic, scenarios, slower_than_ns] = options;
  ByteWriter out;
  out.Varint(kEvidenceVersion);
  const auto& [scope, with, without, classes, path, max_events] = area;
  out.U8(static_cast<uint8_t>(scope));
  corpus::WriteStrings(with, out);
  corpus::WriteStrings(without, out);
  out.Varint(classes.size());
  for (const waitgraph::WaitClass wait_class : classes) out.U8(static_cast<uint8_t>(wait_class));
  const auto& [max_depth, max_segments] = path;
  out.Varint(max_depth);
  out.Varint(max_segments);
  out.Varint(max_events);
  corpus::WriteAutomatic(automatic, out);
  out.U8(always_automatic ? 1 : 0);
  corpus::WriteStrings(scenarios, out);
  out.SignedVarint(slower_than_ns);
  return out.Take();
}

std::optional<ReduceOptions> DecodeOptions(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Varint() != kEvidenceVersion) return std::nullopt;
  ReduceOptions options;
  const uint8_t scope = in.U8();
  if (scope > static_cast<uint8_t>(waitgraph::Scope::kThread)) return std::nullopt;
  options.area.scope = static_cast<waitgraph::Scope>(scope);
  options.area.with = corpus::ReadStrings(in);
  options.area.without = corpus::ReadStrings(in);
  options.area.classes.resize(ReadCount(in));
  for (waitgraph::WaitClass& wait_class : options.area.classes) {
    const uint8_t number = in.U8();
    if (number >= waitgraph::kWaitClasses) return std::nullopt;
    wait_class = static_cast<waitgraph::WaitClass>(number);
  }
  const uint64_t max_depth = in.Varint();
  const uint64_t max_segments = in.Varint();
  if (max_depth > UINT32_MAX || max_segments > UINT32_MAX) return std::nullopt;
  options.area.path.max_depth = static_cast<uint32_t>(max_depth);
  options.area.path.max_segments = static_cast<uint32_t>(max_segments);
  options.area.max_events = in.Varint();
  corpus::ReadAutomatic(options.automatic, in);
  options.always_automatic = in.U8() != 0;
  options.scenarios = corpus::ReadStrings(in);
  options.slower_than_ns = in.SignedVarint();
  if (in.failed() || in.remaining() != 0) return std::nullopt;
  return options;
}

}  // namespace culprit::stackmine
