// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "export/sample_trace.h"
#include "export/target.h"
#include "export/wire_message.h"
#include "trace/random_trace.h"
#include "trace/small_trace.h"

namespace culprit::export_::TEST_FILE {
namespace {

using trace::EventKind;
using trace::SmallTrace;

std::vector<WireMessage> Exported(const trace::TraceReader& reader, Summary* summary = nullptr) {
  std::string bytes;
  const auto result = ExportPerfetto(reader, {}, [&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  EXPECT_TRUE(result.ok());
  if (summary != nullptr && result.ok()) *summary = result.value();
  return WireMessage(bytes).Messages(1);
}

struct Switch {
  uint64_t cpu, time, prev, state, next;
  auto operator<=>(const Switch&) const = default;
};

struct KernelEvent {
  uint64_t cpu = 0;
  WireMessage event;
};

std::vector<KernelEvent> KernelEvents(const std::vector<WireMessage>& packets, uint64_t field) {
  std::vector<KernelEvent> found;
  for (const WireMessage& packet : packets) {
    for (const WireMessage& bundle : packet.Messages(1)) {
      for (const WireMessage& event : bundle.Messages(2)) {
        if (event.Has(field)) found.push_back({bundle.Number(1), event});
      }
    }
  }
  return found;
}

std::vector<Switch> Switches(const std::vector<WireMessage>& packets) {
  std::vector<Switch> switches;
  for (const auto& [cpu, event] : KernelEvents(packets, 4)) {
    const WireMessage body = event.Message(4);
    EXPECT_EQ(event.Number(2), body.Number(2));
    switches.push_back({cpu, event.Number(1), body.Number(2), body.Number(4), body.Number(6)});
  }
  std::stable_sort(switches.begin(), switches.end(), [](const Switch& a, const Switch& b) {
    return std::pair(a.cpu, a.time) < std::pair(b.cpu, b.time);
  });
  return switches;
}

TEST(ExportPerfetto, SwitchesSayWhatEachCpuRanAndWhyItStopped) {
  SmallTrace small(100, 200);
  small.Thread("a");
  small.Thread("b");
  small.Add(EventKind::kRunning, "a", 100, 110, "m!f");
  small.Add(EventKind::kRunning, "a", 110, 120, "m!g");  // the same span, another sample
  small.Add(EventKind::kWait, "a", 120, 150, "m!f;m!wait").peer = small.Thread("b");
  small.Add(EventKind::kReady, "a", 150, 160);
  small.Add(EventKind::kRunning, "a", 160, 200, "", 1);
  small.Add(EventKind::kRunning, "b", 120, 140);
  small.Add(EventKind::kReady, "b", 140, 145).flags = trace::kPreempted;
  small.Add(EventKind::kRunning, "b", 145, 155);
  small.trace.dictionary.thread(small.Thread("b")).end_ns = 155;
  const std::vector<Switch> expected = {{0, 100, 0, 0, 1}, {0, 120, 1, 1, 2},  {0, 140, 2, 0, 0},
                                        {0, 145, 0, 0, 2}, {0, 155, 2, 16, 0}, {1, 160, 0, 0, 1},
                                        {1, 200, 1, 0, 0}};
  for (size_t block : {1u, 3u, 100u}) {
    EXPECT_EQ(Switches(Exported(small.Reader({.block_events = block}))), expected);
  }
}

TEST(ExportPerfetto, TilesWithoutLengthStandBeforeWhatTheyLeadTo) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kWait, "a", 0, 10);
  small.Add(EventKind::kReady, "a", 10, 10);
  small.Add(EventKind::kRunning, "a", 10, 30);
  small.Add(EventKind::kWait, "a", 30, 30);
  small.Add(EventKind::kReady, "a", 30, 40);
  small.Add(EventKind::kRunning, "a", 40, 100);
  const std::vector<Switch> expected = {
      {0, 10, 0, 0, 1}, {0, 30, 1, 1, 0}, {0, 40, 0, 0, 1}, {0, 100, 1, 0, 0}};
  EXPECT_EQ(Switches(Exported(small.Reader())), expected);
}

TEST(ExportPerfetto, RunningTimeByThreadIsTheTraces) {
  const std::vector<WireMessage> packets = Exported(SampleReader());
  std::map<uint64_t, uint64_t> running;
  std::map<uint64_t, Switch> on_cpu;
  for (const Switch& now : Switches(packets)) {
    const auto before = on_cpu.find(now.cpu);
    if (before != on_cpu.end()) {
      EXPECT_EQ(before->second.next, now.prev);
      if (now.prev != 0) running[now.prev] += now.time - before->second.time;
    }
    on_cpu.insert_or_assign(now.cpu, now);
  }
  EXPECT_EQ(running, (std::map<uint64_t, uint64_t>{{11, 450}, {12, 700}}));
}

TEST(ExportPerfetto, WakingsNameBothThreads) {
  trace::Trace trace = SampleTrace();
  trace.events.push_back({.time_ns = 1200,
                          .thread = trace::ThreadId(2),  // the disk
                          .peer = trace::ThreadId(1),
                          .kind = EventKind::kUnwait});
  const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace(trace), "t");
  const auto wakings = KernelEvents(Exported(reader.value()), 20);
  ASSERT_EQ(wakings.size(), 2u);
  for (const auto& [cpu, event] : wakings) {
    const WireMessage waking = event.Message(20);
    if (event.Number(2) == 12) {
      EXPECT_EQ(cpu, 1u);
      EXPECT_EQ(event.Number(1), 1400u);
      EXPECT_EQ(waking.Number(2), 11u);
      EXPECT_EQ(waking.Text(1), "UI");
      EXPECT_EQ(waking.Number(5), 0u);  // where it ran next
    } else {
      EXPECT_EQ(event.Number(2), 0u);
      EXPECT_EQ(event.Number(5), 8u) << "a device wakes from interrupt context";
      EXPECT_EQ(waking.Number(2), 12u);
    }
  }
}

TEST(ExportPerfetto, NamesProcessesAndThreads) {
  const std::vector<WireMessage> packets = Exported(SampleReader());
  std::vector<std::string> names;
  for (const WireMessage& packet : packets) {
    if (!packet.Has(2)) continue;
    for (const WireMessage& process : packet.Message(2).Messages(1)) {
      names.push_back(std::to_string(process.Number(1)) + " " + process.Text(3));
    }
    for (const WireMessage& thread : packet.Message(2).Messages(2)) {
      names.push_back(std::to_string(thread.Number(3)) + "/" + std::to_string(thread.Number(1)) +
                      " " + thread.Text(2));
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"10 my browser", "10/11 UI", "10/12 W0"}));
}

