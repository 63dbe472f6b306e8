// SPDX-License-Identifier: Apache-2.0
//
// Infer: the functions behind what a program does too much of, from its system
// calls alone (PerfScope; docs/inference.md). Two methods. kExcess compares the
// trace with normal ones of comparable load, or with the profile's own totals,
// and shares the excess out by ownership in the profile. kPaper matches episodes
// of abnormal units with those of functions.
//
// Beside the answer stands what tells how far to trust it: the length of the
// list that the normal trace gives against itself, the distance of the two mixes
// of work, what no profiled function owns, and in plain sentences what could not
// be done. Where the trace has stacks, their own verdict stands beside. A
// function of its inputs, the same for any number of threads. The profile's
// symbol table must be the one all logs were read with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "episode/anomalies.h"
#include "episode/episode_match.h"
#include "episode/load.h"
#include "episode/ownership.h"
#include "episode/profile.h"
#include "episode/units.h"

namespace culprit::episode {

enum class Method { kExcess, kPaper };

struct InferOptions {
  Method method = Method::kExcess;
  CompareOptions compare;
  OwnershipOptions ownership;
  EpisodeOptions episodes;
  UnitSource units = UnitSource::kAuto;
  size_t jobs = 0;
};

inline constexpr std::string_view kNotInProfile = "[not in profile]";

struct InferredFunction {
  std::string function;                // label, or kNotInProfile
  std::vector<std::string> co_owners;  // labels of those that cannot be told from it
  double score = 0;                    // excess: calls (or ns) owned, weighted; paper: increase
  double raw_score = 0;                // excess: owned, not weighted; paper: calls matched
  double own = 0;                      // excess: of it, made by the function itself
  std::vector<Symbol> symbols;         // excess: what it owns too many of
  uint64_t matched = 0;                // episodes of the profile seen again
  std::vector<EpisodeMatch> episodes;  // examples of them
  std::vector<uint32_t> units;         // abnormal ones it was seen in; the first kMaxUnitsShown
  uint64_t unit_count = 0;
  std::optional<int64_t> first_ns;  // active from, to
  std::optional<int64_t> last_ns;
  uint32_t order = 0;  // by the time it became active, from 1
};

inline constexpr size_t kMaxUnitsShown = 10;

struct Inference {
  Method method = Method::kExcess;
  std::vector<InferredFunction> functions;  // best first
  std::vector<InferredFunction> time;       // the weaker list: excess time in calls
  std::vector<InferredFunction> stacks;     // the verdict of the trace's own stacks
  uint64_t named = 0;                       // functions in the first list, co-owners included
  uint64_t left_out = 0;                    // rows below the bound
  uint64_t profiled = 0;                    // functions of the profile
  Load load;                                // of the trace
  Comparison comparison;                    // kExcess, and for information with kPaper
  bool against_trace = false;               // normal is a trace, not the profile
  // Rows when a normal trace's second half is held against its first and the other
  // normal traces, or the other way round, whichever gives more.
  std::optional<uint64_t> null_rows;
  Units units;
  Anomalies anomalies;
  uint64_t sequences_capped = 0;      // kPaper
  std::vector<std::string> notes;     // what the reader must know
  std::vector<std::string> warnings;  // what makes the answer doubtful
};

// Without normal traces the profile's totals are the normal side. `stack_profile` may
// be null; it is a profile made of the trace itself, from its stacks.
Inference Infer(const Profile& profile, const SyscallLog& log, std::span<const SyscallLog> normals,
                const Profile* stack_profile, const InferOptions& options);

// Modules that the profile and a trace have in different builds.
std::vector<std::string> OtherBuilds(const Profile& profile, const trace::Dictionary& dictionary);

}  // namespace culprit::episode
