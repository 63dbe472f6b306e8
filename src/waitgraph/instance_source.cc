// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/instance_source.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/glob.h"
#include "waitgraph/glob.h"

namespace culprit::waitgraph {
namespace {

using Wanted = InstanceSourceOptions::Wanted;

bool IsWanted(const InstanceSourceOptions& options, std::string_view scenario) {
  return options.scenarios.empty() ||
         std::any_of(options.scenarios.begin(), options.scenarios.end(),
                     [&](const std::string& glob) { return MatchesGlob(glob, scenario); });
}

// Clips to the recording; false if nothing is left.
bool MakePossible(const trace::Trace& trace, trace::Instance& instance) {
  const trace::Metadata& metadata = trace.metadata;
  instance.t0_ns = std::max(instance.t0_ns, metadata.begin_ns);
  instance.t1_ns = std::min(instance.t1_ns, metadata.end_ns);
  return instance.thread.valid() && instance.thread.value < trace.dictionary.threads().size() &&
         instance.t0_ns < instance.t1_ns;
}

InstanceSource OwnInstances(const Timelines& timelines, const InstanceSourceOptions& options) {
  const trace::Trace& trace = timelines.trace();
  InstanceSource source;
  source.origin = InstanceOrigin::kOwn;
  source.idle_wait.resize(trace.events.size());
  std::unordered_map<std::string_view, StringId> ids;
  for (trace::Instance instance : trace.instances) {
    const std::string_view scenario = trace.dictionary.Text(instance.scenario);
    if (!MakePossible(trace, instance)) {
      ++source.impossible;
    } else if (!IsWanted(options, scenario)) {
      ++source.not_wanted;
    } else {
      const auto [it, added] = ids.try_emplace(scenario, StringId(source.scenarios.size()));
      if (added) source.scenarios.emplace_back(scenario);
      instance.scenario = it->second;
      source.instances.push_back(instance);
    }
  }
  std::sort(source.instances.begin(), source.instances.end(),
            [](const trace::Instance& a, const trace::Instance& b) {
              return std::tie(a.t0_ns, a.thread, a.t1_ns, a.scenario) <
                     std::tie(b.t0_ns, b.thread, b.t1_ns, b.scenario);
            });
  return source;
}

InstanceSource AutomaticInstances(const Timelines& timelines,
                                  const InstanceSourceOptions& options) {
  AutoInstances found = FindInstances(timelines, options.automatic);
  InstanceSource source;
  source.origin = InstanceOrigin::kAutomatic;
  source.idle_wait = std::move(found.idle_wait);
  source.roles = std::move(found.roles);
  source.idle_ns = found.idle_ns;
  source.left_out_ns = found.left_out_ns;
  source.left_out_threads = found.left_out_threads;
  source.reason = std::move(found.reason);
  source.scenarios = std::move(found.scenarios);
  for (const trace::Instance& instance : found.instances) {
    if (IsWanted(options, source.scenarios[instance.scenario.value])) {
      source.instances.push_back(instance);
    } else {
      ++source.not_wanted;
    }
  }
  return source;
}

void Finish(InstanceSource& source) {
  for (const trace::Instance& instance : source.instances) source.instance_ns += instance.dur_ns();
  if (!source.instances.empty()) return;
  source.origin = InstanceOrigin::kNone;
  if (source.not_wanted != 0) {
    source.reason = "no instance is of a scenario that was asked for";
  } else if (source.impossible != 0) {
    source.reason = "no instance lies within the recording and has a thread";
  } else if (source.reason.empty()) {
    source.reason = "the trace has no instances of its own";
  }
}

}  // namespace

std::string_view Name(InstanceOrigin origin) {
  switch (origin) {
    case InstanceOrigin::kNone:
      return "none";
    case InstanceOrigin::kOwn:
      return "own";
    case InstanceOrigin::kAutomatic:
      return "automatic";
  }
  return "none";
}

InstanceSource InstancesOf(const Timelines& timelines, const InstanceSourceOptions& options) {
  const bool has_own = !timelines.trace().instances.empty();
  const bool own =
      options.wanted == Wanted::kOwn || (options.wanted == Wanted::kOwnElseAutomatic && has_own);
  InstanceSource source =
      own ? OwnInstances(timelines, options) : AutomaticInstances(timelines, options);
  Finish(source);
  return source;
}

}  // namespace culprit::waitgraph
