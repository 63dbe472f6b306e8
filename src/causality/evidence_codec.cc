// SPDX-License-Identifier: Apache-2.0
#include "causality/evidence_codec.h"

#include <algorithm>

#include "base/bytes.h"
#include "corpus/part_codec.h"

namespace culprit::causality {
namespace {

using corpus::ReadCount;

constexpr uint32_t kMaxIndex = UINT32_MAX - 1;  // UINT32_MAX is "none" everywhere

using corpus::OrNone;

// ---- writing

// Of components, scenarios, what no glob chose, and signatures, in this order.
void WriteNames(const Evidence& evidence, ByteWriter& out) {
  const StringTable& signatures = evidence.signatures;
  out.Varint(evidence.components.size() + evidence.scenarios.size() + evidence.not_chosen.size() +
             signatures.size());
  for (const auto* names : {&evidence.components, &evidence.scenarios, &evidence.not_chosen}) {
    for (const std::string& name : *names) out.String(name);
  }
  for (size_t i = 0; i < signatures.size(); ++i) out.String(signatures.Get(StringId(i)));
}

void WriteInstances(const LargeVector<InstanceFacts>& instances, ByteWriter& out) {
  out.Varint(instances.size());
  for (const InstanceFacts& facts : instances) {
    out.Varint(facts.trace);
    out.Varint(facts.index);
    out.Varint(facts.scenario);
    out.SignedVarint(facts.dur_ns);
  }
}

// The same walk over the columns of times serves both directions.
template <class Cells, class Signed, class Unsigned>
void EachColumn(Cells& cells, const Signed& each_ns, const Unsigned& each_count) {
  for (const auto number :
       {&ImpactTimes::wait_ns, &ImpactTimes::run_ns, &ImpactTimes::distinct_wait_ns}) {
    for (auto& cell : cells) each_ns(cell.times.*number);
  }
  for (const auto number :
       {&ImpactTimes::waits, &ImpactTimes::distinct_waits, &ImpactTimes::instances}) {
    for (auto& cell : cells) each_count(cell.times.*number);
  }
}

void WriteCells(const auto& cells, ByteWriter& out) {
  out.Varint(cells.size());
  for (const ImpactCell& cell : cells) out.Varint(OrNone(cell.trace));
  for (const ImpactCell& cell : cells) out.Varint(OrNone(cell.scenario));
  for (const ImpactCell& cell : cells) out.Varint(cell.component);
  EachColumn(
      cells, [&](int64_t dur_ns) { out.SignedVarint(dur_ns); },
      [&](uint64_t count) { out.Varint(count); });
}

// What one trace keeps beside the sums is a part of them.
std::vector<ImpactCell> CellsOfOneTrace(const Evidence& evidence) {
  std::vector<ImpactCell> cells;
  for (ImpactCell cell : evidence.cells) {
    if (cell.scenario != kAllScenarios && cell.component != kWholeSet) continue;
    cell.trace = 0;
    cells.push_back(cell);
  }
  return cells;
}

void WriteTraceCells(const Evidence& evidence, ByteWriter& out) {
  const bool of_one = evidence.traces.size() == 1 &&
                      std::ranges::equal(evidence.trace_cells, CellsOfOneTrace(evidence));
  out.U8(of_one ? 1 : 0);
  if (!of_one) WriteCells(evidence.trace_cells, out);
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
  WriteTraceCells(evidence, out);
  WritePropagated(evidence.propagated, out);
  return out.Take();
}

void WriteForest(const LargeVector<ChainNode>& nodes, ByteWriter& out) {
  out.Varint(nodes.size());
  corpus::WriteParents(
      nodes.size(), [&](size_t n) { return nodes[n].parent; }, out);
  for (const ChainNode& node : nodes) out.Varint(OrNone(node.first));
  for (const ChainNode& node : nodes) out.Varint(OrNone(node.second));
  for (const ChainNode& node : nodes) out.U8(static_cast<uint8_t>(node.kind));
}

void WriteRows(const Evidence& evidence, ByteWriter& out) {
  for (size_t i = 0; i < evidence.instances.size(); ++i) {
    const InstanceFacts& facts = evidence.instances[i];
    out.Varint((facts.rows_end - evidence.rows_begin(i)) << 1 | (facts.truncated ? 1U : 0U));
  }
  corpus::WriteRows(evidence.rows, out);
}

std::string ChainsSection(const Evidence& evidence) {
  ByteWriter out;
  out.Varint(evidence.account.chain_events);
  out.Varint(evidence.account.truncated_instances);
  WriteForest(evidence.forest.nodes(), out);
  WriteRows(evidence, out);
  return out.Take();
}

// ---- reading

class EvidenceReader {
 public:
  EvidenceReader(std::string_view bytes, const EvidenceParts& parts) : in_(bytes), parts_(parts) {}

