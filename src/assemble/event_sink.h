// SPDX-License-Identifier: Apache-2.0
//
// EventSink: where assembled events leave for the writer. It keeps the range of
// time they cover, the first error of the writer (later events are dropped, the
// caller asks once per fact), and counts of odd facts, which become rows of the
// Diagnostics at the end: counting is an increment, so that a recording full of
// oddities costs no more than a clean one. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/diagnostics.h"
#include "base/result.h"
#include "trace/trace_writer.h"

namespace culprit::assemble {

enum class Oddity : uint8_t {
  kBackwards,
  kInferredSwitch,
  kNeedlessWaking,
  kLateSwitch,
  kEndedSample,
  kLostEnter,
  kLostExit,
  kLostIssue,
  kLostComplete,
  kLostBegin,
  kDeepSlice,
};
inline constexpr size_t kOddities = 11;
inline constexpr std::array<std::string_view, kOddities> kOddityTexts = {
    "fact earlier than one before it, moved to that one's time",
    "switch missing from the recording, inferred",
    "waking of a thread that was not waiting",
    "switch after too many samples without one, ignored",
    "sample of a thread that had ended, ignored",
    "system call exit without its entry",
    "system call entry without its exit",
    "block request completed without its issue",
    "block request issued without its completion",
    "slice end without its begin",
    "slice nested too deeply, ignored",
};

class EventSink {
 public:
  explicit EventSink(trace::TraceWriter& writer) : writer_(writer) {}

  void Emit(const trace::Event& event) {
    Cover(event.time_ns, event.end_ns());
    if (error_) return;
    const Status status = writer_.Add(event);
    if (!status.ok()) error_ = status.error();
  }
  void Cover(int64_t begin_ns, int64_t end_ns) {
    begin_ns_ = covered_ ? std::min(begin_ns_, begin_ns) : begin_ns;
    end_ns_ = covered_ ? std::max(end_ns_, end_ns) : end_ns;
    covered_ = true;
  }
  void Count(Oddity oddity) { ++counts_[static_cast<size_t>(oddity)]; }
  uint64_t count(Oddity oddity) const { return counts_[static_cast<size_t>(oddity)]; }
  void ReportTo(Diagnostics& diagnostics) const {
    for (size_t i = 0; i < kOddities; ++i) {
      if (counts_[i] != 0) diagnostics.Count(kOddityTexts[i], counts_[i]);
    }
  }
  Status status() const { return error_ ? Status(*error_) : Status(); }

  trace::TraceWriter& writer() { return writer_; }
  trace::Dictionary& dictionary() { return writer_.dictionary(); }
  int64_t begin_ns() const { return begin_ns_; }
  int64_t end_ns() const { return end_ns_; }

 private:
  trace::TraceWriter& writer_;
  std::array<uint64_t, kOddities> counts_ = {};
  std::optional<Error> error_;
  int64_t begin_ns_ = 0;
  int64_t end_ns_ = 0;
  bool covered_ = false;
};

}  // namespace culprit::assemble
