// SPDX-License-Identifier: Apache-2.0
//
// LoopTrace: a trace in which threads do one thing after the other, for tests of
// automatic instances. Each thread has its own clock: Run and Wait append a tile
// to its life, so tiles abut. A user thread's name is "process/thread".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "trace/small_trace.h"

namespace culprit::waitgraph {

class LoopTrace {
 public:
  LoopTrace() : small_(0, 0) {}

  trace::ThreadId Thread(const std::string& name,
                         trace::ThreadKind kind = trace::ThreadKind::kUser) {
    const bool is_new = !now_ns_.contains(name);
    now_ns_.try_emplace(name, 0);
    const trace::ThreadId id = small_.Thread(name, kind);
    if (is_new && kind == trace::ThreadKind::kUser) AddNames(name, id);
    return id;
  }

  void Run(const std::string& thread, int64_t dur_ns, std::string_view stack = {}) {
    Append(trace::EventKind::kRunning, thread, dur_ns, stack);
  }
  // `waker` "" stands for nobody known.
  void Wait(const std::string& thread, int64_t dur_ns, std::string_view stack,
            const std::string& waker = "[net]") {
    trace::ThreadId peer;
    if (!waker.empty()) {
      const bool device = waker.front() == '[';
      peer = Thread(waker, device ? trace::ThreadKind::kDevice : trace::ThreadKind::kUser);
    }
    trace::Event& wait = Append(trace::EventKind::kWait, thread, dur_ns, stack);
    wait.peer = peer;
    if (!peer.valid()) wait.flags |= trace::kWakerUnknown;
  }
  // `thread` wakes `woken` now, from this stack.
  void Wake(const std::string& thread, const std::string& woken, std::string_view stack) {
    const trace::ThreadId peer = Thread(woken);
    Append(trace::EventKind::kUnwait, thread, 0, stack).peer = peer;
  }
  // A system call that begins now; time does not pass.
  void Syscall(const std::string& thread, int64_t dur_ns, int64_t number) {
    trace::Event& call = Append(trace::EventKind::kSyscall, thread, 0, {});
    call.dur_ns = dur_ns;
    call.arg0 = number;
  }

  // Sorted and complete.
  const trace::Trace& Done() {
    for (const auto& [name, now] : now_ns_) {
      small_.trace.metadata.end_ns = std::max(small_.trace.metadata.end_ns, now);
    }
    trace::SortByTime(small_.trace.events);
    return small_.trace;
  }
  trace::Trace& trace() { return small_.trace; }

 private:
  void AddNames(const std::string& name, trace::ThreadId id) {
    trace::Dictionary& dictionary = small_.trace.dictionary;
    const size_t slash = name.find('/');
    if (slash == std::string::npos) return;
    const std::string process = name.substr(0, slash);
    const auto [it, added] = processes_.try_emplace(process);
    if (added) it->second = dictionary.AddProcess({.name = dictionary.Intern(process)});
    dictionary.thread(id).process = it->second;
    dictionary.thread(id).name = dictionary.Intern(name.substr(slash + 1));
  }

  trace::Event& Append(trace::EventKind kind, const std::string& thread, int64_t dur_ns,
                       std::string_view stack) {
    Thread(thread);
    int64_t& now = now_ns_[thread];
    trace::Event& event = small_.Add(kind, thread, now, now + dur_ns, stack);
    now += dur_ns;
    return event;
  }

  trace::SmallTrace small_;
  std::map<std::string, int64_t> now_ns_;
  std::map<std::string, trace::ProcessId> processes_;
};

}  // namespace culprit::waitgraph
