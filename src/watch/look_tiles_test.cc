// SPDX-License-Identifier: Apache-2.0
#include "watch/look_tiles.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace culprit::watch::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

guard::SeenStack Seen(const char* function, uint64_t times, bool running) {
  guard::SeenStack seen;
  seen.by = guard::SeenStack::By::kLook;
  seen.seen = times;
  seen.running = running;
  seen.frames = {{.module = "app", .function = function}, {.module = "app", .function = "main"}};
  return seen;
}

guard::UnitReport Unit(uint64_t begin_ns, uint64_t wall_ns, uint64_t cpu_ns) {
  guard::UnitReport report;
  report.tid = 7;
  report.begin_ns = begin_ns;
  report.wall_ns = wall_ns;
  report.cpu_ns = cpu_ns;
  report.has_cpu = true;
  return report;
}

// Thread 7 from 0 to 1000 as the recorder leaves it when it left everything out.
class LookTiles : public testing::Test {
 protected:
  LookTiles() {
    trace::Dictionary& dictionary = trace_.dictionary;
    thread_ = dictionary.AddThread({.tid = 7, .name = dictionary.Intern("app")});
    left_out_ = dictionary.InternStack(trace::StackId::none(),
                                       dictionary.InternFrame("", "[waits left out]"));
    trace_.metadata.has_switches = true;
    trace_.metadata.end_ns = 1000;
  }
  void Add(EventKind kind, int64_t time_ns, int64_t dur_ns, int flags,
           trace::StackId stack = trace::StackId::none()) {
    Event event;
    event.kind = kind;
    event.time_ns = time_ns;
    event.dur_ns = dur_ns;
    event.thread = thread_;
    event.stack = stack;
    event.flags = static_cast<uint8_t>(flags);
    trace_.events.push_back(event);
  }
  void LeaveOut(int64_t time_ns, int64_t dur_ns) {
    Add(EventKind::kWait, time_ns, dur_ns, trace::kInferred | trace::kWakerUnknown, left_out_);
  }
  std::string Leaf(const Event& event) const {
    if (!event.stack.valid()) return "-";
    const trace::Dictionary& dictionary = trace_.dictionary;
    const auto& frame = dictionary.frames()[dictionary.stacks()[event.stack.value].frame.value];
    return std::string(dictionary.Text(frame.function));
  }
  // "kind leaf" -> time.
  std::map<std::string, int64_t> Sums() const {
    std::map<std::string, int64_t> sums;
    for (const Event& event : trace_.events) {
      sums[std::string(Name(event.kind)) + " " + Leaf(event)] += event.dur_ns;
    }
    return sums;
  }
  void ExpectTiled() const {
    int64_t at_ns = 0;
    for (const Event& event : trace_.events) {
      EXPECT_EQ(event.time_ns, at_ns);
      EXPECT_GT(event.dur_ns, 0);
      at_ns = event.end_ns();
    }
    EXPECT_EQ(at_ns, 1000);
  }

  trace::Trace trace_;
  trace::ThreadId thread_;
  trace::StackId left_out_;
};

TEST_F(LookTiles, AHoleBecomesWhatTheUnitWasSeenDoing) {
  LeaveOut(0, 1000);
  guard::UnitReport unit = Unit(200, 500, 100);
  unit.ready_ns = 40;
  unit.stacks = {Seen("Flush", 2, false), Seen("Lock", 1, false), Seen("Parse", 1, true)};
  EXPECT_EQ(FillFromLooks({&unit, 1}, trace_), 1u);
  ExpectTiled();
  const std::map<std::string, int64_t> expected = {{"running Parse", 100},
                                                   {"ready -", 40},
                                                   {"wait Flush", 240},
                                                   {"wait Lock", 120},
                                                   {"wait [waits left out]", 500}};
  EXPECT_EQ(Sums(), expected);
  for (const Event& event : trace_.events) EXPECT_TRUE(event.flags & trace::kInferred);
}

