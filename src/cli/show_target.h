// SPDX-License-Identifier: Apache-2.0
//
// What `culprit show` looks at: a trace in memory with its instances, and the
// slowest instances of a trace or corpus to pick from. Instances are the trace's
// own; a trace without any has those that waitgraph/auto_instances.h finds, or
// else its threads, each whole. They are numbered from 0 in that order, and in a
// corpus called TRACE:INDEX, as truth.json and `culprit mine` do. Who found
// instances with other wishes than the default must state them here again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "trace/trace.h"
#include "waitgraph/auto_instances.h"
#include "waitgraph/timelines.h"

namespace culprit::cli {

enum class InstanceSource : uint8_t { kTrace, kFound, kThreads };

struct InstanceWish {
  bool automatic = false;  // found ones even where the trace has its own
  waitgraph::AutoInstanceOptions found;
};

// The flags that say the same: " --auto --idle 'a!b'"; empty for the default.
std::string InstanceFlagsText(const InstanceWish& wish);

struct ShownTrace {
  std::string name;    // in the corpus, or the path
  std::string prefix;  // of its instances' names: "TRACE:" in a corpus
  std::unique_ptr<trace::Trace> trace;
  std::unique_ptr<waitgraph::Timelines> timelines;
  InstanceSource source = InstanceSource::kTrace;
  std::vector<trace::Instance> instances;
  std::vector<std::string> scenarios;  // by instance
};

// One row of the list to pick from.
struct InstanceChoice {
  std::string name;  // as it is to be given on the command line
  std::string scenario;
  std::string thread;
  int64_t begin_ns = 0;  // since the trace's begin
  int64_t dur_ns = 0;
  InstanceSource source = InstanceSource::kTrace;
};

struct InstanceChoices {
  std::vector<InstanceChoice> rows;  // slowest first
  uint64_t instances = 0;            // there are
};

struct ShownInstance {
  ShownTrace trace;
  size_t index = 0;

  const trace::Instance& instance() const { return trace.instances[index]; }
  const std::string& scenario() const { return trace.scenarios[index]; }
  std::string name() const { return trace.prefix + std::to_string(index); }
};

Result<ShownInstance> FindShownInstance(const std::string& path, const std::string& instance,
                                        const InstanceWish& wish);

struct ChoiceWish {
  std::string within;    // only of this trace of a corpus; empty: all
  std::string scenario;  // only of scenarios this glob matches; empty: all
  size_t top = 20;
  InstanceWish instances;
};
Result<InstanceChoices> SlowestInstances(const std::string& path, const ChoiceWish& wish,
                                         Progress& progress);

}  // namespace culprit::cli
