// SPDX-License-Identifier: Apache-2.0
//
// Evidence as bytes, for summaries of traces and outputs of shards. Integers
// only, by columns; numbers are kept as they are, so Decode(Encode(e)) is e and
// encoding it again gives the same bytes. Impact and chains stand in sections of
// their own: who wants one of them passes over the other. Decoding trusts
// nothing: every number is held against its table. O(size); no state.
//
//   evidence := names version counts traces instances account diagnostics unreadable
//               impact:section chains:section
//   section  := length:varint bytes
//
// The names of components, scenarios, what no glob chose, and signatures come first,
// so that summaries can share them (corpus/summary_names.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "causality/evidence.h"
#include "causality/extract.h"

namespace culprit::causality {

// Raised whenever ExtractTrace would give other evidence for the same trace and
// options, or the encoding changes. A test holds it against known traces.
inline constexpr uint32_t kEvidenceVersion = 3;

struct EvidenceParts {
  bool impact = true;
  bool chains = true;
};

std::string EncodeEvidence(const Evidence& evidence);
// What `parts` leaves out is as if ExtractOptions had not asked for it.
std::optional<Evidence> DecodeEvidence(std::string_view bytes, const EvidenceParts& parts = {});

// Drops what `parts` leaves out, to the same end.
void KeepOnly(const EvidenceParts& parts, Evidence& evidence);

// What ExtractTrace depends on besides the trace, and back.
std::string EncodeOptions(const ExtractOptions& options);
std::optional<ExtractOptions> DecodeOptions(std::string_view bytes);

}  // namespace culprit::causality
