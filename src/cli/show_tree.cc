// SPDX-License-Identifier: Apache-2.0
#include "cli/show_tree.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "report/plain_text.h"

namespace culprit::cli {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

std::string Padded(const std::string& text, size_t columns) {
  const size_t width = report::CodePoints(text);
  return width >= columns ? text : std::string(columns - width, ' ') + text;
}

std::string Line(int64_t dur_ns, int64_t total_ns, size_t depth, const std::string& text,
                 size_t width) {
  std::string line = Padded(FormatShare(dur_ns, total_ns), 8) + "  " +
                     Padded(FormatDuration(dur_ns), 8) + "  " + std::string(depth * 2, ' ') +
                     report::PlainText(text);
  if (width > 1 && report::CodePoints(line) > width) {
    line.resize(report::CodePointOffset(line, width - 1));
    line += "…";
  }
  return line + "\n";
}

// What is left out under each node, and at the top (the last slot).
struct LeftOut {
  uint64_t count = 0;
  int64_t dur_ns = 0;
};

std::vector<LeftOut> SumLeftOut(const ShowTree& tree, const std::vector<bool>& shown) {
  std::vector<LeftOut> left_out(tree.nodes.size() + 1);
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const ShowNode& node = tree.nodes[i];
    const bool under_shown = node.parent == kNone || shown[node.parent];
    if (shown[i] || !under_shown) continue;
    LeftOut& sum = left_out[node.parent == kNone ? tree.nodes.size() : node.parent];
    sum.count += node.count;
    sum.dur_ns += node.dur_ns;
  }
  return left_out;
}

std::string MoreText(const LeftOut& left_out) {
  return "… " + FormatCount(left_out.count) + " more";
}

std::string DotText(const std::string& text) {
  std::string out;
  for (const char c : report::PlainText(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::vector<bool> ChooseNodes(const ShowTree& tree, const ShowLimits& limits) {
  const size_t count = tree.nodes.size();
  std::vector<int64_t> weight(count);
  std::vector<size_t> depth(count);
  std::vector<uint32_t> order;
  for (size_t i = 0; i < count; ++i) {
    const ShowNode& node = tree.nodes[i];
    weight[i] = node.weight_ns;
    if (node.parent != kNone) {
      weight[i] = std::min(weight[i], weight[node.parent]);
      depth[i] = depth[node.parent] + 1;
    }
    if (depth[i] <= limits.max_depth) order.push_back(static_cast<uint32_t>(i));
  }
  const size_t keep = std::min(limits.max_lines, order.size());
  // Of equal weight the earlier, so that a parent comes before its children.
  std::nth_element(order.begin(), order.begin() + static_cast<ptrdiff_t>(keep), order.end(),
                   [&](uint32_t a, uint32_t b) {
                     return weight[a] != weight[b] ? weight[a] > weight[b] : a < b;
                   });
  std::vector<bool> shown(count, false);
  for (size_t i = 0; i < keep; ++i) shown[order[i]] = true;
  return shown;
}

std::string TreeText(const ShowTree& tree, int64_t total_ns, const ShowLimits& limits,
                     size_t width) {
  const std::vector<bool> shown = ChooseNodes(tree, limits);
  const std::vector<LeftOut> left_out = SumLeftOut(tree, shown);
  std::string text;
  std::vector<uint32_t> open;  // the shown nodes above the current one
  // Closing a node says what was left out under it.
  const auto close_to = [&](uint32_t parent) {
    while (!open.empty() && open.back() != parent) {
      const LeftOut& more = left_out[open.back()];
      if (more.count > 0) text += Line(more.dur_ns, total_ns, open.size(), MoreText(more), width);
      open.pop_back();
    }
  };
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    if (!shown[i]) continue;
    close_to(tree.nodes[i].parent);
    text += Line(tree.nodes[i].dur_ns, total_ns, open.size(), tree.text(i), width);
    open.push_back(static_cast<uint32_t>(i));
  }
  close_to(kNone);
  const LeftOut& more = left_out.back();
  if (more.count > 0) text += Line(more.dur_ns, total_ns, 0, MoreText(more), width);
  return text;
}

std::string TreeDot(const ShowTree& tree, int64_t total_ns, const std::string& title,
                    const ShowLimits& limits) {
  const std::vector<bool> shown = ChooseNodes(tree, limits);
  const std::vector<LeftOut> left_out = SumLeftOut(tree, shown);
  std::string dot = "digraph culprit {\n  rankdir=LR;\n  node [shape=box];\n  label=\"" +
                    DotText(title) + "\";\n";
  const auto label = [&](int64_t dur_ns, const std::string& text) {
    return " [label=\"" + DotText(text) + "\\n" + FormatDuration(dur_ns) + ", " +
           FormatShare(dur_ns, total_ns) + "\"];\n";
  };
  const auto edge = [&](uint32_t parent, const std::string& to) {
    return parent == kNone ? "" : "  n" + std::to_string(parent) + " -> " + to + ";\n";
  };
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const ShowNode& node = tree.nodes[i];
    const std::string name = "n" + std::to_string(i);
    if (shown[i]) dot += "  " + name + label(node.dur_ns, tree.text(i));
    if (shown[i]) dot += edge(node.parent, name);
    if (shown[i] && tree.links) {
      for (const uint32_t to : tree.links(i, shown)) {
        dot += "  " + name + " -> n" + std::to_string(to) + " [style=dashed];\n";
      }
    }
    if (left_out[i].count > 0) {
      const std::string more = "more" + std::to_string(i);
      dot += "  " + more + label(left_out[i].dur_ns, MoreText(left_out[i]));
      dot += edge(static_cast<uint32_t>(i), more);
    }
  }
  if (left_out.back().count > 0) {
    dot += "  more" + label(left_out.back().dur_ns, MoreText(left_out.back()));
  }
  return dot + "}\n";
}

}  // namespace culprit::cli
