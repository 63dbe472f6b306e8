// SPDX-License-Identifier: Apache-2.0
//
// RandomSchedule: a small trace with switches that a scheduler could have
// recorded, for tests: tiles abut, wakers run when they wake, waits may have
// length zero, end by a device or a timer, or never. With `faulty` it is then
// damaged: wakers replaced by anybody, tiles removed, moved and stretched, as
// holes and false records do. Same seed, same trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "trace/small_trace.h"

namespace culprit::waitgraph {

struct RandomScheduleOptions {
  uint64_t seed = 1;
  size_t threads = 5;
  size_t steps = 60;
  bool faulty = false;
};

class RandomSchedule {
 public:
  explicit RandomSchedule(const RandomScheduleOptions& options)
      : options_(options), random_(options.seed) {
    for (size_t i = 0; i < options.threads; ++i) {
      threads_.push_back({.name = "t" + std::to_string(i)});
      small_.Thread(threads_.back().name);
    }
    for (const char* device : {"[disk]", "[timer]", "[interrupt]", "[disk 8:0]"}) {
      small_.Thread(device, trace::ThreadKind::kDevice);
    }
    small_.Thread("kworker", trace::ThreadKind::kKernel);
  }

  trace::Trace Make() {
    for (size_t i = 0; i < options_.steps; ++i) {
      now_ns_ += static_cast<int64_t>(Below(4));
      Act(threads_[Below(threads_.size())]);
    }
    now_ns_ += 1;
    for (State& t : threads_) {
      if (t.state == kWaiting) EndWait(t, "", trace::kWakerUnknown);
      if (t.state != kReady) continue;
      Close(t, trace::EventKind::kReady);
      t.state = kRunning;
    }
    for (State& t : threads_) Close(t, trace::EventKind::kRunning);
    small_.trace.metadata.end_ns = now_ns_;
    if (options_.faulty) Damage();
    trace::SortByTime(small_.trace.events);
    return std::move(small_.trace);
  }

 private:
  enum Phase { kRunning, kReady, kWaiting };
  struct State {
    std::string name;
    Phase state = kRunning;
    int64_t since_ns = 0;
    const char* stack = "";
    int64_t issue_ns = -1;
  };
  static constexpr const char* kWaitStacks[] = {
      "app!A;libc.so.6!pthread_mutex_lock;[kernel]!futex_do_wait",
      "app!B;libc.so.6!pthread_mutex_lock;[kernel]!futex_do_wait",
      "app!A;app!C;[kernel]!folio_wait_bit_common;[kernel]!io_schedule",
      "app!D;[kernel]!do_nanosleep",
      "",
  };
  static constexpr const char* kRunStacks[] = {"app!A", "app!A;app!B", ""};

  size_t Below(size_t n) { return random_() % n; }
  bool Chance(size_t one_in) { return Below(one_in) == 0; }

  void Close(State& t, trace::EventKind kind) {
    if (kind != trace::EventKind::kWait && t.since_ns == now_ns_) return;
    const char* stack = kind == trace::EventKind::kRunning ? kRunStacks[Below(3)] : t.stack;
    trace::Event& e = small_.Add(kind, t.name, t.since_ns, now_ns_, stack);
    if (kind == trace::EventKind::kReady) e.peer = small_.Thread(threads_[0].name);
    t.since_ns = now_ns_;
  }

  void EndWait(State& t, const std::string& waker, uint8_t flags) {
    Close(t, trace::EventKind::kWait);
    trace::Event& wait = small_.trace.events.back();
    wait.flags = flags;
    t.state = kReady;
    if (t.issue_ns >= 0) {
      trace::Event& request =
          small_.Add(trace::EventKind::kHardware, "[disk 8:0]", t.issue_ns, now_ns_, t.stack);
      request.peer = small_.Thread(Chance(3) ? "kworker" : t.name);
      t.issue_ns = -1;
    }
    if (waker.empty()) return;
    const trace::ThreadId id = small_.Thread(waker);
    const trace::ThreadId woken = small_.Thread(t.name);
    // The request above may have moved the events.
    for (size_t i = small_.trace.events.size(); i-- > 0;) {
      trace::Event& e = small_.trace.events[i];
      if (e.kind != trace::EventKind::kWait || e.thread != woken) continue;
      e.peer = id;
      break;
    }
    const char* stack = Chance(8) ? "app!K;[kernel]!complete_signal" : "app!U";
    small_.Add(trace::EventKind::kUnwait, waker, now_ns_, now_ns_, stack).peer = woken;
  }

  void Act(State& t) {
    if (t.state == kReady) {
      Close(t, trace::EventKind::kReady);
      t.state = kRunning;
    } else if (t.state == kWaiting) {
      static const char* const kWakers[] = {"[disk]", "[timer]", "[interrupt]", "[disk]", ""};
      if (t.issue_ns < 0 && Chance(2)) {
        t.issue_ns = now_ns_;
      } else if (Chance(6)) {
        const std::string waker = kWakers[Below(5)];
        EndWait(t, waker, static_cast<uint8_t>(waker.empty() ? trace::kWakerLost : 0));
      }
    } else {
      Run(t);
    }
  }

  void Run(State& t) {
    Close(t, trace::EventKind::kRunning);
    State& other = threads_[Below(threads_.size())];
    if (other.state == kWaiting && Chance(2)) {
      EndWait(other, t.name, 0);
    } else if (Chance(2)) {
      t.state = kWaiting;
      t.stack = kWaitStacks[Below(5)];
    } else if (Chance(3)) {
      t.state = kReady;
    }
  }

  void Damage() {
    std::vector<trace::Event>& events = small_.trace.events;
    const size_t everybody = small_.trace.dictionary.threads().size();
    for (trace::Event& e : events) {
      if (Chance(6)) e.peer = trace::ThreadId(Below(everybody));
      if (Chance(12)) e.time_ns += static_cast<int64_t>(Below(5));
      if (Chance(12)) e.dur_ns += static_cast<int64_t>(Below(9));
      if (Chance(30)) e.thread = trace::ThreadId(Below(everybody));
      if (Chance(40)) e.thread = trace::ThreadId();
    }
    std::erase_if(events, [&](const trace::Event&) { return Chance(10); });
  }

  RandomScheduleOptions options_;
  std::mt19937_64 random_;
  trace::SmallTrace small_{0, 0};
  std::vector<State> threads_;
  int64_t now_ns_ = 0;
};

}  // namespace culprit::waitgraph
