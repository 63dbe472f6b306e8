// SPDX-License-Identifier: Apache-2.0
//
// What `impact`, `contrast` and `diff` have in common: the flags that choose
// component and instances, reading a corpus or a trace into its Evidence, the
// head of their reports, and what to say when nothing was chosen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/progress.h"
#include "base/result.h"
#include "causality/gather.h"
#include "cli/command.h"
#include "cli/show_target.h"

namespace culprit::cli {

// --component, --by, --except, --scenario, --auto, --idle, --not-idle,
// --max-memory, -j, and those of gather_flags.h.
std::vector<Flag> CausalityFlags();
// An Error where the values make no sense.
enum class ForWhat { kImpact, kChains };
Result<causality::GatherOptions> ReadCausalityFlags(const Arguments& arguments, ForWhat what);

struct CausalityInput {
  std::string path;
  bool is_corpus = false;
  causality::GatherOptions options;
  bool default_component = false;  // no --component was given
  causality::Evidence evidence;
  corpus::GatherReport gathered;

  // Summed durations of the instances.
  int64_t total_ns() const;
  // "*.sys, by module", for the head of a report.
  std::string ComponentText() const;
  // The line to look at an instance with; `instance` is TRACE:INDEX.
  std::string ShowLine(const std::string& trace, uint32_t index) const;
};

// An Error too if nothing could be read, there are no instances, or nothing is of
// the component: it says what there is instead.
Result<CausalityInput> GatherCausality(const std::string& path, const Arguments& arguments,
                                       causality::GatherOptions options, Progress& progress);

// The same for commands with the flags of engine_options.h, which may ask for a run
// over hosts; its folder is `below` that of --run.
Result<CausalityInput> GatherCausalityAnywhere(const std::string& path, const Arguments& arguments,
                                               causality::GatherOptions options, Output& output,
                                               const std::string& below = {});

struct CausalityTextOptions {
  size_t show = 10;
  size_t width = 100;
  bool color = false;
};

// "3 traces", "1 trace".
std::string Counted(uint64_t count, std::string_view one, std::string_view many);
// Title and facts: what was looked at.
std::string CausalityHead(const CausalityInput& input, const CausalityTextOptions& options);
// Damaged records and traces that were not read; empty if there are none.
std::string CausalitySkipped(const CausalityInput& input, const CausalityTextOptions& options);
// "path", "traces", "instances", "d_scn_ns", "component", "by" and the like.
void WriteCausalityHead(const CausalityInput& input, JsonWriter& json);
// "skipped" and "unreadable".
void WriteCausalitySkipped(const CausalityInput& input, JsonWriter& json);

}  // namespace culprit::cli
