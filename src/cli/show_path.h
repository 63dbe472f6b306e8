// SPDX-License-Identifier: Apache-2.0
//
// The critical path of one instance as `culprit show` prints it: a tree by time,
// in which neighbours that say the same are one line, or with `sum` a tree in
// which all that say the same under one parent are; who owned the time; lanes
// of threads with the propagation between them (003 figure 1); JSON; dot.
#pragma once

#include <string>

#include "cli/show_target.h"
#include "cli/show_tree.h"
#include "waitgraph/critical_path.h"
#include "waitgraph/segment_text.h"

namespace culprit::cli {

// Keeps references; `text` and `path` must outlive the tree.
ShowTree PathTree(const waitgraph::SegmentText& text, const waitgraph::CriticalPath& path,
                  bool sum);

// A table of owners (thread or device, and what it did), longest first; its rows
// and rest sum to the instance.
std::string OwnersText(const waitgraph::SegmentText& text, const waitgraph::CriticalPath& path,
                       size_t top, size_t width, bool color);

// A lane for each thread of the path, and numbered wake-ups.
std::string LanesText(const waitgraph::SegmentText& text, const waitgraph::CriticalPath& path,
                      const trace::Instance& instance, size_t max_lanes, size_t width);

std::string PathJson(const waitgraph::SegmentText& text, const ShownInstance& shown,
                     const waitgraph::CriticalPath& path);

}  // namespace culprit::cli