// Samples of a sequence as "time tid a;b;c".
std::vector<std::string> Samples(const std::vector<WireMessage>& packets, std::string_view base) {
  std::map<uint64_t, std::string> functions, stacks;
  std::map<uint64_t, uint64_t> frames;
  std::vector<std::string> samples;
  uint64_t sequence = 0;
  for (const WireMessage& packet : packets) {
    if (packet.Has(59)) {
      EXPECT_EQ(packet.Number(13), 1u);
      const std::string name = packet.Message(59).Message(12).Message(1).Text(10);
      if (name == base) sequence = packet.Number(10);
    }
    if (packet.Number(10) != sequence) continue;
    const WireMessage interned = packet.Message(12);
    for (const WireMessage& row : interned.Messages(5)) functions[row.Number(1)] = row.Text(2);
    for (const WireMessage& row : interned.Messages(6)) frames[row.Number(1)] = row.Number(2);
    for (const WireMessage& row : interned.Messages(7)) {
      std::string text;
      for (uint64_t frame : row.Numbers(2)) {
        const std::string name = frames.at(frame) == 0 ? "?" : functions.at(frames.at(frame));
        text += text.empty() ? name : ";" + name;
      }
      EXPECT_TRUE(stacks.emplace(row.Number(1), text).second) << "interned twice";
    }
    if (!packet.Has(66)) continue;
    const WireMessage sample = packet.Message(66);
    samples.push_back(std::to_string(packet.Number(8)) + " " + std::to_string(sample.Number(3)) +
                      " " + stacks.at(sample.Number(4)));
  }
  return samples;
}

