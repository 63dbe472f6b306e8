// SPDX-License-Identifier: Apache-2.0
//
// One line about a cluster, for people: what its time is and where.
//   "waits for a lock at fv.sys!QueryFileTable, under Browser!RestoreSession"
#pragma once

#include <string>

#include "stackmine/clusters.h"
#include "stackmine/evidence.h"

namespace culprit::stackmine {

// The wait class that most of the cluster's cost has.
waitgraph::WaitClass MainClass(const Metrics& metrics);

std::string Summarize(const Evidence& evidence, const Cluster& cluster);
// For a row of a table: "lock", "cpu"; "Browser!RestoreSession".
std::string ShortKind(const Cluster& cluster);
std::string ShortPlace(const Evidence& evidence, const Cluster& cluster);

}  // namespace culprit::stackmine
