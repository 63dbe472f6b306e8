// SPDX-License-Identifier: Apache-2.0
#include "causality/evidence_codec.h"

#include "base/bytes.h"
#include "corpus/part_codec.h"

namespace culprit::causality {
namespace {

using corpus::ReadCount;

constexpr uint32_t kMaxIndex = UINT32_MAX - 1;  // UINT32_MAX is "none" everywhere

// Numbers that may be "none" are written one higher, none as zero.
uint64_t OrNone(uint32_t number) { return number == UINT32_MAX ? 0 : uint64_t{number} + 1; }

// ---- writing

void WriteTraces(const std::vector<TraceFacts>& traces, ByteWriter& out) {
  out.Varint(traces.size());
  for (const TraceFacts& facts : traces) {
    out.String(facts.name);
    out.U8(facts.automatic ? 1 : 0);
    out.Varint(facts.events);
  }
}

void WriteInstances(const std::vector<InstanceFacts>& instances, ByteWriter& out) {
  out.Varint(instances.size());
  for (const InstanceFacts& facts : instances) {
    out.Varint(facts.trace);
    out.Varint(facts.index);
    out.Varint(facts.scenario);
    out.SignedVarint(facts.dur_ns);
  }
}

void WriteCells(const std::vector<ImpactCell>& cells, ByteWriter& out) {
  out.Varint(cells.size());
  for (const ImpactCell& cell : cells) {
    out.Varint(OrNone(cell.trace));
    out.Varint(OrNone(cell.scenario));
    out.Varint(cell.component);
  }
  for (const ImpactCell& cell : cells) {
    const ImpactTimes& times = cell.times;
    for (const int64_t dur_ns : {times.wait_ns, times.run_ns, times.distinct_wait_ns}) {
      out.SignedVarint(dur_ns);
    }
    for (const uint64_t count : {times.waits, times.distinct_waits, times.instances}) {
      out.Varint(count);
    }
  }
}

void WritePropagated(const std::vector<PropagatedWait>& waits, ByteWriter& out) {
  out.Varint(waits.size());
  for (const PropagatedWait& wait : waits) {
    for (const std::string* text :
         {&wait.trace, &wait.thread, &wait.waker, &wait.signature, &wait.unwait_signature}) {
      out.String(*text);
    }
    for (const int64_t number_ns : {wait.begin_ns, wait.dur_ns, wait.charged_ns, wait.distinct_ns})
      out.SignedVarint(number_ns);
    out.Varint(wait.instances);
    out.Varint(wait.instance_indexes.size());
    for (const uint32_t index : wait.instance_indexes) out.Varint(index);
  }
}

std::string ImpactSection(const Evidence& evidence) {
  ByteWriter out;
  out.SignedVarint(evidence.account.ready_ns);
  out.Varint(evidence.account.waits_without_stack);
  WriteCells(evidence.cells, out);
  WriteCells(evidence.trace_cells, out);
  WritePropagated(evidence.propagated, out);
  return out.Take();
}

void WriteForest(const std::vector<ChainNode>& nodes, ByteWriter& out) {
  out.Varint(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    out.Varint(nodes[n].parent == kNoChain ? 0 : n - nodes[n].parent);
  }
  for (const ChainNode& node : nodes) out.Varint(OrNone(node.first));
  for (const ChainNode& node : nodes) out.Varint(OrNone(node.second));
  for (const ChainNode& node : nodes) out.U8(static_cast<uint8_t>(node.kind));
}

void WriteRows(const Evidence& evidence, ByteWriter& out) {
  for (size_t i = 0; i < evidence.instances.size(); ++i) {
    const InstanceFacts& facts = evidence.instances[i];
    out.Varint((facts.rows_end - evidence.rows_begin(i)) << 1 | (facts.truncated ? 1U : 0U));
  }
  out.Varint(evidence.rows.size());
  int64_t last = 0;
  for (const ChainRow& row : evidence.rows) {
    out.SignedVarint(int64_t{row.node} - last);
    last = row.node;
  }
  for (const ChainRow& row : evidence.rows) out.Varint(row.events);
  for (const ChainRow& row : evidence.rows) out.SignedVarint(row.cost_ns);
}

std::string ChainsSection(const Evidence& evidence) {
  ByteWriter out;
  out.Varint(evidence.account.chain_events);
  out.Varint(evidence.account.truncated_instances);
  out.Varint(evidence.signatures.size());
  for (size_t i = 0; i < evidence.signatures.size(); ++i) {
    out.String(evidence.signatures.Get(StringId(i)));
  }
  WriteForest(evidence.forest.nodes(), out);
  WriteRows(evidence, out);
  return out.Take();
}

// ---- reading

class EvidenceReader {
 public:
  EvidenceReader(std::string_view bytes, const EvidenceParts& parts) : in_(bytes), parts_(parts) {}

