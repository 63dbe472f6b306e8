// SPDX-License-Identifier: Apache-2.0
//
// RandomTrace: a trace of no meaning that uses every kind, flag and field, for
// tests of the file format. Same seed, same trace.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "trace/syscall_operation.h"
#include "trace/trace.h"

namespace culprit::trace {

struct RandomTraceOptions {
  uint64_t seed = 1;
  size_t events = 1000;
  size_t threads = 7;
  size_t functions = 40;
  bool wild = false;  // extreme values in every field
};

inline Trace RandomTrace(const RandomTraceOptions& options) {
  std::mt19937_64 random(options.seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  Trace trace;
  Metadata& m = trace.metadata;
  m.machine = "box";
  m.os = "Linux";
  m.source = "test";
  m.cpus = 4;
  m.end_ns = 1'000'000'000;
  m.labels = {{"region", "north"}, {"tier", "gold"}};
  m.properties = {{"drops.cpu0", "12"}, {"overhead.share", "0.02"}};
  Dictionary& d = trace.dictionary;
  for (size_t i = 0; i < options.threads; ++i) {
    const ProcessId process = d.AddProcess({.pid = static_cast<int64_t>(100 + i),
                                            .name = d.Intern("proc" + std::to_string(i / 3)),
                                            .command_line = d.Intern("proc --flag"),
                                            .cgroup = {},
                                            .start_ns = i % 2 ? kNoTime : 5,
                                            .end_ns = kNoTime});
    d.AddThread({.tid = static_cast<int64_t>(100 + i),
                 .process = process,
                 .name = d.Intern("worker"),
                 .kind = static_cast<ThreadKind>(i % kThreadKinds),
                 .start_ns = kNoTime,
                 .end_ns = i % 5 == 4 ? 900 : kNoTime});
  }
  std::vector<StackId> stacks;
  StackId stack;
  for (size_t i = 0; i < options.functions * 8; ++i) {
    if (below(5) == 0) stack = stacks.empty() ? StackId() : stacks[below(stacks.size())];
    const std::string name = "function" + std::to_string(below(options.functions));
    stack = d.InternStack(stack, d.InternFrame("module" + std::to_string(below(4)), name));
    stacks.push_back(stack);
  }
  int64_t now_ns = 1000;
  Event run;  // the last one
  for (size_t i = 0; i < options.events; ++i) {
    Event e;
    e.kind = static_cast<EventKind>(below(kEventKinds));
    now_ns += static_cast<int64_t>(below(5000));
    e.time_ns = now_ns - static_cast<int64_t>(below(900));
    e.dur_ns = static_cast<int64_t>(below(3) == 0 ? 0 : below(100'000));
    e.thread = ThreadId(below(options.threads));
    if (below(3) != 0) e.peer = ThreadId(below(options.threads));
    if (below(4) != 0) e.stack = stacks[below(stacks.size())];
    e.cpu = static_cast<uint16_t>(below(5) == 0 ? Event::kNoCpu : below(4));
    e.flags = static_cast<uint8_t>(below(256));
    if (e.kind == EventKind::kSyscall) e.arg0 = static_cast<int64_t>(below(300));
    if (e.kind == EventKind::kSyscall && below(3) == 0) {
      e.arg0 = PackCall(e.arg0, static_cast<uint32_t>(below(2) == 0 ? below(14) : random()));
    }
    if (e.kind == EventKind::kSyscall) e.arg1 = -static_cast<int64_t>(below(40));
    if (options.wild && below(10) == 0) {
      e.time_ns = -static_cast<int64_t>(random() >> 3);
      e.dur_ns = static_cast<int64_t>(random() >> 2);
      e.arg0 = static_cast<int64_t>(random());
      e.arg1 = INT64_MIN;
      if (below(2) == 0) e.thread = ThreadId();
    }
    if (e.kind == EventKind::kReady && run.end_ns() > 100'000 && below(2) == 0) {
      e.cpu = run.cpu;  // that it gets from who ran there
      e.time_ns = run.end_ns() - static_cast<int64_t>(below(100'000));
      e.dur_ns = run.end_ns() - e.time_ns;
      if (below(2) == 0) e.peer = run.thread;
    }
    if (e.kind == EventKind::kRunning) run = e;
    trace.events.push_back(e);
  }
  for (int i = 0; i < 5; ++i) {
    trace.instances.push_back({.scenario = d.Intern("Scenario" + std::to_string(i % 2)),
                               .thread = ThreadId(below(options.threads)),
                               .t0_ns = i * 1000,
                               .t1_ns = i * 1000 + 700});
  }
  SortByTime(trace.events);
  return trace;
}

}  // namespace culprit::trace
