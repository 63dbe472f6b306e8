// SPDX-License-Identifier: Apache-2.0
//
// What the instances of one role are about: the function below the loop that
// handles each, where the role has handlers that exclude one another. Two
// branches below a loop may be two kinds of request, or two steps of every
// request; instances in which more than one thing was seen (a wait, a sample)
// tell which: if nearly all of those (95 %, of at least 20) keep to one branch,
// branches are kinds. Steps that all requests share are passed through first.
//
// Pure; O(events of the instances).
#pragma once

#include <vector>

#include "trace/trace.h"
#include "waitgraph/idle_wait.h"
#include "waitgraph/idle_wait_paths.h"
#include "waitgraph/timelines.h"

namespace culprit::waitgraph {

// One per instance: its handler, or kNoFunction where nothing tells.
std::vector<FunctionId> FindHandlers(const Timelines& timelines, const FunctionPaths& paths,
                                     const LoopVerdict& loop, const std::vector<bool>& idle_wait,
                                     const std::vector<trace::Instance>& instances);

}  // namespace culprit::waitgraph
