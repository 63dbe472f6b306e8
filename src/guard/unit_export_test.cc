// SPDX-License-Identifier: Apache-2.0
#include "guard/unit_export.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "trace/small_trace.h"

namespace culprit::guard::TEST_FILE {
namespace {

Profile OneType() {
  Profile profile;
  profile.program = "/usr/bin/server";
  profile.types.resize(1);
  profile.types[0].name = "get";
  return profile;
}

wire::Sample SampleOf(uint32_t type, uint32_t tid, uint64_t begin_ns, uint64_t wall_ns) {
  wire::Sample sample = {};
  sample.type = type;
  sample.tid = tid;
  sample.begin_ns = begin_ns;
  sample.wall_ns = wall_ns;
  return sample;
}

TEST(UnitExport, WritesUnitsAsInstances) {
  const TestFolder folder;
  const Profile profile = OneType();
  UnitTraceMaker maker(profile);
  const wire::Sample samples[] = {SampleOf(0, 7, 5000, 100), SampleOf(wire::kUnknown, 7, 3000, 50),
                                  SampleOf(wire::kWholeIteration, 7, 3000, 5000)};
  maker.Add(99, samples);
  UnitReport slow;
  slow.pid = 99;
  slow.tid = 8;
  slow.type = 0;
  slow.begin_ns = 6000;
  slow.wall_ns = 900;
  const wire::Sample same[] = {SampleOf(0, 8, 6000, 300)};  // of one of its ready events
  maker.Add(99, same);
  maker.Add(slow);
  ASSERT_TRUE(maker.Write(folder / "units.ctrace", Overwrite::kRefuse).ok());
  const auto trace = trace::ReadTrace(folder / "units.ctrace");
  ASSERT_TRUE(trace.ok()) << trace.error().ToString();
  const trace::Trace& units = trace.value();
  ASSERT_EQ(units.instances.size(), 3u);
  EXPECT_EQ(units.dictionary.Text(units.instances[0].scenario), "server: [unknown type]");
  EXPECT_EQ(units.dictionary.Text(units.instances[1].scenario), "server: get");
  EXPECT_EQ(units.instances[2].dur_ns(), 900);
  EXPECT_EQ(units.dictionary.threads()[units.instances[2].thread.value].tid, 8);
  EXPECT_EQ(units.metadata.begin_ns, 3000);
  EXPECT_EQ(units.metadata.end_ns, 6900);
}

TEST(UnitExport, PutsUnitsIntoARecordingByThreadAndTime) {
  const TestFolder folder;
  const Profile profile = OneType();
  UnitTraceMaker maker(profile);
  const wire::Sample samples[] = {SampleOf(0, 1, 500, 100),     // thread "a"
                                  SampleOf(0, 2, 500, 100),     // "b", which ended before
                                  SampleOf(0, 77, 500, 100),    // nobody
                                  SampleOf(0, 1, 9'000, 100)};  // too late
  maker.Add(99, samples);
  ASSERT_TRUE(maker.Write(folder / "units.ctrace", Overwrite::kRefuse).ok());
  trace::SmallTrace small(0, 1000);
  small.trace.metadata.clock = "CLOCK_MONOTONIC";
  small.Add(trace::EventKind::kRunning, "a", 0, 1000, "m!f");
  small.Add(trace::EventKind::kRunning, "b", 0, 100, "m!f");
  small.trace.dictionary.thread(trace::ThreadId(1)).end_ns = 100;
  ASSERT_TRUE(trace::WriteTrace(small.trace, folder / "r.ctrace", Overwrite::kRefuse).ok());
  const auto units = trace::TraceReader::Open(folder / "units.ctrace");
  const auto recording = trace::TraceReader::Open(folder / "r.ctrace");
  ASSERT_TRUE(units.ok() && recording.ok());
  const auto added =
      AddUnits(units.value(), recording.value(), folder / "both.ctrace", Overwrite::kRefuse);
  ASSERT_TRUE(added.ok()) << added.error().ToString();
  EXPECT_EQ(added.value().added, 1u);
  EXPECT_EQ(added.value().no_thread, 2u);
  EXPECT_EQ(added.value().outside, 1u);
  const auto both = trace::ReadTrace(folder / "both.ctrace");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both.value().events.size(), 2u);
  ASSERT_EQ(both.value().instances.size(), 1u);
  EXPECT_EQ(both.value().instances[0].t0_ns, 500);
}

TEST(UnitExport, RefusesARecordingOfAnotherClock) {
  const TestFolder folder;
  trace::SmallTrace small(0, 1000);
  ASSERT_TRUE(trace::WriteTrace(small.trace, folder / "r.ctrace", Overwrite::kRefuse).ok());
  const auto recording = trace::TraceReader::Open(folder / "r.ctrace");
  ASSERT_TRUE(recording.ok());
  EXPECT_FALSE(
      AddUnits(recording.value(), recording.value(), folder / "x", Overwrite::kRefuse).ok());
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