  std::optional<Evidence> Read() {
    if (in_.Varint() != kEvidenceVersion) return std::nullopt;
    evidence_.components = corpus::ReadStrings(in_);
    evidence_.scenarios = corpus::ReadStrings(in_);
    if (!Index() || !Traces() || !Instances()) return std::nullopt;
    evidence_.not_chosen = corpus::ReadStrings(in_);
    ExtractAccount& account = evidence_.account;
    for (uint64_t* number : {&account.events, &account.nodes, &account.instances_left_out}) {
      *number = in_.Varint();
    }
    account.idle_ns = in_.SignedVarint();
    evidence_.diagnostics = corpus::ReadDiagnostics(in_);
    evidence_.unreadable = corpus::ReadStrings(in_);
    const std::string_view impact = in_.String();
    const std::string_view chains = in_.String();
    if (in_.failed() || in_.remaining() != 0) return std::nullopt;
    if (parts_.impact && !Impact(impact)) return std::nullopt;
    if (parts_.chains && !Chains(chains)) return std::nullopt;
    return std::move(evidence_);
  }

 private:
  // The whole set stands apart: a module may have its name.
  bool Index() {
    for (uint32_t i = 1; i < evidence_.components.size(); ++i) {
      if (!evidence_.component_index.emplace(evidence_.components[i], i).second) return false;
    }
    for (uint32_t i = 0; i < evidence_.scenarios.size(); ++i) {
      if (!evidence_.scenario_index.emplace(evidence_.scenarios[i], i).second) return false;
    }
    return !in_.failed();
  }

  bool Traces() {
    evidence_.traces.resize(ReadCount(in_, 3));
    for (TraceFacts& facts : evidence_.traces) {
      facts.name = in_.String();
      facts.automatic = in_.U8() != 0;
      facts.events = in_.Varint();
    }
    return !in_.failed();
  }

  bool Instances() {
    evidence_.instances.resize(ReadCount(in_, 4));
    for (InstanceFacts& facts : evidence_.instances) {
      const uint64_t trace = in_.Varint();
      const uint64_t index = in_.Varint();
      const uint64_t scenario = in_.Varint();
      facts.dur_ns = in_.SignedVarint();
      if (trace >= evidence_.traces.size() || index > UINT32_MAX) return false;
      if (scenario >= evidence_.scenarios.size()) return false;
      facts.trace = static_cast<uint32_t>(trace);
      facts.index = static_cast<uint32_t>(index);
      facts.scenario = static_cast<uint32_t>(scenario);
    }
    return !in_.failed();
  }

  bool Cells(ByteReader& in, std::vector<ImpactCell>& cells) {
    cells.resize(ReadCount(in, 9));
    for (ImpactCell& cell : cells) {
      const uint64_t trace = in.Varint();
      const uint64_t scenario = in.Varint();
      const uint64_t component = in.Varint();
      if (trace > evidence_.traces.size() || scenario > evidence_.scenarios.size()) return false;
      if (component >= evidence_.components.size()) return false;
      cell.trace = static_cast<uint32_t>(trace - 1);
      cell.scenario = static_cast<uint32_t>(scenario - 1);
      cell.component = static_cast<ComponentId>(component);
    }
    for (ImpactCell& cell : cells) {
      ImpactTimes& times = cell.times;
      for (int64_t* dur_ns : {&times.wait_ns, &times.run_ns, &times.distinct_wait_ns}) {
        *dur_ns = in.SignedVarint();
      }
      for (uint64_t* count : {&times.waits, &times.distinct_waits, &times.instances}) {
        *count = in.Varint();
      }
    }
    return !in.failed();
  }

