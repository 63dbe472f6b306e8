// SPDX-License-Identifier: Apache-2.0
//
// ExtractTrace: one trace to its Evidence, for impact and contrast at once. Each
// instance's wait graph (waitgraph/wait_graph.h) is built once; then
//
// - impact: the component's top-level waits, breadth first from the roots: a wait
//   of the component counts, what lies under it does not count again. For all
//   components together: a node carries the set of components that every way to
//   it has already passed.
// - chains: roots without the component are removed, their children become roots;
//   what is left is laid into the forest by signature prefix, each ⟨event, place⟩
//   once. The graph is never unfolded: the events of a place give one union of
//   node ranges, and each child is looked at once per place.
//
// Between two waits that end at the same moment the edge counts only in the
// direction in which breadth-first search met them, so false records cannot form
// circles. Waits that were called idle (automatic instances) are left out, ready
// delays are only summed. O(V log V) an instance for V nodes plus its ⟨event,
// place⟩ pairs. A function of the trace and the options; threads may share nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "causality/evidence.h"
#include "trace/trace.h"
#include "waitgraph/auto_instances.h"
#include "waitgraph/timelines.h"

namespace culprit::causality {

struct ExtractOptions {
  ComponentOptions component;
  waitgraph::AutoInstanceOptions automatic;
  bool always_automatic = false;       // even where instances are marked
  std::vector<std::string> scenarios;  // globs; empty: all
  bool impact = true;
  bool chains = true;
  std::vector<std::string> chain_scenarios;  // globs: only of these; empty: all
  // An instance of more ⟨event, place⟩ pairs is cut there and counted as truncated.
  uint64_t max_chain_events = 1 << 22;
};

Evidence ExtractTrace(const trace::Trace& trace, const std::string& name,
                      const ExtractOptions& options);
// The same for who has the time lines already.
Evidence ExtractTrace(const waitgraph::Timelines& timelines, const std::string& name,
                      const ExtractOptions& options);

}  // namespace culprit::causality