TEST_F(LookTiles, ASumUnderTheStackOfOneOfItsWaitsIsFilledToo) {
  const trace::StackId one = trace_.dictionary.InternStack(
      trace::StackId::none(), trace_.dictionary.InternFrame("app", "Other"));
  Add(EventKind::kWait, 0, 1000, trace::kInferred | trace::kWakerUnknown, one);
  trace_.events.back().arg0 = 12;
  guard::UnitReport unit = Unit(200, 500, 0);
  unit.stacks = {Seen("Flush", 1, false)};
  EXPECT_EQ(FillFromLooks({&unit, 1}, trace_), 1u);
  ExpectTiled();
  const std::map<std::string, int64_t> expected = {{"wait Flush", 500}, {"wait Other", 500}};
  EXPECT_EQ(Sums(), expected);
}

TEST_F(LookTiles, WhatWasRecordedStaysAndCountsAgainstTheUnit) {
  const trace::StackId real = trace_.dictionary.InternStack(
      trace::StackId::none(), trace_.dictionary.InternFrame("app", "Real"));
  LeaveOut(0, 300);
  Add(EventKind::kRunning, 300, 60, 0, real);
  Add(EventKind::kWait, 360, 140, 0, real);
  LeaveOut(500, 500);
  guard::UnitReport unit = Unit(200, 400, 80);
  unit.stacks = {Seen("Flush", 3, false), Seen("Parse", 1, true)};
  EXPECT_EQ(FillFromLooks({&unit, 1}, trace_), 1u);
  ExpectTiled();
  const std::map<std::string, int64_t> expected = {{"running Real", 60},
                                                   {"wait Real", 140},
                                                   {"running Parse", 20},
                                                   {"wait Flush", 180},
                                                   {"wait [waits left out]", 600}};
  EXPECT_EQ(Sums(), expected);
}

TEST_F(LookTiles, ASpanWithoutASampleGetsTheStackSeenRunning) {
  Add(EventKind::kRunning, 0, 1000, trace::kNotSampled);
  guard::UnitReport unit = Unit(0, 1000, 1000);
  unit.stacks = {Seen("Rare", 1, true), Seen("Often", 4, true)};
  EXPECT_EQ(FillFromLooks({&unit, 1}, trace_), 1u);
  ExpectTiled();
  EXPECT_EQ(Sums(), (std::map<std::string, int64_t>{{"running Often", 1000}}));
  EXPECT_EQ(trace_.events[0].flags, trace::kInferred);
}

TEST_F(LookTiles, WithoutALookNothingChanges) {
  LeaveOut(0, 1000);
  guard::UnitReport unit = Unit(200, 500, 100);
  unit.stacks = {Seen("Loop", 1, true)};
  unit.stacks[0].by = guard::SeenStack::By::kEnd;
  const std::vector<Event> before = trace_.events;
  EXPECT_EQ(FillFromLooks({&unit, 1}, trace_), 0u);
  unit.stacks[0].by = guard::SeenStack::By::kGuard;
  EXPECT_EQ(FillFromLooks({&unit, 1}, trace_), 0u);
  unit.stacks = {Seen("Flush", 1, false)};
  unit.tid = 8;
  EXPECT_EQ(FillFromLooks({&unit, 1}, trace_), 0u);
  EXPECT_EQ(trace_.events, before);
}

TEST_F(LookTiles, TilesCoverTheThreadWhateverTheReportsSay) {
  std::mt19937 random(5);
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    trace_.events.clear();
    for (int64_t at_ns = 0; at_ns < 1000;) {
      const int64_t dur_ns = std::min<int64_t>(1 + below(300), 1000 - at_ns);
      if (below(2) == 0) {
        LeaveOut(at_ns, dur_ns);
      } else {
        Add(below(2) == 0 ? EventKind::kRunning : EventKind::kReady, at_ns, dur_ns,
            below(2) == 0 ? trace::kInferred : 0);
      }
      at_ns += dur_ns;
    }
    std::vector<guard::UnitReport> units;
    for (int i = 0; i < 3; ++i) {
      guard::UnitReport unit = Unit(below(1000), below(600), below(2000));
      unit.has_cpu = below(2) == 0;
      unit.ready_ns = below(800);
      if (below(3) != 0) unit.stacks.push_back(Seen("A", 1 + below(4), true));
      if (below(3) != 0) unit.stacks.push_back(Seen("B", 1 + below(4), false));
      if (below(3) != 0) unit.stacks.push_back(Seen("C", 1 + below(4), false));
      units.push_back(unit);
    }
    FillFromLooks(units, trace_);
    ExpectTiled();
  }
}

}  // namespace
}  // namespace culprit::watch::TEST_FILE
