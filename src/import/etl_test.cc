// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "import/etl_builder.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

constexpr uint64_t kStart = EtlBuilder::kStart;
constexpr std::array<uint8_t, 16> kImageIdGuid = {0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f,
                                                  0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde};
constexpr std::array<uint8_t, 16> kThreadGuid = {0xd1, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11,
                                                 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c};
constexpr std::array<uint8_t, 16> kRuntimeGuid = {0x23, 0x0d, 0x3c, 0xe1, 0xbc, 0xcc, 0x12, 0x4e,
                                                  0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4};

ImportedTrace Import(const std::string& bytes) {
  return ImportTrace(EtlImporter(), MemorySource("t.etl", bytes));
}

std::vector<Event> EventsOf(const ImportedTrace& imported, EventKind kind) {
  std::vector<Event> events;
  for (const Event& event : imported.trace.events) {
    if (event.kind == kind) events.push_back(event);
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  return events;
}

// Two threads of app.exe; images of the kernel and the program.
struct Layout {
  explicit Layout(size_t pointer_bytes)
      : kernel(pointer_bytes == 8 ? 0xfffff800'00000000 : 0x80000000),
        storport(kernel + 0x100000),
        app(0x400000) {}

  void Describe(EtlBuilder& b) const {
    b.Process({kStart}, kEtlProcessRundownStart, 4, "System");
    b.Process({kStart}, kEtlProcessRundownStart, 100, "app.exe");
    b.Thread({kStart}, kEtlThreadRundownStart, 4, 8);
    b.Thread({kStart}, kEtlThreadRundownStart, 100, 11);
    b.Thread({kStart}, kEtlThreadRundownStart, 100, 12, "worker");
    b.Image({kStart}, kEtlImageRundownStart, 0, kernel, 0x10000,
            "\\SystemRoot\\system32\\NTOSKRNL.EXE");
    b.Image({kStart}, kEtlImageRundownStart, 0, storport, 0x10000,
            "\\SystemRoot\\System32\\drivers\\storport.sys");
    b.Image({kStart}, kEtlImageRundownStart, 100, app, 0x10000, "\\Device\\Disk1\\App.exe");
  }

  uint64_t kernel;
  uint64_t storport;
  uint64_t app;
};

// 11 runs, waits 1000 ticks for 12, is ready for 500, runs, is sampled, waits
// for the disk, runs, is preempted.
std::string SwitchingFile(const EtlBuilder::Options& options) {
  EtlBuilder b(options);
  const Layout at(options.pointer_bytes);
  at.Describe(b);
  b.Switch({2000, 0}, 0, 11);
  b.Switch({2500, 1}, 0, 12);
  b.Switch({3000, 0}, 11, 0);
  b.Ready({4000, 1}, 11);
  b.Stack({4010, 1}, 4000, 12, {at.kernel + 0x30, at.kernel + 0x20});
  b.Stack({4020, 1}, 4000, 12, {at.app + 0x300, at.app + 0x100});
  b.Switch({4500, 0}, 0, 11);
  b.Stack({4510, 0}, 4500, 11, {at.kernel + 0x50, at.kernel + 0x20});
  b.Sample({5000, 0}, 11, at.app + 0x210);
  b.Stack({5005, 0}, 5000, 11, {at.app + 0x210, at.app + 0x100});
  b.Stack({5010, 0}, 4500, 11, {at.app + 0x200, at.app + 0x100});
  b.Switch({6000, 0}, 11, 0);
  b.Ready({7000, 1}, 11, 1);
  b.Stack({7010, 1}, 7000, 12, {at.kernel + 0x30, at.storport + 0x40, at.kernel + 0x20});
  b.Switch({7100, 0}, 0, 11);
  b.Switch({8000, 0}, 11, 12, 1);
  return b.Bytes();
}

class EtlFiles : public testing::TestWithParam<EtlBuilder::Options> {};

TEST_P(EtlFiles, WaitsAndTheirWakersAreExact) {
  const ImportedTrace imported = Import(SwitchingFile(GetParam()));
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_TRUE(imported.trace.metadata.has_switches);
  EXPECT_TRUE(imported.trace.metadata.has_wakers);
  const std::vector<Event> waits = EventsOf(imported, EventKind::kWait);
  ASSERT_GE(waits.size(), 2u);
  EXPECT_EQ(imported.Thread(waits[0].thread), "app.exe/app.exe (11)");
  EXPECT_EQ(waits[0].time_ns, (3000 - 1000) * 100);
  EXPECT_EQ(waits[0].dur_ns, 1000 * 100);
  EXPECT_EQ(imported.Thread(waits[0].peer), "app.exe/worker (12)");
  // The stack at the next switch-in, its user part recorded later.
  EXPECT_EQ(imported.Stack(waits[0].stack),
            "app.exe!+0x100;app.exe!+0x200;ntoskrnl.exe!+0x20;ntoskrnl.exe!+0x50");
  EXPECT_EQ(waits[1].time_ns, (6000 - 1000) * 100);
  EXPECT_EQ(waits[1].dur_ns, 1000 * 100);
  EXPECT_EQ(imported.Thread(waits[1].peer), "[disk]");
}

TEST_P(EtlFiles, ReadyTimesRunningAndWakersStacksAreExact) {
  const ImportedTrace imported = Import(SwitchingFile(GetParam()));
  const std::vector<Event> readies = EventsOf(imported, EventKind::kReady);
  ASSERT_EQ(readies.size(), 2u);
  EXPECT_EQ(readies[0].time_ns, (4000 - 1000) * 100);
  EXPECT_EQ(readies[0].dur_ns, 500 * 100);
  EXPECT_EQ(readies[1].time_ns, (7000 - 1000) * 100);
  const std::vector<Event> unwaits = EventsOf(imported, EventKind::kUnwait);
  ASSERT_EQ(unwaits.size(), 2u);
  EXPECT_EQ(imported.Stack(unwaits[0].stack),
            "app.exe!+0x100;app.exe!+0x300;ntoskrnl.exe!+0x20;ntoskrnl.exe!+0x30");
  EXPECT_EQ(imported.Stack(unwaits[1].stack),
            "ntoskrnl.exe!+0x20;storport.sys!+0x40;ntoskrnl.exe!+0x30");
  const trace::Dictionary& dictionary = imported.trace.dictionary;
  const auto frames = dictionary.StackFrames(unwaits[0].stack);
  EXPECT_EQ(dictionary.frames()[frames[0].value].flags & trace::kKernelMode, 0);
  EXPECT_NE(dictionary.frames()[frames[2].value].flags & trace::kKernelMode, 0);
  int sampled = 0;
  for (const Event& event : EventsOf(imported, EventKind::kRunning)) {
    if (!event.stack.valid()) continue;
    ++sampled;
    EXPECT_EQ(imported.Stack(event.stack), "app.exe!+0x100;app.exe!+0x210");
  }
  EXPECT_EQ(sampled, 1);
}

TEST_P(EtlFiles, EveryCutIsReadAsFarAsItGoes) {
  const std::string bytes = SwitchingFile(GetParam());
  size_t most_events = 0;
  // Filler has no ends worth trying one by one.
  for (size_t size = 0; size <= bytes.size(); size += size % 4096 < 2400 ? 1 : 64) {
    const ImportedTrace imported = Import(bytes.substr(0, size));
    if (!imported.status.ok()) {
      EXPECT_LT(size, 500u);
      EXPECT_FALSE(imported.status.error().hint.empty());
      continue;
    }
    EXPECT_EQ(imported.Problem(), "") << size;
    most_events = std::max(most_events, imported.trace.events.size());
  }
  EXPECT_GE(most_events, Import(bytes).trace.events.size());
}

INSTANTIATE_TEST_SUITE_P(Widths, EtlFiles,
                         testing::Values(EtlBuilder::Options{.pointer_bytes = 8},
                                         EtlBuilder::Options{.pointer_bytes = 4},
                                         EtlBuilder::Options{.pointer_bytes = 8, .packed = true},
                                         EtlBuilder::Options{.pointer_bytes = 4, .packed = true}));

TEST(Etl, ClocksDifferInTheirRateOnly) {
  for (const uint32_t clock : {1u, 2u, 3u}) {
    const ImportedTrace imported = Import(SwitchingFile({.clock = clock}));
    const std::vector<Event> waits = EventsOf(imported, EventKind::kWait);
    ASSERT_GE(waits.size(), 2u);
    EXPECT_EQ(waits[0].time_ns, 200'000);
    EXPECT_EQ(waits[0].dur_ns, 100'000);
  }
  EXPECT_EQ(Import(SwitchingFile({.clock = 2})).trace.metadata.clock, "system time");
}

TEST(Etl, WallTimeAndSystemAreKept) {
  const ImportedTrace imported = Import(SwitchingFile({}));
  const trace::Metadata& metadata = imported.trace.metadata;
  EXPECT_EQ(metadata.wall_start_ns,
            (132'000'000'000'000'000 - 116'444'736'000'000'000) * 100 + metadata.begin_ns);
  EXPECT_EQ(metadata.os, "Windows 10.0.19041");
  EXPECT_EQ(metadata.properties.at("logger"), "Test Logger");
  EXPECT_EQ(metadata.cpus, 2u);
}

TEST(Etl, WakingsOnAnIdleCpuAreHardware) {
  EtlBuilder b;
  const Layout at(8);
  at.Describe(b);
  b.Switch({2000, 0}, 0, 11);
  b.Switch({2100, 1}, 12, 0);
  b.Switch({3000, 0}, 11, 0);
  b.Ready({4000, 1}, 11);
  b.Switch({4500, 0}, 0, 11);
  const ImportedTrace imported = Import(b.Bytes());
  const std::vector<Event> waits = EventsOf(imported, EventKind::kWait);
  ASSERT_GE(waits.size(), 2u);
  EXPECT_EQ(imported.Thread(waits[1].peer), "[interrupt]");
}

TEST(Etl, WhoSleptIsWokenByTheTimer) {
  EtlBuilder b;
  b.Switch({2000, 0}, 0, 11);
  b.Switch({3000, 0}, 11, 0, 5, 4);
  b.Ready({4000, 0}, 11, 1);
  b.Switch({4010, 0}, 0, 11);
  b.Switch({5000, 0}, 11, 0, 5, 6);
  b.Ready({6000, 0}, 11, 1);
  b.Switch({6010, 0}, 0, 11);
  const ImportedTrace imported = Import(b.Bytes());
  const std::vector<Event> waits = EventsOf(imported, EventKind::kWait);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(imported.Thread(waits[0].peer), "[timer]");
  EXPECT_EQ(imported.Thread(waits[1].peer), "[interrupt]");
}

TEST(Etl, APreemptedThreadDidNotWait) {
  EtlBuilder b;
  b.Switch({2000, 0}, 0, 11);
  b.Switch({3000, 0}, 11, 12, 1);
  b.Switch({4000, 0}, 12, 11, 5);
  b.Switch({5000, 0}, 11, 0, 4);
  const ImportedTrace imported = Import(b.Bytes());
  EXPECT_EQ(imported.Problem(), "");
  const std::vector<Event> readies = EventsOf(imported, EventKind::kReady);
  ASSERT_EQ(readies.size(), 1u);
  EXPECT_NE(readies[0].flags & trace::kPreempted, 0);
  EXPECT_EQ(readies[0].dur_ns, 100'000);
  for (const Event& wait : EventsOf(imported, EventKind::kWait)) {
    EXPECT_EQ(imported.trace.dictionary.threads()[wait.thread.value].tid, 12);
  }
}

TEST(Etl, StacksByKeyAreThoseExplainedNext) {
  EtlBuilder b;
  const Layout at(8);
  at.Describe(b);
  b.Sample({2000, 0}, 11, at.kernel + 0x10);
  b.StackRef({2010, 0}, false, 2000, 11, 0x77);
  b.StackRef({2020, 0}, true, 2000, 11, 0x78);
  b.StackKey({2500, 1}, 0x77, {at.kernel + 0x10, at.kernel + 0x20});
  b.Sample({3000, 0}, 11, at.kernel + 0x90);
  b.StackRef({3010, 0}, false, 3000, 11, 0x77);
  b.StackRef({3020, 0}, true, 3000, 11, 0x79);
  b.StackKey({9000, 1}, 0x77, {at.kernel + 0x90});
  b.StackKey({9000, 1}, 0x78, {at.app + 0x1, at.app + 0x2});
  const ImportedTrace imported = Import(b.Bytes());
  const std::vector<Event> samples = EventsOf(imported, EventKind::kRunning);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(imported.Stack(samples[0].stack),
            "app.exe!+0x2;app.exe!+0x1;ntoskrnl.exe!+0x20;ntoskrnl.exe!+0x10");
  // Its callers in user code are not known.
  EXPECT_EQ(imported.Stack(samples[1].stack), "[truncated];ntoskrnl.exe!+0x90");
  EXPECT_EQ(imported.Counted("stack by a key that is not explained"), 1u);
}

TEST(Etl, WithoutSwitchesSamplesCountForTheirInterval) {
  EtlBuilder b;
  const Layout at(8);
  at.Describe(b);
  b.System({kStart}, kEtlIntervalStart, 3, b.Fields().U32(0).U32(1221).U32(10000).bytes());
  b.Sample({2000, 0}, 11, at.app + 0x10);
  b.Sample({2000, 1}, 0, at.kernel + 0x10);  // the idle thread does not run
  const ImportedTrace imported = Import(b.Bytes());
  EXPECT_EQ(imported.trace.metadata.sample_period_ns, 122'100);
  const std::vector<Event> samples = EventsOf(imported, EventKind::kRunning);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].dur_ns, 122'100);
  EXPECT_EQ(imported.Stack(samples[0].stack), "app.exe!+0x10");
}

TEST(Etl, OfCounterSamplesOnlyCyclesAreTime) {
  EtlBuilder b;
  b.System({kStart}, kEtlIntervalStart, 3, b.Fields().U32(19).U32(50'000).U32(0).bytes());
  b.Kernel({2000, 0}, kEtlCounterSample, 2, b.Fields().Pointer(16).U32(11).U16(19).U16(0).bytes());
  b.Kernel({2001, 0}, kEtlCounterSample, 2, b.Fields().Pointer(16).U32(11).U16(6).U16(0).bytes());
  const ImportedTrace imported = Import(b.Bytes());
  ASSERT_EQ(imported.Count(EventKind::kRunning), 1u);
  EXPECT_EQ(imported.trace.metadata.sample_period_ns, 5'000'000);  // at 10 MHz
  EXPECT_EQ(imported.Counted("sample of a counter that is no clock, left out"), 1u);
}

TEST(Etl, AllVersionsOfDescriptionsAreUnderstood) {
  for (uint16_t version = 0; version <= 4; ++version) {
    EtlBuilder b;
    b.Process({kStart}, kEtlProcessRundownEnd, 100, "app.exe", version);
    b.Thread({kStart}, kEtlThreadRundownEnd, 100, 11, "", version);
    if (version == 0) {
      b.System({kStart}, kEtlImageRundownEnd, 0,
               b.Fields().Pointer(0x400000).U32(0x1000).Wide("C:\\App.exe").bytes(), 11, 100);
    } else {
      b.Image({kStart}, kEtlImageRundownEnd, 100, 0x400000, 0x1000, "C:\\App.exe", version);
    }
    b.Sample({2000, 0}, 11, 0x400010);
    const ImportedTrace imported = Import(b.Bytes());
    const std::vector<Event> samples = EventsOf(imported, EventKind::kRunning);
    ASSERT_EQ(samples.size(), 1u) << version;
    EXPECT_EQ(imported.Thread(samples[0].thread), "app.exe/app.exe (11)") << version;
    EXPECT_EQ(imported.Stack(samples[0].stack), "app.exe!+0x10") << version;
    const auto& process = imported.trace.dictionary.processes().front();
    EXPECT_EQ(imported.trace.dictionary.Text(process.command_line),
              version >= 2 ? "app.exe -x" : "");
  }
}

TEST(Etl, AnIdUsedAgainIsAnotherProcess) {
  EtlBuilder b;
  b.Process({kStart}, kEtlProcessRundownStart, 100, "old.exe");
  b.Thread({kStart}, kEtlThreadRundownStart, 100, 11);
  b.Image({kStart}, kEtlImageRundownStart, 100, 0x400000, 0x1000, "old.exe");
  b.Sample({2000, 0}, 11, 0x400010);
  b.Thread({2100, 0}, kEtlThreadEnd, 100, 11);
  b.Process({2200, 0}, kEtlProcessEnd, 100, "old.exe");
  b.Process({3000, 0}, kEtlProcessStart, 100, "new.exe");
  b.Thread({3001, 0}, kEtlThreadStart, 100, 11);
  b.Image({3002, 0}, kEtlImageLoad, 100, 0x400000, 0x1000, "new.exe");
  b.Sample({4000, 0}, 11, 0x400010);
  const ImportedTrace imported = Import(b.Bytes());
  const std::vector<Event> samples = EventsOf(imported, EventKind::kRunning);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(imported.Thread(samples[0].thread), "old.exe/old.exe (11)");
  EXPECT_EQ(imported.Stack(samples[0].stack), "old.exe!+0x10");
  EXPECT_EQ(imported.Thread(samples[1].thread), "new.exe/new.exe (11)");
  EXPECT_EQ(imported.Stack(samples[1].stack), "new.exe!+0x10");
  const auto& processes = imported.trace.dictionary.processes();
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0].pid, 100);
  EXPECT_EQ(processes[0].end_ns, 120'000);
  EXPECT_EQ(processes[1].pid, 100);
  EXPECT_EQ(processes[1].start_ns, 200'000);
  const std::vector<Event> marks = EventsOf(imported, EventKind::kMarker);
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_EQ(marks[0].flags, trace::kBegin);
  EXPECT_EQ(marks[0].time_ns, imported.trace.metadata.begin_ns);
  EXPECT_EQ(marks[1].flags, trace::kEnd);
  EXPECT_EQ(marks[1].time_ns, 120'000);
  EXPECT_EQ(imported.Thread(marks[2].thread), "new.exe/new.exe (11)");
  EXPECT_EQ(marks[2].time_ns, 200'000);
  EXPECT_TRUE(imported.trace.instances.empty());
}

TEST(Etl, DiskRequestsAreJoinedByTheirPacket) {
  EtlBuilder b;
  const Layout at(8);
  at.Describe(b);
  b.DiskInit({2000, 0}, kEtlDiskReadInit, 0x55, 11);
  b.Stack({2010, 0}, 2000, 11, {at.kernel + 0x10});
  b.Stack({2020, 0}, 2000, 11, {at.app + 0x10});
  b.DiskEnd({2600, 1}, kEtlDiskRead, 0x55, 4096, 600, 11);
  b.DiskEnd({3000, 1}, kEtlDiskWrite, 0x56, 8192, 250, 12);  // its beginning was not recorded
  b.DiskInit({4000, 0}, kEtlDiskFlushInit, 0x57, 11);        // its end was not
  const ImportedTrace imported = Import(b.Bytes());
  const std::vector<Event> requests = EventsOf(imported, EventKind::kHardware);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(imported.Thread(requests[0].thread), "[disk 0]");
  EXPECT_EQ(imported.Thread(requests[0].peer), "app.exe/app.exe (11)");
  EXPECT_EQ(requests[0].time_ns, 100'000);
  EXPECT_EQ(requests[0].dur_ns, 60'000);
  EXPECT_EQ(requests[0].arg0, 4096);
  EXPECT_EQ(imported.Stack(requests[0].stack), "app.exe!+0x10;ntoskrnl.exe!+0x10");
  EXPECT_EQ(requests[1].time_ns, (2750 - 1000) * 100);
  EXPECT_EQ(requests[1].dur_ns, 25'000);
  EXPECT_EQ(requests[1].arg1, 1);
  EXPECT_NE(requests[2].flags & trace::kUnfinished, 0);
  EXPECT_EQ(requests[2].arg1, 2);
}

TEST(Etl, DebugIdsAreBuildIds) {
  EtlBuilder b;
  const Layout at(8);
  at.Describe(b);
  EtlBuilder::Data id = b.Fields();
  id.Pointer(at.app).U32(100).U32(0x51e29341).U16(0x44ba).U16(0x1562);
  for (const uint8_t byte : {0x8b, 0xa5, 0xa3, 0x1b, 0xe2, 0xda, 0xe7, 0xdc}) id.U8(byte);
  b.Classic({9000, 0}, kImageIdGuid, kEtlDebugIdRsds, 2, id.U32(0x1f).Narrow("app.pdb").bytes());
  b.Sample({2000, 0}, 11, at.app + 0x10);
  const ImportedTrace imported = Import(b.Bytes());
  const trace::Dictionary& dictionary = imported.trace.dictionary;
  const auto frames = dictionary.StackFrames(EventsOf(imported, EventKind::kRunning)[0].stack);
  const trace::Module& module =
      dictionary.modules()[dictionary.frames()[frames.back().value].module.value];
  EXPECT_EQ(dictionary.Text(module.build_id), "51e2934144ba15628ba5a31be2dae7dc1f");
  EXPECT_EQ(dictionary.Text(module.path), "\\Device\\Disk1\\App.exe");
}

TEST(Etl, CompiledMethodsHaveNames) {
  EtlBuilder b;
  const Layout at(8);
  at.Describe(b);
  b.Provider({8000, 0}, kRuntimeGuid, kEtlModuleLoad, 100,
             b.Fields().U64(7).U64(0).U64(0).Wide("C:\\lib\\Shop.dll").Wide("").bytes());
  b.Provider({8001, 0}, kRuntimeGuid, kEtlMethodLoad, 100,
             b.Fields()
                 .U64(1)
                 .U64(7)
                 .U64(0x900000)
                 .U32(0x100)
                 .U64(0)
                 .Wide("Shop.Cart")
                 .Wide("Add")
                 .Wide("void ()")
                 .bytes());
  b.Sample({2000, 0}, 11, 0x900010);
  b.Stack({2010, 0}, 2000, 11, {0x900010, 0x900100, 0x900101});
  const ImportedTrace imported = Import(b.Bytes());
  // The second returns to just behind a call at the method's end, the third is
  // beyond it.
  EXPECT_EQ(imported.Stack(EventsOf(imported, EventKind::kRunning)[0].stack),
            "[unknown]!+0x900101;shop.dll!Shop.Cart.Add;shop.dll!Shop.Cart.Add");
}

TEST(Etl, KernelEventsUnderTheGuidOfTheirClassAreTheSame) {
  EtlBuilder b;
  const auto data = [&](uint32_t old_tid, uint32_t new_tid) {
    return b.Fields().U32(new_tid).U32(old_tid).Zeros(6).U8(5).Zeros(9).bytes();
  };
  b.Classic({2000, 0}, kThreadGuid, 36, 2, data(0, 11));
  b.Classic({3000, 0}, kThreadGuid, 36, 2, data(11, 0));
  const ImportedTrace imported = Import(b.Bytes());
  ASSERT_EQ(imported.Count(EventKind::kRunning), 1u);
  EXPECT_EQ(EventsOf(imported, EventKind::kRunning)[0].dur_ns, 100'000);
}

TEST(Etl, CountersBeforeTheDataAreSkipped) {
  EtlBuilder b;
  const std::string counters(16, '\x11');
  b.Kernel({2000, 0}, kEtlSwitch, 0x0202,
           counters + b.Fields().U32(11).U32(0).Zeros(6).U8(5).Zeros(9).bytes());
  b.Switch({3000, 0}, 11, 0);
  const ImportedTrace imported = Import(b.Bytes());
  ASSERT_EQ(imported.Count(EventKind::kRunning), 1u);
  EXPECT_EQ(EventsOf(imported, EventKind::kRunning)[0].dur_ns, 100'000);
}

TEST(Etl, WhatIsNotUsedOrBadIsCounted) {
  EtlBuilder b;
  b.Kernel({2000, 0}, 0x0911, 2, "registry");
  b.Provider({2000, 0}, {1, 2, 3}, 5, 100, "payload");
  ByteWriter message;
  message.U16(16);
  message.U16(0x9000);
  message.U64(0);
  b.Record(0, message.Take() + "text");
  b.Kernel({2000, 0}, kEtlStack, 2, "short");
  b.Kernel({2000, 0}, kEtlSwitch, 2, "short");
  b.Record(1, std::string("\xff\xff\x11\xc0\x08\0\x24\x05", 8));  // shorter than its header
  const ImportedTrace imported = Import(b.Bytes());
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Counted("kernel event of another kind, left out"), 1u);
  EXPECT_EQ(imported.Counted("event of another provider, left out"), 1u);
  EXPECT_EQ(imported.Counted("trace message, left out"), 1u);
  EXPECT_EQ(imported.Counted("kernel event too short for its fields"), 2u);
  EXPECT_EQ(imported.Counted("record that cannot be, rest of its buffer skipped"), 1u);
}

TEST(Etl, ABadBufferDoesNotHideTheNext) {
  EtlBuilder b;
  b.Switch({2000, 0}, 0, 11);
  b.Switch({2000, 1}, 0, 12);
  b.Switch({3000, 1}, 12, 0);
  std::string bytes = b.Bytes();
  bytes.replace(4096, 8, std::string(8, '\x7f'));  // the header of CPU 1's buffer
  bytes += std::string(4096, '\0');                // room that was never used
  const ImportedTrace imported = Import(bytes);
  EXPECT_EQ(imported.Count(EventKind::kRunning), 0u);
  EXPECT_EQ(imported.trace.metadata.begin_ns, 100'000);
  EXPECT_EQ(imported.Counted("buffer with a bad header"), 1u);
  EXPECT_EQ(imported.Counted("buffer that was never written"), 1u);
}

TEST(Etl, OtherBytesAreNotTaken) {
  const Importer importer = EtlImporter();
  const Source source = MemorySource("x", std::string(1000, '\0'));
  EXPECT_EQ(importer.sniff(source, std::string(1000, '\0')), Match::kNo);
  EXPECT_EQ(importer.sniff(source, ""), Match::kNo);
  EXPECT_EQ(importer.sniff(source, SwitchingFile({})), Match::kCertain);
  EXPECT_EQ(importer.sniff(source, SwitchingFile({.pointer_bytes = 4})), Match::kCertain);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