TEST(ExportPerfetto, StacksAreSamplesOfTheirKind) {
  const std::vector<WireMessage> packets = Exported(SampleReader());
  const std::string odd = "main;operator()(int; char)\n\uFFFD;?";
  EXPECT_EQ(Samples(packets, "cpu-clock"),
            (std::vector<std::string>{"1050 11 main", "1550 12 " + odd}));
  EXPECT_EQ(Samples(packets, "sched:sched_switch"),
            (std::vector<std::string>{"1100 11 main;AcquireMDU", "1400 11 main;AcquireMDU",
                                      "1000 12 " + odd}));
  EXPECT_EQ(Samples(packets, "sched:sched_waking"), (std::vector<std::string>{"1400 12 " + odd}));
}

TEST(ExportPerfetto, SamplesCutTheirSpans) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kRunning, "a", 0, 10, "m!f");
  small.Add(EventKind::kRunning, "a", 10, 20, "m!g");
  small.Add(EventKind::kRunning, "a", 20, 40, "m!h");
  small.Add(EventKind::kWait, "a", 40, 100);
  EXPECT_EQ(Samples(Exported(small.Reader()), "cpu-clock"),
            (std::vector<std::string>{"10 1 f", "20 1 g", "30 1 h"}));
}

TEST(ExportPerfetto, SyscallsHaveEnterAndExit) {
  const std::vector<WireMessage> packets = Exported(SampleReader());
  const auto enters = KernelEvents(packets, 329), exits = KernelEvents(packets, 330);
  ASSERT_EQ(enters.size(), 1u);
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(enters[0].event.Number(1), 1100u);
  EXPECT_EQ(enters[0].event.Message(329).Number(1), 98u);
  EXPECT_EQ(exits[0].event.Number(1), 1400u);
  EXPECT_EQ(static_cast<int64_t>(exits[0].event.Message(330).Number(2)), -11);
}

TEST(ExportPerfetto, SyscallsEndOnTheCpuTheThreadHasThen) {
  SmallTrace small(0, 100);
  small.Add(EventKind::kRunning, "a", 0, 20, "", 0);
  small.Add(EventKind::kWait, "a", 20, 50);
  small.Add(EventKind::kRunning, "a", 50, 100, "", 3);
  small.Add(EventKind::kSyscall, "a", 10, 50, "", 0);
  const std::vector<WireMessage> packets = Exported(small.Reader());
  ASSERT_EQ(KernelEvents(packets, 329).size(), 1u);
  ASSERT_EQ(KernelEvents(packets, 330).size(), 1u);
  EXPECT_EQ(KernelEvents(packets, 329)[0].cpu, 0u);
  EXPECT_EQ(KernelEvents(packets, 330)[0].cpu, 3u);
  // It ends at the instant of the switch, after it: in the file too.
  size_t at_switch = 0, at_exit = 0;
  for (size_t i = 0; i < packets.size(); ++i) {
    for (const WireMessage& event : packets[i].Message(1).Messages(2)) {
      if (packets[i].Message(1).Number(1) == 3 && event.Number(1) == 50) {
        (event.Has(330) ? at_exit : at_switch) = i;
      }
    }
  }
  EXPECT_LT(at_switch, at_exit);
}

// Slices as "track begin end name", by track.
std::vector<std::string> Slices(const std::vector<WireMessage>& packets) {
  std::map<uint64_t, std::string> tracks;
  std::map<uint64_t, std::vector<std::string>> open;
  std::vector<std::string> slices;
  for (const WireMessage& packet : packets) {
    if (packet.Has(60)) {
      const WireMessage track = packet.Message(60);
      std::string name = track.Has(4) ? track.Message(4).Text(5) : track.Text(2);
      if (track.Has(5)) name = tracks.at(track.Number(5)) + "." + name;
      EXPECT_TRUE(tracks.emplace(track.Number(1), name).second);
    }
    if (!packet.Has(11)) continue;
    const WireMessage event = packet.Message(11);
    if (tracks.at(event.Number(11)).starts_with("critical path")) continue;
    std::vector<std::string>& stack = open[event.Number(11)];
    if (event.Number(9) == 1) {
      stack.push_back(event.Text(23) + " " + std::to_string(packet.Number(8)));
    } else {
      EXPECT_FALSE(stack.empty());
      slices.push_back(tracks.at(event.Number(11)) + ": " + stack.back() + " " +
                       std::to_string(packet.Number(8)));
      stack.pop_back();
    }
  }
  for (const auto& [track, left] : open) EXPECT_TRUE(left.empty()) << "slices without an end";
  return slices;
}

