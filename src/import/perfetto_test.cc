// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <zstd.h>

#include <filesystem>

#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/perfetto_clock.h"
#include "import/perfetto_proto.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

// A protobuf message written field by field.
class Message {
 public:
  Message& Number(uint32_t field, uint64_t value) {
    Varint(field << 3);
    Varint(value);
    return *this;
  }
  Message& Text(uint32_t field, std::string_view bytes) {
    Varint(field << 3 | 2);
    Varint(bytes.size());
    bytes_ += bytes;
    return *this;
  }
  Message& Nested(uint32_t field, const Message& message) { return Text(field, message.bytes_); }
  Message& Packed(uint32_t field, std::initializer_list<uint64_t> values) {
    Message packed;
    for (const uint64_t value : values) packed.Varint(value);
    return Text(field, packed.bytes_);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

Message Clock(uint64_t id, uint64_t time) { return Message().Number(1, id).Number(2, time); }

Message Packet(uint32_t kind, const Message& data, uint64_t sequence = 1) {
  return Message().Nested(kind, data).Number(10, sequence);
}

Message Ftrace(uint64_t time, uint64_t tid, uint32_t kind, const Message& payload) {
  return Message().Number(1, time).Number(2, tid).Nested(kind, payload);
}

Message Switch(uint64_t time, std::string_view prev, uint64_t prev_tid, uint64_t state,
               std::string_view next, uint64_t next_tid) {
  return Ftrace(time, prev_tid, 4,
                Message()
                    .Text(1, prev)
                    .Number(2, prev_tid)
                    .Number(4, state)
                    .Text(5, next)
                    .Number(6, next_tid));
}

Message Waking(uint64_t time, uint64_t waker, std::string_view comm, uint64_t tid) {
  return Ftrace(time, waker, 20, Message().Text(1, comm).Number(2, tid));
}

Message Bundle(uint64_t cpu, std::initializer_list<Message> events) {
  Message bundle;
  bundle.Number(1, cpu);
  for (const Message& event : events) bundle.Nested(2, event);
  return bundle;
}

std::string Trace(std::initializer_list<Message> packets) {
  Message trace;
  for (const Message& packet : packets) trace.Nested(1, packet);
  return trace.bytes();
}

ImportedTrace Import(std::string bytes) {
  return ImportTrace(PerfettoImporter(), MemorySource("t", std::move(bytes)), {.symbols = false});
}

std::vector<std::string> Waits(const ImportedTrace& imported) {
  std::vector<std::string> waits;
  for (const trace::Event& event : imported.trace.events) {
    if (event.kind != EventKind::kWait) continue;
    waits.push_back(imported.Thread(event.thread) + " " + std::to_string(event.dur_ns) + " by " +
                    imported.Thread(event.peer) + " " + imported.Stack(event.stack));
  }
  return waits;
}

// A sleeps at 1000 on CPU 0; B on CPU 1 wakes it at 3000. The bundle of CPU 1
// stands first: packets have no order.
std::string SchedTrace() {
  return Trace(
      {Packet(1, Bundle(1, {Switch(500, "swapper", 0, 0, "b", 20), Waking(3000, 20, "a", 10)})),
       Packet(1, Bundle(0, {Switch(1000, "a", 10, 1, "swapper", 0),
                            Switch(3500, "swapper", 0, 0, "a", 10)})),
       Packet(2, Message()
                     .Nested(1, Message().Number(1, 10).Text(3, "/bin/prog").Text(3, "-x"))
                     .Nested(2, Message().Number(1, 20).Text(2, "b").Number(3, 10)))});
}

TEST(Perfetto, SortsSchedulerEventsAndNamesProcesses) {
  const ImportedTrace imported = Import(SchedTrace());
  ASSERT_TRUE(imported.status.ok()) << imported.status.error().ToString();
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(Waits(imported), std::vector<std::string>{"prog/a (10) 2000 by prog/b (20) "});
  EXPECT_EQ(imported.trace.dictionary.Text(imported.trace.dictionary.processes()[0].command_line),
            "/bin/prog -x");
}

TEST(Perfetto, ReadsCompactSwitchesAndWakings) {
  Message compact;
  compact.Packed(1, {1000, 2500}).Packed(2, {1, 0}).Packed(3, {0, 10}).Packed(6, {0, 1});
  compact.Text(5, "swapper").Text(5, "a");
  Message waking;
  waking.Packed(1, {400}).Packed(2, {0}).Packed(3, {20}).Text(5, "a").Text(5, "b").Packed(6, {1});
  waking.Packed(7, {3000}).Packed(8, {10}).Packed(11, {0}).Packed(12, {0});
  const ImportedTrace imported =
      Import(Trace({Packet(1, Bundle(0, {Switch(100, "swapper", 0, 0, "a", 10)})),
                    Packet(1, Message().Number(1, 0).Nested(4, compact)),
                    Packet(1, Message().Number(1, 1).Nested(4, waking))}));
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(Waits(imported), std::vector<std::string>{"a/a (10) 2000 by b/b (20) "});
}

// Callstack 1 is main > work > __schedule.
Message Interned() {
  const auto text = [](uint64_t iid, std::string_view name) {
    return Message().Number(1, iid).Text(2, name);
  };
  Message interned;
  interned.Nested(5, text(1, "main"))
      .Nested(5, text(2, "_Z4workv"))
      .Nested(5, text(3, "__schedule"));
  interned.Nested(17, text(1, "bin")).Nested(17, text(2, "prog")).Nested(17, text(3, "kernel"));
  interned.Nested(19, Message().Number(1, 1).Number(7, 1).Number(7, 2));
  interned.Nested(19, Message().Number(1, 2).Number(7, 3));
  for (uint64_t i = 1; i <= 3; ++i) {
    interned.Nested(6, Message().Number(1, i).Number(2, i).Number(3, i == 3 ? 2 : 1).Number(4, 16));
  }
  return interned.Nested(7, Message().Number(1, 1).Number(2, 1).Number(2, 2).Number(2, 3));
}

Message SamplePacket(uint64_t time, uint64_t tid, bool first, const Message& timebase) {
  Message packet;
  packet.Number(8, time).Number(10, 9).Number(13, first ? 3 : 2);
  if (first) {
    packet.Nested(12, Interned());
    packet.Nested(59, Message().Number(58, 5).Nested(12, Message().Nested(1, timebase)));
  }
  return packet.Nested(66, Message().Number(1, 0).Number(2, tid).Number(3, tid).Number(4, 1));
}

Message Snapshot() {
  return Packet(6, Message().Nested(1, Clock(6, 1'000'000)).Nested(1, Clock(5, 500'000)));
}

TEST(Perfetto, StacksTakenAtSwitchesBelongToTheSwitch) {
  const Message timebase =
      Message().Number(1, 1).Nested(3, Message().Text(1, "sched:sched_switch"));
  // The two clocks are off by 200 us more than the snapshot says.
  const ImportedTrace imported =
      Import(Trace({Snapshot(), SamplePacket(1'300'000, 10, true, timebase),
                    SamplePacket(3'300'000, 10, false, timebase),
                    Packet(1, Bundle(0, {Switch(2'000'000, "a", 10, 1, "swapper", 0),
                                         Waking(2'500'000, 0, "a", 10),
                                         Switch(2'600'000, "swapper", 0, 0, "a", 10),
                                         Switch(4'000'000, "a", 10, 1, "swapper", 0),
                                         Waking(4'500'000, 0, "a", 10)}))}));
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  const std::vector<std::string> waits = Waits(imported);
  ASSERT_EQ(waits.size(), 2u);
  for (const std::string& wait : waits) {
    EXPECT_NE(wait.find("prog!main;prog!work();[kernel]!__schedule"), std::string::npos) << wait;
  }
}

TEST(Perfetto, SamplesByTimeAreRunningEvents) {
  const Message timebase = Message().Number(2, 100).Number(4, 1);
  const ImportedTrace imported =
      Import(Trace({Snapshot(), SamplePacket(1'500'000, 10, true, timebase),
                    SamplePacket(2'500'000, 10, false, timebase)}));
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.CountStacked(EventKind::kRunning), 2u);
  EXPECT_EQ(imported.trace.metadata.sample_period_ns, 10'000'000);
}

TEST(Perfetto, PacketsAfterALossWaitForTheNextState) {
  const Message timebase = Message().Number(2, 100);
  Message lost = SamplePacket(2'500'000, 10, false, timebase);
  lost.Number(42, 1);
  const ImportedTrace imported = Import(Trace(
      {Snapshot(), SamplePacket(1'500'000, 10, true, timebase), lost,
       SamplePacket(2'600'000, 10, false, timebase), SamplePacket(2'700'000, 10, true, timebase)}));
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Count(EventKind::kRunning), 2u);
  EXPECT_EQ(imported.Counted("packet that refers to lost ones, skipped"), 2u);
  EXPECT_EQ(imported.Counted("packets lost before this one"), 1u);
}

TEST(Perfetto, TrackEventsAreSlicesAndInstances) {
  const auto event = [](uint64_t time, uint64_t type, uint64_t track, std::string_view name) {
    return Packet(11, Message().Number(9, type).Number(11, track).Text(23, name), 3)
        .Number(8, time);
  };
  const ImportedTrace imported =
      Import(Trace({Packet(60, Message().Number(1, 100).Nested(
                                   4, Message().Number(1, 5).Number(2, 6).Text(5, "ui"))),
                    Packet(60, Message().Number(1, 101).Number(5, 100)),
                    event(1000, 1, 100, "draw"), event(1100, 1, 101, "load"),
                    event(1500, 2, 100, ""), event(1900, 2, 101, ""), event(2000, 2, 101, "")}));
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Count(EventKind::kMarker), 2u);
  ASSERT_FALSE(imported.trace.instances.empty());
  const auto load = std::find_if(
      imported.trace.instances.begin(), imported.trace.instances.end(),
      [&](const auto& each) { return imported.trace.dictionary.Text(each.scenario) == "load"; });
  ASSERT_NE(load, imported.trace.instances.end());
  EXPECT_EQ(load->dur_ns(), 800);
  EXPECT_EQ(imported.Thread(load->thread), "ui/ui (6)");
  EXPECT_EQ(imported.Counted("end of an asynchronous slice without its begin"), 1u);
}

TEST(Perfetto, ReadsCompressedPackets) {
  const std::string plain = SchedTrace();
  std::string zstd(ZSTD_compressBound(plain.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), plain.data(), plain.size(), 3));
  ASSERT_LT(plain.size(), 60'000u);
  const auto size = static_cast<uint16_t>(plain.size());
  std::string stored = "\x78\x01\x01";
  for (const uint16_t number : {size, static_cast<uint16_t>(~size)}) {
    stored.push_back(static_cast<char>(number & 0xff));
    stored.push_back(static_cast<char>(number >> 8));
  }
  stored += plain + std::string(4, '\0');
  for (const Message& packet : {Message().Text(133, zstd), Message().Text(50, stored)}) {
    const ImportedTrace imported = Import(Trace({packet}));
    ASSERT_TRUE(imported.status.ok());
    EXPECT_EQ(Waits(imported), Waits(Import(plain)));
  }
  EXPECT_FALSE(Import(Trace({Message().Text(50, "nonsense")})).status.ok());
}

TEST(Perfetto, IsToldFromOtherProtobufs) {
  const std::string file = SchedTrace();
  EXPECT_EQ(PerfettoImporter().sniff(MemorySource("t", file), file), Match::kLikely);
  const std::string pprof =
      Message().Nested(1, Message().Number(1, 1).Number(2, 2)).Text(6, "cpu").bytes();
  EXPECT_EQ(PerfettoImporter().sniff(MemorySource("t", pprof), pprof), Match::kNo);
  EXPECT_EQ(PerfettoImporter().sniff(MemorySource("t", "\n\n\n"), "\n\n\n"), Match::kNo);
}

TEST(Perfetto, CutAnywhereDoesNoHarm) {
  const std::string file =
      SchedTrace() +
      Trace({Snapshot(), SamplePacket(1'500'000, 10, true, Message().Number(2, 100))});
  for (size_t size = 0; size < file.size(); ++size) {
    const ImportedTrace imported = Import(file.substr(0, size));
    if (imported.status.ok()) {
      ASSERT_EQ(imported.Problem(), "") << size;
    }
    std::string flipped = file;
    flipped[size] = static_cast<char>(flipped[size] ^ (1 << (size % 8)));
    (void)Import(std::move(flipped));
  }
}

TEST(PerfettoClocks, GoThroughAClockThatBothHave) {
  PerfettoClocks clocks;
  clocks.AddSnapshot(0, Message().Nested(1, Clock(6, 1000)).Nested(1, Clock(3, 100)).bytes());
  clocks.AddSnapshot(
      7, Message()
             .Nested(1, Clock(3, 200))
             .Nested(1, Message().Number(1, 64).Number(2, 5).Number(3, 1).Number(4, 1000))
             .bytes());
  EXPECT_EQ(clocks.ToTraceTime(3, 0, 150), 1050);
  EXPECT_EQ(clocks.ToTraceTime(64, 7, 1), 1100 + 1000);  // one microsecond on
  EXPECT_EQ(clocks.ToTraceTime(64, 7, 2), 1100 + 3000);
  EXPECT_FALSE(clocks.ToTraceTime(64, 8, 1).has_value());
  EXPECT_FALSE(clocks.ToTraceTime(6, 0, UINT64_MAX).has_value());
}

ImportedTrace ImportReal(const std::string& name) {
  auto sources = OpenSources(CULPRIT_SOURCE_DIR "/../shared/data/perfetto/" + name);
  EXPECT_EQ(sources.size(), 1u);
  return ImportTrace(PerfettoImporter(), sources.at(0).value());
}

TEST(Perfetto, ReadsRealTraces) {
  const std::string folder = CULPRIT_SOURCE_DIR "/../shared/data/perfetto";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const ImportedTrace android = ImportReal("android12-cpuschedstack.pftrace");
  ASSERT_TRUE(android.status.ok());
  EXPECT_EQ(android.Problem(), "");
  EXPECT_EQ(android.Count(EventKind::kUnwait), 13'907u + 17u);  // wakings and new tasks
  EXPECT_GT(android.CountStacked(EventKind::kWait), 4'000u);
  const ImportedTrace phone = ImportReal("ms-test.perfetto-trace");
  ASSERT_TRUE(phone.status.ok());
  EXPECT_EQ(phone.Problem(), "");
  EXPECT_EQ(phone.Count(EventKind::kUnwait), 8'743u);
  const ImportedTrace chrome = ImportReal("chrome.pftrace");
  ASSERT_TRUE(chrome.status.ok());
  EXPECT_GT(chrome.Count(EventKind::kMarker), 200'000u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
