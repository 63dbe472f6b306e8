// SPDX-License-Identifier: Apache-2.0
//
// SmallTrace: a trace written down event by event, for tests. Threads and
// stacks are made on first mention ("m!f;m!g"), times are given in plain
// nanoseconds.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "trace/trace.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::trace {

class SmallTrace {
 public:
  SmallTrace(int64_t begin_ns, int64_t end_ns) {
    trace.metadata.begin_ns = begin_ns;
    trace.metadata.end_ns = end_ns;
    trace.metadata.has_switches = true;
    trace.metadata.has_wakers = true;
    trace.metadata.cpus = 1;
  }

  ThreadId Thread(const std::string& name, ThreadKind kind = ThreadKind::kUser) {
    const auto it = threads_.find(name);
    if (it != threads_.end()) return it->second;
    Dictionary& d = trace.dictionary;
    const auto tid = static_cast<int64_t>(threads_.size() + 1);
    return threads_[name] = d.AddThread({.tid = tid, .name = d.Intern(name), .kind = kind});
  }

  StackId Stack(std::string_view text) {
    StackId stack;
    while (!text.empty()) {
      const std::string_view frame = text.substr(0, text.find(';'));
      const size_t bang = frame.find('!');
      const bool named = bang != std::string_view::npos;
      stack = trace.dictionary.InternStack(
          stack, trace.dictionary.InternFrame(named ? frame.substr(0, bang) : "",
                                              named ? frame.substr(bang + 1) : frame));
      text.remove_prefix(std::min(text.size(), frame.size() + 1));
    }
    return stack;
  }

  Event& Add(EventKind kind, const std::string& thread, int64_t begin_ns, int64_t end_ns,
             std::string_view stack = {}, uint16_t cpu = 0) {
    trace.events.push_back({.time_ns = begin_ns,
                            .dur_ns = end_ns - begin_ns,
                            .thread = Thread(thread),
                            .stack = Stack(stack),
                            .cpu = cpu,
                            .kind = kind});
    return trace.events.back();
  }

  void AddInstance(const std::string& scenario, const std::string& thread, int64_t t0_ns,
                   int64_t t1_ns) {
    trace.instances.push_back({.scenario = trace.dictionary.Intern(scenario),
                               .thread = Thread(thread),
                               .t0_ns = t0_ns,
                               .t1_ns = t1_ns});
  }

  TraceReader Reader(WriterOptions options = {}) const {
    return std::move(TraceReader::FromBytes(EncodeTrace(trace, options), "small")).value();
  }

  Trace trace;

 private:
  std::map<std::string, ThreadId> threads_;
};

}  // namespace culprit::trace