TEST(ExportPerfetto, InstancesCallsAndDevicesAreSlices) {
  EXPECT_EQ(Slices(Exported(SampleReader())),
            (std::vector<std::string>{"UI.instances: TabCreate 1000 1900",
                                      "UI: fs.sys!AcquireMDU 1460 1470", "disk: write 1050 1200"}));
}

TEST(ExportPerfetto, SlicesThatOverlapGetTracksOfTheirOwn) {
  SmallTrace small(0, 100);
  small.AddInstance("outer", "a", 0, 50);
  small.AddInstance("inner", "a", 10, 20);
  small.AddInstance("across", "a", 40, 60);
  small.AddInstance("after", "a", 50, 55);
  small.Add(EventKind::kRunning, "a", 0, 100);
  std::vector<std::string> slices = Slices(Exported(small.Reader()));
  std::sort(slices.begin(), slices.end());
  EXPECT_EQ(slices,
            (std::vector<std::string>{"a.instances: across 40 60", "a.instances: after 50 55",
                                      "a.instances: inner 10 20", "a.instances: outer 0 50"}));
}

TEST(ExportPerfetto, NegativeTimesAreMoved) {
  SmallTrace small(-100, 100);
  small.Add(EventKind::kRunning, "a", -100, -50);
  small.Add(EventKind::kWait, "a", -50, 100);
  const std::vector<Switch> expected = {{0, 0, 0, 0, 1}, {0, 50, 1, 1, 0}};
  EXPECT_EQ(Switches(Exported(small.Reader())), expected);
}

TEST(ExportPerfetto, EveryCutOfATraceGivesAWholeFileOrAnError) {
  const std::string bytes = SampleBytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto reader = trace::TraceReader::FromBytes(bytes.substr(0, length), "t");
    if (!reader.ok()) continue;
    for (const Target& target : Targets()) {
      if (target.to_sink == nullptr) continue;
      std::string out;
      const auto result = target.to_sink(reader.value(), {}, [&](std::string_view piece) {
        out += piece;
        return Status();
      });
      if (!result.ok()) {
        EXPECT_EQ(out, "") << target.name;
      } else if (target.name == "perfetto") {
        (void)WireMessage(out).Messages(1);
      }
    }
  }
}

TEST(Targets, BearExtremeValues) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    trace::Trace trace = trace::RandomTrace({.seed = seed, .events = 300, .wild = true});
    trace.metadata.has_switches = seed % 2 == 0;
    const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace(trace), "wild");
    ASSERT_TRUE(reader.ok());
    for (const Target& target : Targets()) {
      if (target.to_sink == nullptr) continue;
      std::string out;
      const auto result = target.to_sink(reader.value(), {}, [&](std::string_view piece) {
        out += piece;
        return Status();
      });
      ASSERT_TRUE(result.ok()) << target.name;
      EXPECT_EQ(result.value().events, trace.events.size()) << target.name;
      const bool is_json =
          target.name == "json" || target.name == "firefox" || target.name == "speedscope";
      EXPECT_TRUE(!is_json || nlohmann::json::accept(out)) << target.name;
      if (target.name == "perfetto") (void)WireMessage(out).Messages(1);
    }
  }
}

TEST(Targets, PassOnTheErrorOfTheirSink) {
  for (const Target& target : Targets()) {
    if (target.to_sink == nullptr) continue;
    const auto result = target.to_sink(
        SampleReader(), {}, [](std::string_view) { return Status(Error{.message = "disk full"}); });
    ASSERT_FALSE(result.ok()) << target.name;
    EXPECT_EQ(result.error().message, "disk full");
  }
}

}  // namespace
}  // namespace culprit::export_::TEST_FILE
