// SPDX-License-Identifier: Apache-2.0
#include "stackmine/summary.h"

#include <algorithm>
#include <array>

#include "stackmine/reduce.h"

namespace culprit::stackmine {
namespace {

// In the order of WaitClass.
constexpr std::array<std::string_view, waitgraph::kWaitClasses> kPhrases = {
    "waits",
    "waits for a lock",
    "waits for the disk",
    "waits for a page fault",
    "waits for the network",
    "waits for another process",
    "waits to be asked",
    "waits for a timer",
    "waits for a child process",
    "waits for memory",
    "waits for a signal"};

}  // namespace

waitgraph::WaitClass MainClass(const Metrics& metrics) {
  const auto most = std::max_element(metrics.class_ns.begin(), metrics.class_ns.end());
  return static_cast<waitgraph::WaitClass>(most - metrics.class_ns.begin());
}

std::string ShortKind(const Cluster& cluster) {
  if (cluster.kind == StackKind::kRun) return "cpu";
  return std::string(waitgraph::Name(MainClass(cluster.metrics)));
}

std::string ShortPlace(const Evidence& evidence, const Cluster& cluster) {
  const std::string_view key = evidence.stacks.FrameName(cluster.key);
  if (cluster.site == cluster.key) return std::string(key);
  return std::string(key) + " > " + std::string(evidence.stacks.FrameName(cluster.site));
}

std::string Summarize(const Evidence& evidence, const Cluster& cluster) {
  const StackTable& stacks = evidence.stacks;
  const std::string site(stacks.FrameName(cluster.site));
  const std::string key(stacks.FrameName(cluster.key));
  std::string text = "runs";
  if (cluster.kind == StackKind::kWait) {
    text = kPhrases[static_cast<size_t>(MainClass(cluster.metrics))];
  }
  if (IsPseudoFrame(site)) {
    // There is no stack: all that is known are the thread and its waker.
    for (const FrameSymbol frame : cluster.common) {
      const std::string module(stacks.Module(frame));
      const std::string_view name = stacks.Function(frame);
      text += (module == kThreadModule ? " in thread " : ", woken by ") + std::string(name);
    }
    return text;
  }
  text += " at " + site;
  if (key != site) text += ", under " + key;
  return text;
}

}  // namespace culprit::stackmine
