// SPDX-License-Identifier: Apache-2.0
//
// Evidence as bytes, for summaries of traces and outputs of shards. Integers
// only, by columns; numbers of frames, stacks and nodes are kept as they are, so
// Decode(Encode(e)) is e to the last number and encoding it again gives the same
// bytes. Decoding trusts nothing: every number is held against its table.
// O(size); no state.
//
//   evidence := stacks version scope frames nodes rows counts traces instances roles
//               account diagnostics unreadable
//
// Stacks come first, with the names of frames and scenarios, so that summaries can share
// them (corpus/summary_stacks.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stackmine/evidence.h"
#include "stackmine/reduce.h"

namespace culprit::stackmine {

// Raised whenever ReduceTrace would give other evidence for the same trace and
// options, or the encoding changes. A test holds it against known traces.
inline constexpr uint32_t kEvidenceVersion = 4;

std::string EncodeEvidence(const Evidence& evidence);
std::optional<Evidence> DecodeEvidence(std::string_view bytes);

// What ReduceTrace depends on besides the trace, and back.
std::string EncodeOptions(const ReduceOptions& options);
std::optional<ReduceOptions> DecodeOptions(std::string_view bytes);

}  // namespace culprit::stackmine
