// SPDX-License-Identifier: Apache-2.0
#include "causality/gather.h"

#include <array>
#include <filesystem>

namespace culprit::causality {
namespace {

// An event as read, its place in the time lines, and in the graph of an instance that
// has all of them.
constexpr uint64_t kBytesAnEvent = 48 + 32 + 60;

ExtractOptions Widened(ExtractOptions options, bool widen) {
  options.impact = options.impact || widen;
  options.chains = options.chains || widen;
  return options;
}

}  // namespace

EvidenceCollector::EvidenceCollector(const ExtractOptions& options, bool keeps_summaries,
                                     SpillOptions spill)
    : EvidenceCollector(EvidenceParts{.impact = options.impact, .chains = options.chains},
                        Widened(options, keeps_summaries), std::move(spill)) {}

EvidenceCollector::EvidenceCollector(const EvidenceParts& wanted, ExtractOptions options,
                                     SpillOptions spill)
    : PartCollector({.name = "causes",
                     .parameters = EncodeOptions(options),
                     .head = corpus::SummaryHead::kNames}),
      wanted_(wanted),
      options_(std::move(options)) {
  sum_.rows.SpillTo(std::move(spill));
}

uint64_t EvidenceCollector::bytes_an_event() const { return kBytesAnEvent; }

void EvidenceCollector::AddUnreadable(const std::string& line) { sum_.unreadable.push_back(line); }

void EvidenceCollector::Report(corpus::GatherReport& report) const {
  report.AddSpilled(sum_.rows.spilled_bytes(), sum_.rows.why_not_spilled());
}

Evidence EvidenceCollector::ExtractPart(corpus::TraceViews& views) const {
  return ExtractTrace(views.Of<waitgraph::Timelines>(), "", options_);
}

std::string EvidenceCollector::EncodePart(const Evidence& part) const {
  return EncodeEvidence(part);
}

std::optional<Evidence> EvidenceCollector::DecodePart(std::string_view bytes) const {
  std::optional<Evidence> part = DecodeEvidence(bytes, wanted_);
  if (part && (part->traces.size() != 1 || !part->unreadable.empty())) return std::nullopt;
  return part;
}

void EvidenceCollector::AddPart(Evidence part, const std::string& trace_name) {
  KeepOnly(wanted_, part);
  part.traces[0].name = trace_name;
  for (PropagatedWait& wait : part.propagated) wait.trace = trace_name;
  AddEvidence(part, sum_);
}

Result<Evidence> GatherEvidence(const std::string& path, const GatherOptions& options,
                                Progress& progress, corpus::GatherReport* report) {
  std::error_code code;
  const bool keeps = options.use_summaries && std::filesystem::is_directory(path, code);
  EvidenceCollector collector(options.extract, keeps, options.spill());
  const std::array<corpus::Collector*, 1> collectors = {&collector};
  CULPRIT_ASSIGN(const corpus::GatherReport gathered,
                 corpus::Gather(path, collectors, options.loop(), progress));
  if (report != nullptr) report->Add(gathered);
  return collector.Take();
}

}  // namespace culprit::causality
