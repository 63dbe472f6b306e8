// SPDX-License-Identifier: Apache-2.0
//
// ShowTree: a tree of durations as indented text or as a graph for dot, which has
// the edges beside the tree's too, dashed; cut to a number of lines. Of too many nodes the longest
// are shown; since a node never weighs more than its parent, what is shown is a tree again. What is
// left out stands as one line under its parent, with its count and its time, so that lines under a
// parent always sum to it where its children tile it.
//
// Nodes are in pre-order, parents before children. Texts are asked for only
// where they are shown. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace culprit::cli {

struct ShowNode {
  uint32_t parent = UINT32_MAX;
  int64_t dur_ns = 0;
  // By which nodes are chosen; brought down to the parent's where it is more.
  int64_t weight_ns = 0;
  uint32_t count = 1;  // how many segments it stands for
};

struct ShowTree {
  std::vector<ShowNode> nodes;
  std::function<std::string(size_t)> text;  // of a node
  // Of a node, the shown ones it also leads to that do not stand under it; for
  // dot only. Empty: it is a tree and nothing else.
  std::function<std::vector<uint32_t>(size_t, const std::vector<bool>&)> links = {};
};

struct ShowLimits {
  size_t max_lines = 40;
  size_t max_depth = SIZE_MAX;  // 0: only what has no parent
};

// By node: whether it is shown.
std::vector<bool> ChooseNodes(const ShowTree& tree, const ShowLimits& limits);
// Lines "  12.3 %  4.56 ms   text", indented by depth, cut at `width` (0: never);
// shares are of total_ns.
std::string TreeText(const ShowTree& tree, int64_t total_ns, const ShowLimits& limits,
                     size_t width);
std::string TreeDot(const ShowTree& tree, int64_t total_ns, const std::string& title,
                    const ShowLimits& limits);

}  // namespace culprit::cli