  bool Propagated(ByteReader& in) {
    const size_t count = ReadCount(in, 11);
    if (count > kMaxPropagatedWaits) return false;
    evidence_.propagated.resize(count);
    for (PropagatedWait& wait : evidence_.propagated) {
      for (std::string* text :
           {&wait.trace, &wait.thread, &wait.waker, &wait.signature, &wait.unwait_signature}) {
        *text = in.String();
      }
      for (int64_t* number_ns :
           {&wait.begin_ns, &wait.dur_ns, &wait.charged_ns, &wait.distinct_ns}) {
        *number_ns = in.SignedVarint();
      }
      wait.instances = in.Varint();
      wait.instance_indexes.resize(ReadCount(in));
      for (uint32_t& index : wait.instance_indexes) {
        const uint64_t number = in.Varint();
        if (number > UINT32_MAX) return false;
        index = static_cast<uint32_t>(number);
      }
    }
    return !in.failed();
  }

  bool Impact(std::string_view section) {
    ByteReader in(section);
    evidence_.account.ready_ns = in.SignedVarint();
    evidence_.account.waits_without_stack = in.Varint();
    if (!Cells(in, evidence_.cells) || !Cells(in, evidence_.trace_cells)) return false;
    for (uint32_t i = 0; i < evidence_.cells.size(); ++i) {
      const ImpactCell& cell = evidence_.cells[i];
      const uint64_t key = CellKey(cell.scenario, cell.component);
      if (!evidence_.cell_index.emplace(key, i).second) return false;
    }
    for (const ImpactCell& cell : evidence_.trace_cells) {
      if (cell.trace == kAllTraces) return false;
    }
    return Propagated(in) && in.remaining() == 0;
  }

  bool Signatures(ByteReader& in) {
    const size_t count = ReadCount(in);
    for (uint32_t i = 0; i < count; ++i) {
      const std::string_view text = in.String();
      if (in.failed() || evidence_.signatures.Intern(text).value != i) return false;
    }
    return !in.failed();
  }

  bool SignatureNumbers(ByteReader& in, std::vector<ChainNode>& nodes,
                        SignatureId ChainNode::*number) const {
    for (ChainNode& node : nodes) {
      const uint64_t read = in.Varint();
      if (read > evidence_.signatures.size()) return false;
      node.*number = static_cast<SignatureId>(read - 1);
    }
    return true;
  }

  bool Forest(ByteReader& in) {
    const size_t count = ReadCount(in, 4);
    if (count > kMaxIndex / 4) return false;
    std::vector<ChainNode> nodes(count);
    for (size_t n = 0; n < count; ++n) {
      const uint64_t back = in.Varint();
      if (back > n) return false;
      if (back != 0) nodes[n].parent = static_cast<ChainIndex>(n - back);
    }
    if (!SignatureNumbers(in, nodes, &ChainNode::first)) return false;
    if (!SignatureNumbers(in, nodes, &ChainNode::second)) return false;
    for (size_t n = 0; n < count; ++n) {
      const uint8_t kind = in.U8();
      if (in.failed() || kind > static_cast<uint8_t>(ChainKind::kUnexplained)) return false;
      nodes[n].kind = static_cast<ChainKind>(kind);
      if (evidence_.forest.Intern(nodes[n]) != n) return false;
    }
    return true;
  }

  bool Rows(ByteReader& in) {
    uint64_t end = 0;
    for (InstanceFacts& facts : evidence_.instances) {
      const uint64_t rows = in.Varint();
      facts.truncated = (rows & 1) != 0;
      if (rows >> 1 > in.remaining()) return false;
      facts.rows_end = end += rows >> 1;
    }
    const size_t count = ReadCount(in, 3);
    if (count != end) return false;
    evidence_.rows.resize(count);
    const auto nodes = static_cast<int64_t>(evidence_.forest.nodes().size());
    int64_t last = 0;
    for (ChainRow& row : evidence_.rows) {
      const int64_t step = in.SignedVarint();
      if (step > nodes || step < -nodes) return false;
      last += step;
      if (last < 0 || last >= nodes) return false;
      row.node = static_cast<ChainIndex>(last);
    }
    for (ChainRow& row : evidence_.rows) {
      const uint64_t events = in.Varint();
      if (events > UINT32_MAX) return false;
      row.events = static_cast<uint32_t>(events);
    }
    for (ChainRow& row : evidence_.rows) row.cost_ns = in.SignedVarint();
    return !in.failed();
  }

