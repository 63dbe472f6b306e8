// SPDX-License-Identifier: Apache-2.0
//
// EventSink: where assembled events leave for their target. It keeps the range of
// time they cover, the first error of the target (later events are dropped, the
// caller asks once per fact), and counts of odd facts, which become rows of the
// Diagnostics at the end: counting is an increment, so that a recording full of
// oddities costs no more than a clean one. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "assemble/event_target.h"
#include "base/diagnostics.h"
#include "base/result.h"

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
  kLeftOut,
  kBrokenRecord,
};
inline constexpr size_t kOddities = 13;
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
    "wait too short to be recorded, or lost, added up per thread",
    "off-CPU record that does not follow the one before it, mended",
};

class EventSink {
 public:
  explicit EventSink(EventTarget& target) : target_(target) {}

  void Emit(const trace::Event& event) {
    Cover(event.time_ns, event.end_ns());
    if (error_) return;
    const Status status = target_.Add(event);
    if (!status.ok()) error_ = status.error();
  }
  void Cover(int64_t begin_ns, int64_t end_ns) {
    begin_ns_ = covered_ ? std::min(begin_ns_, begin_ns) : begin_ns;
    end_ns_ = covered_ ? std::max(end_ns_, end_ns) : end_ns;
    covered_ = true;
  }
  void Count(Oddity oddity, uint64_t count = 1) { counts_[static_cast<size_t>(oddity)] += count; }
  uint64_t count(Oddity oddity) const { return counts_[static_cast<size_t>(oddity)]; }
  void ReportTo(Diagnostics& diagnostics) const {
    for (size_t i = 0; i < kOddities; ++i) {
      if (counts_[i] != 0) diagnostics.Count(kOddityTexts[i], counts_[i]);
    }
  }
  Status status() const { return error_ ? Status(*error_) : Status(); }

  EventTarget& target() { return target_; }
  trace::Dictionary& dictionary() { return target_.dictionary(); }
  int64_t begin_ns() const { return begin_ns_; }
  int64_t end_ns() const { return end_ns_; }

 private:
  EventTarget& target_;
  std::array<uint64_t, kOddities> counts_ = {};
  std::optional<Error> error_;
  int64_t begin_ns_ = 0;
  int64_t end_ns_ = 0;
  bool covered_ = false;
};

}  // namespace culprit::assemble
