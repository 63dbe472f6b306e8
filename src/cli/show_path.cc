// SPDX-License-Identifier: Apache-2.0
#include "cli/show_path.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "base/json_writer.h"
#include "base/text.h"
#include "report/table.h"

namespace culprit::cli {

using trace::Event;
using waitgraph::CriticalPath;
using waitgraph::kNoEvent;
using waitgraph::Segment;
using waitgraph::SegmentKind;

namespace {

// What two segments must share to be one line.
using Likeness = std::tuple<uint32_t, SegmentKind, uint32_t, uint8_t, uint32_t>;

Likeness LikenessOf(const waitgraph::SegmentText& text, const Segment& s, uint32_t parent) {
  const uint32_t stack =
      s.event == kNoEvent || s.kind == SegmentKind::kReady || s.kind == SegmentKind::kUnattributed
          ? UINT32_MAX
          : text.timelines().event(s.event).stack.value;
  return {parent, s.kind, s.thread.value, static_cast<uint8_t>(s.note), stack};
}

// Which segments make up each node; the first stands for all.
struct Merged {
  std::vector<ShowNode> nodes;
  std::vector<uint32_t> first;
};

// Neighbours under one parent that are leaves of the same kind.
Merged MergeNeighbours(const waitgraph::SegmentText& text, const CriticalPath& path) {
  Merged merged;
  std::vector<uint32_t> node_of(path.segments.size());
  std::map<uint32_t, uint32_t> last;  // by parent node: its last child
  for (uint32_t i = 0; i < path.segments.size(); ++i) {
    const Segment& s = path.segments[i];
    const uint32_t parent = s.parent == UINT32_MAX ? UINT32_MAX : node_of[s.parent];
    const auto before = last.find(parent);
    if (s.kind != SegmentKind::kWait && before != last.end()) {
      const Segment& other = path.segments[merged.first[before->second]];
      if (LikenessOf(text, s, parent) == LikenessOf(text, other, parent)) {
        node_of[i] = before->second;
        ++merged.nodes[node_of[i]].count;
        merged.nodes[node_of[i]].dur_ns += s.dur_ns();
        continue;
      }
    }
    node_of[i] = static_cast<uint32_t>(merged.nodes.size());
    last[parent] = node_of[i];
    merged.nodes.push_back({.parent = parent, .dur_ns = s.dur_ns()});
    merged.first.push_back(i);
  }
  return merged;
}

// All that are alike under one parent; then again in pre-order, longest first.
Merged MergeAll(const waitgraph::SegmentText& text, const CriticalPath& path) {
  Merged all;
  std::vector<uint32_t> node_of(path.segments.size());
  std::map<Likeness, uint32_t> known;
  for (uint32_t i = 0; i < path.segments.size(); ++i) {
    const Segment& s = path.segments[i];
    const uint32_t parent = s.parent == UINT32_MAX ? UINT32_MAX : node_of[s.parent];
    const auto [it, is_new] =
        known.emplace(LikenessOf(text, s, parent), static_cast<uint32_t>(all.nodes.size()));
    if (is_new) {
      all.nodes.push_back({.parent = parent, .dur_ns = 0, .count = 0});
      all.first.push_back(i);
    }
    node_of[i] = it->second;
    all.nodes[it->second].dur_ns += s.dur_ns();
    ++all.nodes[it->second].count;
  }
  std::vector<std::vector<uint32_t>> children(all.nodes.size() + 1);
  for (uint32_t i = 0; i < all.nodes.size(); ++i) {
    const uint32_t parent = all.nodes[i].parent;
    children[parent == UINT32_MAX ? all.nodes.size() : parent].push_back(i);
  }
  Merged sorted;
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // old node, new parent
  const auto push_children = [&](size_t slot, uint32_t parent) {
    std::stable_sort(children[slot].begin(), children[slot].end(), [&](uint32_t a, uint32_t b) {
      return all.nodes[a].dur_ns < all.nodes[b].dur_ns;
    });
    for (const uint32_t child : children[slot]) stack.emplace_back(child, parent);
  };
  push_children(all.nodes.size(), UINT32_MAX);
  while (!stack.empty()) {
    const auto [old, parent] = stack.back();
    stack.pop_back();
    const auto mine = static_cast<uint32_t>(sorted.nodes.size());
    sorted.nodes.push_back(all.nodes[old]);
    sorted.nodes.back().parent = parent;
    sorted.first.push_back(all.first[old]);
    push_children(old, mine);
  }
  return sorted;
}

}  // namespace

ShowTree PathTree(const waitgraph::SegmentText& text, const CriticalPath& path, bool sum) {
  auto merged = std::make_shared<Merged>(sum ? MergeAll(text, path) : MergeNeighbours(text, path));
  ShowTree tree;
  tree.nodes = merged->nodes;
  for (ShowNode& node : tree.nodes) node.weight_ns = node.dur_ns;
  tree.text = [merged, &text, &path](size_t i) {
    const std::string line = text.Describe(path.segments[merged->first[i]]);
    const uint32_t count = merged->nodes[i].count;
    return count > 1 ? line + " ×" + FormatCount(count) : line;
  };
  return tree;
}

std::string OwnersText(const waitgraph::SegmentText& text, const CriticalPath& path, size_t top,
                       size_t width, bool color) {
  struct Owned {
    int64_t dur_ns = 0;
    uint64_t segments = 0;
  };
  std::map<std::pair<std::string, std::string>, Owned> owners;
  int64_t total_ns = 0;
  for (const Segment& s : path.segments) {
    if (s.kind == SegmentKind::kWait) continue;
    const bool nobody = s.kind == SegmentKind::kUnattributed;
    std::string what = std::string(
        nobody && s.note != waitgraph::SegmentNote::kNone ? Name(s.note) : Name(s.kind));
    if (s.note == waitgraph::SegmentNote::kQueueing) what += ", queueing";
    Owned& owned = owners[{nobody ? "[unattributed]" : text.Thread(s.thread), what}];
    owned.dur_ns += s.dur_ns();
    ++owned.segments;
    total_ns += s.dur_ns();
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Owned>> rows(owners.begin(),
                                                                          owners.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.dur_ns > b.second.dur_ns; });
  report::Table table;
  const auto right = report::Table::Align::kRight;
  table.Column("share", right).Column("time", right).Column("parts", right);
  table.Column("owner", report::Table::Align::kLeft, true).Column("what");
  Owned rest;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [who, owned] = rows[i];
    if (i >= top) {
      rest.dur_ns += owned.dur_ns;
      rest.segments += owned.segments;
      continue;
    }
    table.Row({FormatShare(owned.dur_ns, total_ns), FormatDuration(owned.dur_ns),
               FormatCount(owned.segments), who.first, who.second});
  }
  if (rest.segments > 0) {
    table.Row({FormatShare(rest.dur_ns, total_ns), FormatDuration(rest.dur_ns),
               FormatCount(rest.segments), "… " + FormatCount(rows.size() - top) + " more", ""});
  }
  table.Row({FormatShare(total_ns, total_ns), FormatDuration(total_ns), "", "the instance", ""});
  return table.ToText(width, color);
}

