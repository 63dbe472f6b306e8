// SPDX-License-Identifier: Apache-2.0
//
// The wait graph of one instance as `culprit show --graph` prints it: a tree in
// which every node stands once, under the wait that led to it first; a wait says
// by their numbers which nodes it leads to besides. Also JSON.
#pragma once

#include <string>

#include "cli/show_target.h"
#include "cli/show_tree.h"
#include "waitgraph/segment_text.h"
#include "waitgraph/wait_graph.h"

namespace culprit::cli {

// Keeps references; `text` and `graph` must outlive the tree.
ShowTree GraphTree(const waitgraph::SegmentText& text, const waitgraph::WaitGraph& graph);

std::string GraphJson(const waitgraph::SegmentText& text, const ShownInstance& shown,
                      const waitgraph::WaitGraph& graph);

}  // namespace culprit::cli
