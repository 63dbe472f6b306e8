// SPDX-License-Identifier: Apache-2.0
//
// For tests of the assembler: facts by short calls, and the trace that they give as lines.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assemble/assembler.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::assemble {

using trace::Event;
using trace::EventKind;
using trace::StackId;
using trace::ThreadId;
using trace::Trace;

class Recording {
 public:
  Recording() : writer_([this](std::string_view bytes) { return Keep(bytes); }), a(writer_) {}

  StackId Stack(std::string_view leaf) {
    return writer_.dictionary().InternStack({}, writer_.dictionary().InternFrame("m", leaf));
  }
  void Switch(int64_t t, uint16_t cpu, int64_t prev, int64_t next, bool runnable = false,
              std::string_view leaf = {}) {
    EXPECT_TRUE(a.Switch({.time_ns = t,
                          .cpu = cpu,
                          .prev_tid = prev,
                          .next_tid = next,
                          .prev_runnable = runnable,
                          .prev_stack = leaf.empty() ? StackId() : Stack(leaf)})
                    .ok());
  }
  void Waking(int64_t t, uint16_t cpu, int64_t waker, int64_t wakee,
              WakeContext context = WakeContext::kThread, std::string_view device = {}) {
    EXPECT_TRUE(a.Waking({.time_ns = t,
                          .cpu = cpu,
                          .waker_tid = waker,
                          .wakee_tid = wakee,
                          .context = context,
                          .device = device})
                    .ok());
  }
  void Sample(int64_t t, uint16_t cpu, int64_t tid, std::string_view leaf) {
    EXPECT_TRUE(
        a.Sample({.time_ns = t, .cpu = cpu, .tid = tid, .period_ns = 10, .stack = Stack(leaf)})
            .ok());
  }
  Trace Finish(int64_t end_ns = 0) {
    EXPECT_TRUE(a.Finish(end_ns).ok());
    EXPECT_TRUE(writer_.Finish().ok());
    Trace trace =
        std::move(trace::TraceReader::FromBytes(std::move(bytes_), "test")).value().ReadAll();
    trace.diagnostics.Merge(a.diagnostics());
    return trace;
  }

 private:
  Status Keep(std::string_view bytes) {
    bytes_ += bytes;
    return {};
  }

  std::string bytes_;
  trace::TraceWriter writer_;

 public:
  Assembler a;
};

inline std::string Show(const Trace& trace, const Event& e) {
  const auto tid = [&](ThreadId id) {
    if (!id.valid()) return std::string("-");
    const trace::Thread& row = trace.dictionary.threads()[id.value];
    return row.tid >= 0 ? std::to_string(row.tid) : std::string(trace.dictionary.Text(row.name));
  };
  std::string text = std::string(trace::Name(e.kind)) + " " + tid(e.thread) + " [" +
                     std::to_string(e.time_ns) + "," + std::to_string(e.end_ns()) + ")";
  if (e.peer.valid()) text += " peer " + tid(e.peer);
  if (e.stack.valid()) text += " " + trace.dictionary.StackText(e.stack);
  static constexpr std::array<std::string_view, 8> kFlagNames = {
      "not-sampled", "preempted", "unknown", "lost", "inferred", "unfinished", "begin", "end"};
  for (size_t i = 0; i < kFlagNames.size(); ++i) {
    if (e.flags >> i & 1) text += " " + std::string(kFlagNames[i]);
  }
  return text;
}

// Events of one tid (or all) in time order, one a line.
inline std::vector<std::string> Lines(const Trace& trace, int64_t tid = -1) {
  std::vector<std::string> lines;
  for (const Event& event : trace.events) {
    const bool mine = tid < 0 || trace.dictionary.threads()[event.thread.value].tid == tid;
    if (mine) lines.push_back(Show(trace, event));
  }
  return lines;
}

inline uint64_t Counted(const Trace& trace, std::string_view what) {
  const auto it = trace.diagnostics.rows().find(what);
  return it == trace.diagnostics.rows().end() ? 0 : it->second.count;
}

inline constexpr std::string_view kInferredText = "switch missing from the recording, inferred";

inline void ExpectConserved(const Trace& trace) {
  const auto report = CheckConservation(trace);
  EXPECT_TRUE(report.ok()) << report.first_problem;
}

}  // namespace culprit::assemble
