// SPDX-License-Identifier: Apache-2.0
#include "record/flight_target.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::record::TEST_FILE {
namespace {

using trace::EventKind;

// A thread that runs and waits in turn, 10 ns each.
void Fill(FlightTarget& target, int64_t end_ns) {
  const trace::ThreadId thread = target.dictionary().AddThread({.tid = 7});
  target.metadata().begin_ns = 0;
  target.metadata().has_switches = true;
  for (int64_t t = 0; t < end_ns; t += 20) {
    ASSERT_TRUE(target
                    .Add({.time_ns = t,
                          .dur_ns = 10,
                          .thread = thread,
                          .cpu = 0,
                          .kind = EventKind::kRunning})
                    .ok());
    ASSERT_TRUE(
        target.Add({.time_ns = t + 10, .dur_ns = 10, .thread = thread, .kind = EventKind::kWait})
            .ok());
  }
}

TEST(FlightTarget, ADumpCoversTheWindowAndNoMore) {
  const TestFolder folder;
  FlightTarget target(105, 1 << 20);
  Fill(target, 1000);
  ASSERT_TRUE(target.WriteTo(folder / "d.ctrace", 1000, false).ok());
  const auto trace = trace::ReadTrace(folder / "d.ctrace");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().metadata.begin_ns, 895);
  EXPECT_EQ(trace.value().metadata.end_ns, 1000);
  EXPECT_TRUE(trace::CheckConservation(trace.value()).ok());
  int64_t total_ns = 0;
  for (const auto& event : trace.value().events) total_ns += event.dur_ns;
  EXPECT_EQ(total_ns, 105);
}

// What comes while a dump is made is later than its end.
TEST(FlightTarget, WhatComesMeanwhileTakesNothingFromADump) {
  const TestFolder folder;
  FlightTarget target(100, 1 << 20);
  Fill(target, 1000);
  target.Hold();
  ASSERT_TRUE(target
                  .Add({.time_ns = 1000,
                        .dur_ns = 60,
                        .thread = trace::ThreadId(0),
                        .kind = EventKind::kWait})
                  .ok());
  EXPECT_EQ(target.Cut(1000).metadata.begin_ns, 900);
  target.Release();
  EXPECT_EQ(target.Cut(1060).metadata.begin_ns, 960);
  EXPECT_GE(target.Cut(1000).metadata.begin_ns, 950);
}

// What it met before the window is not in the dump.
TEST(FlightTarget, ADumpHasTheNamesOfItsEventsOnly) {
  const TestFolder folder;
  FlightTarget target(100, 1 << 20);
  trace::Dictionary& names = target.dictionary();
  for (int64_t i = 0; i < 50; ++i) {
    const trace::ProcessId process =
        names.AddProcess({.pid = i, .name = names.Intern("program" + std::to_string(i))});
    const trace::ThreadId thread = names.AddThread({.tid = i, .process = process});
    const trace::FrameId frame = names.InternFrame("", "function" + std::to_string(i));
    ASSERT_TRUE(target
                    .Add({.time_ns = i * 10,
                          .dur_ns = 10,
                          .thread = thread,
                          .stack = names.InternStack({}, frame),
                          .kind = EventKind::kWait})
                    .ok());
  }
  ASSERT_TRUE(target.WriteTo(folder / "d.ctrace", 500, false).ok());
  const auto trace = trace::ReadTrace(folder / "d.ctrace");
  ASSERT_TRUE(trace.ok());
  const trace::Dictionary& kept = trace.value().dictionary;
  ASSERT_EQ(trace.value().events.size(), 10u);
  EXPECT_EQ(kept.threads().size(), 10u);
  EXPECT_EQ(kept.processes().size(), 10u);
  for (const trace::Event& event : trace.value().events) {
    const std::string number = std::to_string(event.time_ns / 10);
    EXPECT_NE(kept.StackText(event.stack).find("function" + number), std::string::npos);
    EXPECT_EQ(std::to_string(kept.threads()[event.thread.value].tid), number);
  }
}

TEST(FlightTarget, NothingOfADumpIsLaterThanItsEnd) {
  FlightTarget target(1'000'000, 1 << 20);
  Fill(target, 1000);
  const trace::Trace trace = target.Cut(505);
  EXPECT_EQ(trace.metadata.end_ns, 505);
  int64_t total_ns = 0;
  for (const auto& event : trace.events) {
    EXPECT_LE(event.end_ns(), 505);
    total_ns += event.dur_ns;
  }
  EXPECT_EQ(total_ns, 505);
}

TEST(FlightTarget, MemoryIsBoundedAndTheDumpSaysWhatItCovers) {
  const TestFolder folder;
  FlightTarget target(1'000'000, 10 * sizeof(trace::Event));
  Fill(target, 1000);
  EXPECT_LE(target.events(), 10u);
  ASSERT_TRUE(target.WriteTo(folder / "d.ctrace", 1000, false).ok());
  const auto trace = trace::ReadTrace(folder / "d.ctrace");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().metadata.begin_ns, 900);
  EXPECT_TRUE(trace::CheckConservation(trace.value()).ok());
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
