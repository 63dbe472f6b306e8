// SPDX-License-Identifier: Apache-2.0
#include "stackmine/gather.h"

#include <array>

#include "stackmine/evidence_codec.h"

namespace culprit::stackmine {
namespace {

// An event as read, its place in the time lines and on the paths.
constexpr uint64_t kBytesAnEvent = 48 + 32 + 32;

}  // namespace

EvidenceCollector::EvidenceCollector(ReduceOptions options, SpillOptions spill)
    : PartCollector({.name = "mine",
                     .parameters = EncodeOptions(options),
                     .head = corpus::SummaryHead::kStacks}),
      options_(std::move(options)) {
  sum_.scope = options_.area.scope;
  sum_.rows.SpillTo(std::move(spill));
}

uint64_t EvidenceCollector::bytes_an_event() const { return kBytesAnEvent; }

void EvidenceCollector::AddUnreadable(const std::string& line) { sum_.unreadable.push_back(line); }

void EvidenceCollector::Report(corpus::GatherReport& report) const {
  report.AddSpilled(sum_.rows.spilled_bytes(), sum_.rows.why_not_spilled());
}

Evidence EvidenceCollector::ExtractPart(corpus::TraceViews& views) const {
  return ReduceTrace(views.Of<waitgraph::Timelines>(), "", options_);
}

std::string EvidenceCollector::EncodePart(const Evidence& part) const {
  return EncodeEvidence(part);
}

std::optional<Evidence> EvidenceCollector::DecodePart(std::string_view bytes) const {
  std::optional<Evidence> part = DecodeEvidence(bytes);
  if (part && (part->traces.size() != 1 || !part->unreadable.empty())) return std::nullopt;
  return part;
}

void EvidenceCollector::AddPart(Evidence part, const std::string& trace_name) {
  part.traces[0].name = trace_name;
  AddEvidence(part, sum_);
}

Result<Evidence> GatherEvidence(const std::string& path, const GatherOptions& options,
                                Progress& progress, corpus::GatherReport* report) {
  EvidenceCollector collector(options.reduce, options.spill());
  const std::array<corpus::Collector*, 1> collectors = {&collector};
  CULPRIT_ASSIGN(const corpus::GatherReport gathered,
                 corpus::Gather(path, collectors, options.loop(), progress));
  if (report != nullptr) report->Add(gathered);
  return collector.Take();
}

}  // namespace culprit::stackmine
