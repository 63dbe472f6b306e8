// SPDX-License-Identifier: Apache-2.0
//
// Trace: one recording, whole in memory: metadata, dictionary, instances and
// events. This is what importers make, the native file stores and analyses
// read. Passive data: ids are those of its own dictionary.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "trace/dictionary.h"
#include "trace/event.h"

namespace culprit::trace {

// Where and how the trace came about. `properties` holds what only some
// recorders know, under dotted keys: "drops.cpu0", "threshold.wait_ns",
// "overhead.cpu_ns", "overhead.share".
struct Metadata {
  std::string machine;
  std::string os;
  std::string kernel;
  std::string arch;
  std::string app;
  std::string app_version;
  std::string source;  // who wrote it: "culprit synth 0.1.0", "perf.data"
  std::string clock;
  int64_t wall_start_ns = 0;  // Unix time of begin_ns; 0: unknown
  int64_t begin_ns = 0;       // the recording covers [begin_ns, end_ns)
  int64_t end_ns = 0;
  uint32_t cpus = 0;
  int64_t sample_period_ns = 0;  // 0: no samples
  bool has_switches = false;     // running/wait/ready tile the threads
  bool has_wakers = false;       // waits say who ended them
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> properties;

  bool operator==(const Metadata&) const = default;
};

// One execution of a scenario, started by its initiating thread.
struct Instance {
  StringId scenario;
  ThreadId thread;
  int64_t t0_ns = 0;
  int64_t t1_ns = 0;

  int64_t dur_ns() const { return t1_ns - t0_ns; }
  bool operator==(const Instance&) const = default;
};

struct Trace {
  Metadata metadata;
  Dictionary dictionary;
  std::vector<Instance> instances;
  std::vector<Event> events;
  Diagnostics diagnostics;
};

// The canonical order of a time line: by time, longer first, then kind, thread and
// peer. Events that are equal in these keep the order they have.
bool ComesBefore(const Event& a, const Event& b);
void SortByTime(std::vector<Event>& events);

}  // namespace culprit::trace
