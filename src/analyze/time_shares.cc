// SPDX-License-Identifier: Apache-2.0
#include "analyze/time_shares.h"

#include <array>

namespace culprit::analyze {
namespace {

using stackmine::NodeIndex;
using stackmine::PathKind;

void AddShare(std::vector<TimeShare>& shares, std::string_view key, int64_t ns) {
  if (ns != 0) shares.push_back({.key = key, .ns = ns});
}

}  // namespace

std::vector<TimeShare> OwnShares(const Analysis& analysis) {
  int64_t running_ns = 0;
  int64_t ready_ns = 0;
  int64_t hardware_ns = 0;
  int64_t rest_ns = analysis.total_ns();
  std::array<int64_t, waitgraph::kWaitClasses> waits = {};
  const auto& nodes = analysis.evidence.forest.nodes();
  for (NodeIndex n = 0; n < nodes.size(); ++n) {
    if (nodes[n].parent != stackmine::kNoNode) continue;
    const int64_t cost_ns = analysis.mined.cover.node_cost_ns[n];
    rest_ns -= cost_ns;
    switch (nodes[n].kind) {
      case PathKind::kWait:
        waits[static_cast<size_t>(nodes[n].wait_class)] += cost_ns;
        break;
      case PathKind::kRunning:
      case PathKind::kNotSampled:
        running_ns += cost_ns;
        break;
      case PathKind::kReady:
      case PathKind::kPreempted:
        ready_ns += cost_ns;
        break;
      case PathKind::kHardware:
        hardware_ns += cost_ns;
        break;
    }
  }
  std::vector<TimeShare> shares;
  AddShare(shares, "running", running_ns);
  AddShare(shares, "ready", ready_ns);
  for (size_t i = 0; i < waits.size(); ++i) {
    AddShare(shares, waitgraph::kWaitClassNames[i], waits[i]);
  }
  AddShare(shares, "hardware", hardware_ns);
  AddShare(shares, "unattributed", rest_ns);
  return shares;
}

std::vector<TimeShare> BehindShares(const Analysis& analysis) {
  const stackmine::Account& account = analysis.evidence.account;
  std::vector<TimeShare> shares;
  AddShare(shares, "running", account.area.running_ns);
  AddShare(shares, "ready", account.area.ready_ns);
  AddShare(shares, "waiting", account.area.wait_ns);
  AddShare(shares, "hardware", account.area.hardware_ns);
  AddShare(shares, "unattributed", account.area.unattributed_ns);
  return shares;
}

}  // namespace culprit::analyze
