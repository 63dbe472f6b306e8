// SPDX-License-Identifier: Apache-2.0
//
// Plan: what a run computes and how the work is cut, fixed before anything is
// started. Traces stand in the order of the catalog; a shard is a stretch of them
// of about equal events, a part a stretch of shards. Evidence adds up along
// stretches to the same bytes however it is cut, so results do not depend on it.
//
// As JSON (plan.json) it carries everything a task needs: a host that has the run
// folder and the corpus's trace files under the same paths never opens the
// catalog. Passive data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "causality/extract.h"
#include "corpus/catalog.h"
#include "episode/profile.h"
#include "stackmine/reduce.h"

namespace culprit::scale {

// Mining of weighted stacks, cut into pieces of the search (pattern_verbs.h).
struct PatternsPlan {
  int64_t lambda_ns = 1;
  uint64_t max_patterns = 0;  // 0: no bound
  uint64_t pieces = 1;        // each is a shard
  std::string database = {};  // digest of the stacks
};

struct Plan {
  std::string version;  // of the program; another one cannot go on with the run
  std::string corpus;   // folder, absolute
  // The evidence that is wanted; at least one, or
  std::optional<stackmine::ReduceOptions> mine;
  std::optional<causality::ExtractOptions> causes;
  // a profile and nothing else (profile_verbs.h), or
  std::optional<episode::ProfileOptions> profile;
  // patterns and nothing else, without traces.
  std::optional<PatternsPlan> patterns;
  uint64_t max_trace_bytes = 0;          // of memory; larger traces are skipped; 0: none
  std::vector<corpus::TraceRow> traces;  // name, file, sha256, bytes, events, complete
  std::vector<uint64_t> shard_ends;      // in traces; of patterns, in pieces
  std::vector<uint64_t> part_ends;       // in shards; of a profile, in stretches of hashes

  uint64_t shard_begin(uint64_t shard) const { return shard == 0 ? 0 : shard_ends[shard - 1]; }
  uint64_t part_begin(uint64_t part) const { return part == 0 ? 0 : part_ends[part - 1]; }
};

struct PlanOptions {
  std::optional<stackmine::ReduceOptions> mine = {};
  std::optional<causality::ExtractOptions> causes = {};
  std::optional<episode::ProfileOptions> profile = {};
  uint64_t max_trace_bytes = 0;
  uint64_t events_a_shard = 30'000'000;  // some seconds to minutes of work
  uint64_t max_shards = 10'000;
  uint64_t shards_a_part = 32;
};

// Ends of stretches of so many shards; the last may have less.
std::vector<uint64_t> CutIntoParts(uint64_t shards, uint64_t shards_a_part);

// Of traces; reads the catalog.
Result<Plan> MakePlan(const std::string& corpus_folder, const PlanOptions& options);

std::string PlanToJson(const Plan& plan);
Result<Plan> PlanFromJson(std::string_view json, const std::string& file);

}  // namespace culprit::scale