  std::optional<Evidence> Read() {
    names_ = corpus::ReadViews(in_);
    if (in_.Varint() != kEvidenceVersion) return std::nullopt;
    if (!Names() || !Index()) return std::nullopt;
    corpus::ReadTraces(evidence_.traces, in_);
    if (!Instances()) return std::nullopt;
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
  // What is left is of signatures.
  bool Names() {
    for (auto* names : {&evidence_.components, &evidence_.scenarios, &evidence_.not_chosen}) {
      const uint64_t count = in_.Varint();
      if (count > names_.size() - names_used_) return false;
      const auto begin = names_.begin() + static_cast<ptrdiff_t>(names_used_);
      names->assign(begin, begin + static_cast<ptrdiff_t>(count));
      names_used_ += count;
    }
    return true;
  }

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

  bool Cells(ByteReader& in, auto& cells) {
    cells.resize(ReadCount(in, 9));
    for (ImpactCell& cell : cells) {
      const uint64_t trace = in.Varint();
      if (trace > evidence_.traces.size()) return false;
      cell.trace = static_cast<uint32_t>(trace - 1);
    }
    for (ImpactCell& cell : cells) {
      const uint64_t scenario = in.Varint();
      if (scenario > evidence_.scenarios.size()) return false;
      cell.scenario = static_cast<uint32_t>(scenario - 1);
    }
    for (ImpactCell& cell : cells) {
      const uint64_t component = in.Varint();
      if (component >= evidence_.components.size()) return false;
      cell.component = static_cast<ComponentId>(component);
    }
    EachColumn(
        cells, [&](int64_t& dur_ns) { dur_ns = in.SignedVarint(); },
        [&](uint64_t& count) { count = in.Varint(); });
    return !in.failed();
  }

  bool TraceCells(ByteReader& in) {
    if (in.U8() == 0) return Cells(in, evidence_.trace_cells);
    if (evidence_.traces.size() != 1) return false;
    const std::vector<ImpactCell> cells = CellsOfOneTrace(evidence_);
    evidence_.trace_cells.assign(cells.begin(), cells.end());
    return true;
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
    if (!Cells(in, evidence_.cells) || !TraceCells(in)) return false;
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

  bool Signatures() {
    for (size_t i = names_used_; i < names_.size(); ++i) {
      if (evidence_.signatures.Intern(names_[i]).value != i - names_used_) return false;
    }
    return true;
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
    const auto take = [&](size_t n, uint32_t parent) { nodes[n].parent = parent; };
    if (!corpus::ReadParents(count, take, in)) return false;
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
    return corpus::ReadRows(evidence_.forest.nodes().size(), evidence_.rows, in) &&
           evidence_.rows.size() == end;
  }

  bool Chains(std::string_view section) {
    ByteReader in(section);
    evidence_.account.chain_events = in.Varint();
    evidence_.account.truncated_instances = in.Varint();
    return Signatures() && Forest(in) && Rows(in) && in.remaining() == 0;
  }

  ByteReader in_;
  const EvidenceParts parts_;
  std::vector<std::string_view> names_;
  size_t names_used_ = 0;
  Evidence evidence_;
};

}  // namespace

std::string EncodeEvidence(const Evidence& evidence) {
  ByteWriter out;
  WriteNames(evidence, out);
  out.Varint(kEvidenceVersion);
  for (const auto* names : {&evidence.components, &evidence.scenarios, &evidence.not_chosen}) {
    out.Varint(names->size());
  }
  corpus::WriteTraces(evidence.traces, out);
  WriteInstances(evidence.instances, out);
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
  corpus::WriteAutomatic(automatic, out);
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
  corpus::ReadAutomatic(options.automatic, in);
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
