// SPDX-License-Identifier: Apache-2.0
//
// Part: one named JSON document of a report. The page loads a part when it is
// looked at; a file holds the parts compressed, a server gives them by name.
// docs/report.md describes each; web/src/model.ts is the reader's side.
// Names consist of letters, digits, '-' and '.', so they are safe in an
// address and in an attribute.
#pragma once

#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/findings.h"

namespace culprit::analyze {

struct Part {
  std::string name;
  std::string json;
};

// Bounds that keep a report of thousands of clusters within a few megabytes.
// What is left out is counted in the part that lacks it.
struct PartOptions {
  size_t findings = 8;
  size_t clusters_per_part = 64;
  size_t patterns_per_cluster = 12;
  size_t traces_per_cluster = 200;
  size_t flame_nodes = 20000;
  size_t chain_nodes = 3000;
  size_t scenarios = 40;
  size_t contrast_patterns = 200;
  size_t instances = 100;
  size_t segments = 2000;  // of an instance
};

// What stands in a report beside the analysis.
struct Additions {
  // Of an older recording of the same: flame graphs then tell what changed.
  const stackmine::Evidence* before = nullptr;
  std::vector<Part> parts;  // made elsewhere, each a view of its own
};

Part OverviewPart(const Analysis& analysis, const std::vector<Finding>& findings,
                  const PartOptions& options, const std::vector<std::string>& others);
Part ClustersPart(const Analysis& analysis);
std::vector<Part> ClusterDetailParts(const Analysis& analysis, const PartOptions& options);
// Waits and runs. `before` may be null.
std::vector<Part> FlameParts(const Analysis& analysis, const PartOptions& options,
                             const stackmine::Evidence* before);
// The costliest scenarios, one part each; `chains` tells which.
std::vector<Part> ChainParts(const Analysis& analysis, const PartOptions& options);
Part ImpactPart(const Analysis& analysis);
std::vector<Part> ContrastParts(const Analysis& analysis, const PartOptions& options);
Part SignaturesPart(const Analysis& analysis);
// An index, and a part for each instance drawn; reads their traces once more.
// None where there is no instance to draw.
std::vector<Part> InstanceParts(const Analysis& analysis, const PartOptions& options);

// All of the above; the overview first.
std::vector<Part> MakeParts(const Analysis& analysis, const PartOptions& options = {},
                            const Additions& additions = {});

}  // namespace culprit::analyze