  bool Chains(std::string_view section) {
    ByteReader in(section);
    evidence_.account.chain_events = in.Varint();
    evidence_.account.truncated_instances = in.Varint();
    return Signatures(in) && Forest(in) && Rows(in) && in.remaining() == 0;
  }

  ByteReader in_;
  const EvidenceParts parts_;
  Evidence evidence_;
};

}  // namespace

std::string EncodeEvidence(const Evidence& evidence) {
  ByteWriter out;
  out.Varint(kEvidenceVersion);
  corpus::WriteStrings(evidence.components, out);
  corpus::WriteStrings(evidence.scenarios, out);
  WriteTraces(evidence.traces, out);
  WriteInstances(evidence.instances, out);
  corpus::WriteStrings(evidence.not_chosen, out);
  const ExtractAccount& account = evidence.account;
  for (const uint64_t number : {account.events, account.nodes, account.instances_left_out}) {
    out.Varint(number);
  }
  out.SignedVarint(account.idle_ns);
  corpus::WriteDiagnostics(evidence.diagnostics, out);
  corpus::WriteStrings(evidence.unreadable, out);
  out.String(ImpactSection(evidence));
  out.String(ChainsSection(evidence));
  return out.Take();
}

std::optional<Evidence> DecodeEvidence(std::string_view bytes, const EvidenceParts& parts) {
  return EvidenceReader(bytes, parts).Read();
}

void KeepOnly(const EvidenceParts& parts, Evidence& evidence) {
  if (!parts.impact) {
    evidence.cells.clear();
    evidence.trace_cells.clear();
    evidence.propagated.clear();
    evidence.cell_index.clear();
    evidence.account.ready_ns = 0;
    evidence.account.waits_without_stack = 0;
  }
  if (parts.chains) return;
  evidence.signatures = StringTable();
  evidence.forest = ChainForest();
  evidence.rows.clear();
  for (InstanceFacts& facts : evidence.instances) {
    facts.truncated = false;
    facts.rows_end = 0;
  }
  evidence.account.chain_events = 0;
  evidence.account.truncated_instances = 0;
}

std::string EncodeOptions(const ExtractOptions& options) {
  // Every member by name: one that is added cannot be forgotten here.
  const auto& [component, automatic, always_automatic, scenarios, impact, chains, chain_scenarios,
               max_chain_events] = options;
  ByteWriter out;
  out.Varint(kEvidenceVersion);
  const auto& [by, globs, except] = component;
  out.U8(static_cast<uint8_t>(by));
  corpus::WriteStrings(globs, out);
  corpus::WriteStrings(except, out);
  const auto& [idle, not_idle, kernel_threads] = automatic;
  corpus::WriteStrings(idle, out);
  corpus::WriteStrings(not_idle, out);
  out.U8(kernel_threads ? 1 : 0);
  out.U8(always_automatic ? 1 : 0);
  corpus::WriteStrings(scenarios, out);
  out.U8(impact ? 1 : 0);
  out.U8(chains ? 1 : 0);
  corpus::WriteStrings(chain_scenarios, out);
  out.Varint(max_chain_events);
  return out.Take();
}

std::optional<ExtractOptions> DecodeOptions(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Varint() != kEvidenceVersion) return std::nullopt;
  ExtractOptions options;
  const uint8_t by = in.U8();
  if (by > static_cast<uint8_t>(By::kCgroup)) return std::nullopt;
  options.component.by = static_cast<By>(by);
  options.component.globs = corpus::ReadStrings(in);
  options.component.except = corpus::ReadStrings(in);
  options.automatic.idle = corpus::ReadStrings(in);
  options.automatic.not_idle = corpus::ReadStrings(in);
  options.automatic.kernel_threads = in.U8() != 0;
  options.always_automatic = in.U8() != 0;
  options.scenarios = corpus::ReadStrings(in);
  options.impact = in.U8() != 0;
  options.chains = in.U8() != 0;
  options.chain_scenarios = corpus::ReadStrings(in);
  options.max_chain_events = in.Varint();
  if (in.failed() || in.remaining() != 0) return std::nullopt;
  return options;
}

}  // namespace culprit::causality
