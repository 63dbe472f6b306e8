// SPDX-License-Identifier: Apache-2.0
//
// Worst cases as traces, for tests and benchmarks. Same arguments, same trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "trace/small_trace.h"

namespace culprit::causality {

// A lock convoy: thread 0 holds the lock over a disk read that ends at
// `threads` + kConvoyRead, the others queue up one after the other and hold it for
// kConvoyHold each. Every thread is an instance, from 0 until it is done.
inline constexpr int64_t kConvoyRead = 1000;
inline constexpr int64_t kConvoyHold = 10;

inline trace::Trace LockConvoy(int64_t threads) {
  const int64_t read_end = threads + kConvoyRead;
  const int64_t end = read_end + kConvoyHold * threads;
  trace::SmallTrace t(0, end);
  t.Thread("[disk 8:0]", trace::ThreadKind::kDevice);
  const auto name = [](int64_t i) { return "worker" + std::to_string(i); };
  const std::string lock = "app!Work;db!Lock;[kernel]!futex_wait";
  for (int64_t i = 0; i < threads; ++i) {
    const int64_t woken = read_end + kConvoyHold * i;
    const std::string waker = i == 0 ? "[disk 8:0]" : name(i - 1);
    t.Add(trace::EventKind::kRunning, name(i), 0, i + 1, "app!Work");
    t.Add(trace::EventKind::kWait, name(i), i + 1, woken, i == 0 ? "app!Work;db!Flush" : lock)
        .peer = t.Thread(waker);
    t.Add(trace::EventKind::kUnwait, waker, woken, woken, i == 0 ? "" : "app!Work;db!Unlock").peer =
        t.Thread(name(i));
    t.Add(trace::EventKind::kRunning, name(i), woken, woken + kConvoyHold, "app!Work;db!Hold");
    t.AddInstance("Commit", name(i), 0, woken + kConvoyHold);
  }
  t.Add(trace::EventKind::kHardware, "[disk 8:0]", 1, read_end, "app!Work;db!Flush").peer =
      t.Thread(name(0));
  trace::SortByTime(t.trace.events);
  return std::move(t.trace);
}

// One instance with many edges: its thread waits for each of the helpers in turn,
// helper i has waited since 0 for one thread that runs in `helpers` pieces. About
// 6 × helpers events, helpers² / 2 edges.
inline trace::Trace SharedHolder(int64_t helpers) {
  trace::SmallTrace t(0, helpers * 4 + 4);
  const auto name = [](int64_t i) { return "helper" + std::to_string(i); };
  for (int64_t i = 0; i < helpers; ++i) {
    const int64_t at = i * 4;
    t.Add(trace::EventKind::kRunning, "holder", at, at + 2, "app!Work;db!Hold");
    t.Add(trace::EventKind::kRunning, "holder", at + 2, at + 4, "app!Work");
    t.Add(trace::EventKind::kWait, name(i), 0, at + 2, "app!Help;db!Lock").peer =
        t.Thread("holder");
    t.Add(trace::EventKind::kUnwait, "holder", at + 2, at + 2, "db!Unlock").peer =
        t.Thread(name(i));
    t.Add(trace::EventKind::kRunning, name(i), at + 2, at + 3, "app!Help");
    t.Add(trace::EventKind::kWait, "main", at, at + 3, "app!Join").peer = t.Thread(name(i));
    t.Add(trace::EventKind::kUnwait, name(i), at + 3, at + 3, "app!Help").peer = t.Thread("main");
    t.Add(trace::EventKind::kRunning, "main", at + 3, at + 4, "app!Main");
  }
  t.AddInstance("Join", "main", 0, helpers * 4);
  trace::SortByTime(t.trace.events);
  return std::move(t.trace);
}

// One long instance: its thread asks a server again and again, which runs, reads
// from a disk every fourth time, and replies. About 7 × rounds events.
inline trace::Trace PingPong(int64_t rounds) {
  trace::SmallTrace t(0, rounds * 20);
  const trace::ThreadId disk = t.Thread("[disk 8:0]", trace::ThreadKind::kDevice);
  const trace::ThreadId client = t.Thread("client");
  const trace::ThreadId server = t.Thread("server");
  const trace::StackId ask = t.Stack("app!Main;db!Ask;libc.so.6!recv");
  const trace::StackId idle = t.Stack("srv!Main;srv!Loop;libc.so.6!poll");
  const trace::StackId read = t.Stack("srv!Main;db!Serve;db!Read");
  const trace::StackId serve = t.Stack("srv!Main;db!Serve");
  const trace::StackId run = t.Stack("app!Main");
  const auto add = [&](trace::EventKind kind, trace::ThreadId thread, int64_t begin, int64_t end,
                       trace::StackId stack, trace::ThreadId peer = {}) {
    t.trace.events.push_back({.time_ns = begin,
                              .dur_ns = end - begin,
                              .thread = thread,
                              .peer = peer,
                              .stack = stack,
                              .cpu = 0,
                              .kind = kind});
  };
  using Kind = trace::EventKind;
  for (int64_t i = 0; i < rounds; ++i) {
    const int64_t at = i * 20;
    add(Kind::kRunning, client, at, at + 3, run);
    add(Kind::kWait, server, std::max<int64_t>(0, at - 4), at + 2, idle, client);
    add(Kind::kUnwait, client, at + 2, at + 2, ask, server);
    add(Kind::kWait, client, at + 3, at + 16, ask, server);
    add(Kind::kUnwait, server, at + 16, at + 16, serve, client);
    if (i % 4 == 0) {
      add(Kind::kWait, server, at + 2, at + 10, read, disk);
      add(Kind::kUnwait, disk, at + 10, at + 10, {}, server);
      add(Kind::kHardware, disk, at + 3, at + 10, read, server);
      add(Kind::kRunning, server, at + 10, at + 16, serve);
    } else {
      add(Kind::kRunning, server, at + 2, at + 16, serve);
    }
    add(Kind::kRunning, client, at + 16, at + 20, run);
  }
  t.AddInstance("Session", "client", 0, rounds * 20);
  trace::SortByTime(t.trace.events);
  return std::move(t.trace);
}

}  // namespace culprit::causality