std::string PathJson(const waitgraph::SegmentText& text, const ShownInstance& shown,
                     const CriticalPath& path) {
  const trace::Instance& instance = shown.instance();
  JsonWriter json;
  json.BeginObject().Field("trace", shown.trace.name).Field("instance", shown.name());
  json.Field("scenario", shown.scenario()).Field("thread", text.Thread(instance.thread));
  json.Field("t0_ns", instance.t0_ns).Field("t1_ns", instance.t1_ns);
  json.Field("dur_ns", instance.dur_ns());
  std::map<std::string_view, int64_t> account;
  for (const std::string_view kind : {"running", "ready", "hardware", "unattributed"}) {
    account[kind] = 0;
  }
  for (const Segment& s : path.segments) {
    if (s.kind != SegmentKind::kWait) account[Name(s.kind)] += s.dur_ns();
  }
  json.Key("account").BeginObject();
  for (const auto& [kind, dur_ns] : account) json.Field(std::string(kind) + "_ns", dur_ns);
  json.EndObject().Key("segments").BeginArray();
  for (const Segment& s : path.segments) {
    json.BeginObject().Field("begin_ns", s.begin_ns).Field("dur_ns", s.dur_ns());
    json.Field("kind", Name(s.kind)).Field("thread", text.Thread(s.thread));
    json.Key("parent");
    s.parent == UINT32_MAX ? json.Null() : json.Uint(s.parent);
    if (s.note != waitgraph::SegmentNote::kNone) json.Field("note", Name(s.note));
    if (s.kind == SegmentKind::kWait) json.Field("class", Name(text.ClassOf(s.event)));
    if (s.event != kNoEvent) {
      const Event& event = text.timelines().event(s.event);
      if (s.kind == SegmentKind::kReady && event.peer.valid()) {
        json.Field("cpu_held_by", text.Thread(event.peer));
      }
      json.Key("frames").BeginArray();
      for (const trace::FrameId frame : text.dictionary().StackFrames(event.stack)) {
        json.String(text.dictionary().FrameName(frame));
      }
      json.EndArray();
    }
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
