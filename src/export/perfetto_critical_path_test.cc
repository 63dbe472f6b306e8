// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto_critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/test_folder.h"
#include "export/sample_trace.h"
#include "export/target.h"
#include "export/wire_message.h"
#include "trace/random_trace.h"
#include "trace/small_trace.h"
#include "waitgraph/critical_path.h"
#include "waitgraph/instance_source.h"

namespace culprit::export_::TEST_FILE {
namespace {

using trace::EventKind;
using trace::SmallTrace;

std::string ExportedBytes(const trace::TraceReader& reader) {
  std::string bytes;
  const auto result = ExportPerfetto(reader, {}, [&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  EXPECT_TRUE(result.ok());
  return bytes;
}

struct PathSlice {
  std::string track;
  std::string name;
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t depth = 0;
  bool leaf = true;
  std::map<std::string, std::string> notes = {};
};

// Slices of the tracks of critical paths, as they begin.
std::vector<PathSlice> PathSlices(const std::string& bytes) {
  std::map<uint64_t, std::string> tracks;
  std::map<uint64_t, std::vector<size_t>> open;
  std::vector<PathSlice> slices;
  for (const WireMessage& packet : WireMessage(bytes).Messages(1)) {
    if (packet.Has(60)) tracks[packet.Message(60).Number(1)] = packet.Message(60).Text(2);
    if (!packet.Has(11)) continue;
    const WireMessage event = packet.Message(11);
    const std::string& track = tracks.at(event.Number(11));
    if (!track.starts_with(kPathTrack)) continue;
    std::vector<size_t>& stack = open[event.Number(11)];
    if (event.Number(9) == 2) {
      EXPECT_FALSE(stack.empty());
      slices[stack.back()].end = packet.Number(8);
      stack.pop_back();
      continue;
    }
    if (!stack.empty()) slices[stack.back()].leaf = false;
    PathSlice slice{
        .track = track, .name = event.Text(23), .begin = packet.Number(8), .depth = stack.size()};
    for (const WireMessage& note : event.Messages(4)) slice.notes[note.Text(10)] = note.Text(6);
    stack.push_back(slices.size());
    slices.push_back(slice);
  }
  for (const auto& [track, left] : open) EXPECT_TRUE(left.empty());
  return slices;
}

SmallTrace Handover() {
  SmallTrace small(0, 100);
  small.Add(EventKind::kRunning, "a", 0, 10, "m!f");
  small.Add(EventKind::kWait, "a", 10, 60, "m!f;libpthread.so!pthread_mutex_lock").peer =
      small.Thread("b");
  small.Add(EventKind::kReady, "a", 60, 65);
  small.Add(EventKind::kRunning, "a", 65, 100, "m!g");
  small.Add(EventKind::kRunning, "b", 0, 100, "m!holder");
  small.Add(EventKind::kUnwait, "b", 60, 60, "m!holder").peer = small.Thread("a");
  return small;
}

TEST(PerfettoCriticalPath, WaitsHaveWhatExplainsThemWithin) {
  SmallTrace small = Handover();
  small.AddInstance("Open", "a", 0, 100);
  std::vector<std::string> lines;
  for (const PathSlice& slice : PathSlices(ExportedBytes(small.Reader()))) {
    EXPECT_EQ(slice.track, "critical path: Open");
    lines.push_back(std::string(slice.depth, ' ') + slice.name + " " + std::to_string(slice.begin) +
                    " " + std::to_string(slice.end));
    if (slice.name == "m!holder") {
      EXPECT_EQ(slice.notes.at("kind"), "running");
      EXPECT_NE(slice.notes.at("thread").find("b"), std::string::npos);
    }
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"Open 0 100", " m!f 0 10",
                                             " wait (lock) libpthread.so!pthread_mutex_lock 10 60",
                                             "  m!holder 10 60", " ready 60 65", " m!g 65 100"}));
}

TEST(PerfettoCriticalPath, InstancesThatOverlapGetTracksOfTheirOwn) {
  SmallTrace small = Handover();
  small.AddInstance("Open", "a", 0, 100);
  small.AddInstance("Open", "b", 20, 90);
  small.AddInstance("Open", "b", 95, 100);
  size_t instances = 0;
  for (const PathSlice& slice : PathSlices(ExportedBytes(small.Reader()))) {
    if (slice.depth == 0) {
      ++instances;
      EXPECT_EQ(slice.name, "Open");
    }
  }
  EXPECT_EQ(instances, 3u);
}

// The innermost slices are the leaves of the path, to the nanosecond.
TEST(PerfettoCriticalPath, InnermostSlicesTileEveryInstance) {
  size_t paths = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    trace::Trace trace = trace::RandomTrace({.seed = seed, .events = 400, .threads = 5});
    trace.metadata.has_switches = true;
    const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace(trace), "random");
    ASSERT_TRUE(reader.ok());
    const std::vector<PathSlice> slices = PathSlices(ExportedBytes(reader.value()));
    uint64_t end = 0;
    uint64_t tiled_to = 0;
    for (const PathSlice& slice : slices) {
      if (slice.depth == 0) {
        EXPECT_EQ(tiled_to, end) << "seed " << seed;
        end = slice.end;
        tiled_to = slice.begin;
        ++paths;
      } else if (slice.leaf) {
        EXPECT_EQ(slice.begin, tiled_to) << "seed " << seed;
        tiled_to = slice.end;
      }
    }
    EXPECT_EQ(tiled_to, end) << "seed " << seed;
    const waitgraph::Timelines timelines(trace);
    size_t expected = 0;
    for (const trace::Instance& instance : waitgraph::InstancesOf(timelines).instances) {
      expected += waitgraph::FindCriticalPath(timelines, instance).segments.size() + 1;
    }
    EXPECT_EQ(slices.size(), expected) << "seed " << seed;
  }
  EXPECT_GT(paths, 30u);
}

TEST(PerfettoCriticalPath, IsLeftOutWithoutSwitchesAndAtImpossibleTimes) {
  SmallTrace small = Handover();
  small.AddInstance("Open", "a", 0, 100);
  small.trace.metadata.has_switches = false;
  EXPECT_TRUE(PathSlices(ExportedBytes(small.Reader())).empty());
  small.trace.metadata.has_switches = true;
  small.Add(EventKind::kRunning, "c", (int64_t{1} << 60) + 5, (int64_t{1} << 60) + 9);
  EXPECT_TRUE(PathSlices(ExportedBytes(small.Reader())).empty());
}

// An independent reader finds the same fields.
TEST(PerfettoCriticalPath, ProtocDecodesTheFile) {
  const TestFolder folder;
  SmallTrace small = Handover();
  small.AddInstance("Open", "a", 0, 100);
  const std::string path = folder.Write("t.pftrace", ExportedBytes(small.Reader()));
  FILE* pipe = popen(("protoc --decode_raw < " + path + " 2>/dev/null").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char chunk[4096];
  for (size_t n; (n = fread(chunk, 1, sizeof chunk, pipe)) > 0;) text.append(chunk, n);
  if (pclose(pipe) != 0 || text.empty()) GTEST_SKIP() << "protoc is not installed";
  EXPECT_NE(text.find("2: \"critical path: Open\""), std::string::npos);
  EXPECT_NE(text.find("23: \"m!holder\""), std::string::npos);
}

}  // namespace
}  // namespace culprit::export_::TEST_FILE
