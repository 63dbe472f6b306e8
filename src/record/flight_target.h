// SPDX-License-Identifier: Apache-2.0
//
// FlightTarget: the events of the last minute or so, in memory. Bounded in time
// and in bytes; the oldest go first, and whatever a dump says it covers it
// covers whole: events that reach into the window from before are cut at its
// begin. 48 bytes an event beside the dictionary, which only grows: when that is
// large (names_bytes) another target is to take over. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "assemble/event_target.h"
#include "base/file.h"
#include "base/result.h"

namespace culprit::record {

class FlightTarget final : public assemble::EventTarget {
 public:
  FlightTarget(int64_t window_ns, uint64_t max_bytes);

  Status Add(const trace::Event& event) override;
  void AddInstance(const trace::Instance& instance) override;
  trace::Dictionary& dictionary() override { return dictionary_; }
  trace::Metadata& metadata() override { return metadata_; }

  // From Hold to Release nothing is forgotten: a dump's end lies before the last of what has
  // come by then, and that must not cost it its begin.
  void Hold() { holds_ = true; }
  void Release();

  // [from, end) of what is kept, without the dictionary; `from` is the later of
  // end - window and what memory allowed.
  trace::Trace Cut(int64_t end_ns) const;
  // The same written as a whole trace. Names are looked up if `symbols`.
  Status WriteTo(const std::string& path, int64_t end_ns, bool symbols) const;
  size_t events() const { return events_.size(); }
  // Of the dictionary, and of what is remembered of its processes elsewhere; roughly.
  uint64_t names_bytes() const;

 private:
  void Evict();

  int64_t window_ns_;
  size_t max_events_;
  bool holds_ = false;
  int64_t latest_ns_ = INT64_MIN;
  int64_t evicted_ns_ = INT64_MIN;  // the latest end of what is gone
  trace::Dictionary dictionary_;
  trace::Metadata metadata_;
  std::deque<trace::Event> events_;
  std::deque<trace::Instance> instances_;
};

}  // namespace culprit::record
