// SPDX-License-Identifier: Apache-2.0
//
// Area of interest (SPEC §3): which events of a trace count for its instances.
// Scope says how far from the initiating thread to look, content which frames
// an event must have. Every instance's account is kept: what was looked at, what
// was kept, what nothing explains; for the scopes kThread and kCriticalPath
// running + ready + hardware + wait + unattributed of an instance is its
// duration exactly. In scope kGraph an event of the wait graph counts once,
// clipped to the instance alone, so sums may exceed the duration.
//
// Memory is 40 bytes per kept segment or node. Many instances that share a long
// convoy may ask for more than there is (n threads behind one lock: n² of them);
// beyond AreaOptions::max_events they are only counted, as dropped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"
#include "waitgraph/critical_path.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_class.h"

namespace culprit::waitgraph {

enum class Scope : uint8_t { kCriticalPath, kGraph, kThread };

struct AreaOptions {
  Scope scope = Scope::kCriticalPath;
  // Globs over "module!function"; an event is kept if any of its frames matches
  // any of `with` (or `with` is empty) and none matches any of `without`.
  std::vector<std::string> with;
  std::vector<std::string> without;
  std::vector<WaitClass> classes;  // empty: all; else only waits of these classes
  PathOptions path = {};
  uint64_t max_events = 1 << 25;
};

struct AreaEvent {
  uint32_t instance = 0;  // index in Area::instances
  EventIndex event = kNoEvent;
  // The part of the event that counts: clipped to the instance and to the waits
  // above it.
  int64_t begin_ns = 0;
  int64_t cost_ns = 0;
  // Index in Area::events of the wait it explains, or of the next kept one above
  // that; UINT32_MAX: none. In scope kGraph, where a node may explain many: the
  // first that led to it.
  uint32_t parent = UINT32_MAX;
  trace::StackId stack;                      // of hardware: of the request, else of the wait
  SegmentKind kind = SegmentKind::kRunning;  // kWait, kRunning, kReady, kHardware
  SegmentNote note = SegmentNote::kNone;
  WaitClass wait_class = WaitClass::kOther;  // of a kWait
};

struct AreaAccount {
  int64_t total_ns = 0;  // of the instances
  int64_t running_ns = 0;
  int64_t ready_ns = 0;
  int64_t hardware_ns = 0;
  int64_t unattributed_ns = 0;
  int64_t wait_ns = 0;  // kThread, kGraph: of waits; 0 for kCriticalPath, which explains them
  // Of what the content let through; in scope kCriticalPath a nanosecond counts
  // once, however many kept waits stand over it.
  int64_t kept_ns = 0;
  uint64_t events = 0;  // looked at
  uint64_t kept_events = 0;
  uint64_t dropped_events = 0;  // let through, but over AreaOptions::max_events

  void Add(const AreaAccount& other);
};

struct Area {
  std::vector<trace::Instance> instances;
  std::vector<AreaAccount> accounts;  // one per instance
  std::vector<AreaEvent> events;      // kept ones, by instance, parents before children
};

Area AreaOfInterest(const Timelines& timelines, const std::vector<trace::Instance>& instances,
                    const AreaOptions& options);

}  // namespace culprit::waitgraph
