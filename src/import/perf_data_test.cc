// SPDX-License-Identifier: Apache-2.0
// perf.data files made by the test: every layout gives the same trace, damage of
// any kind is survived.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/perf_data_builder.h"
#include "import/perf_data_queue.h"
#include "import/perf_data_space.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

using Layout = PerfDataBuilder::Layout;
using trace::Event;
using trace::EventKind;

constexpr uint64_t kText = 0xffff800080000000;
const ImportOptions kNoSymbols = {.symbols = false};

ImportedTrace Import(std::string bytes, const ImportOptions& options = kNoSymbols) {
  return ImportTrace(PerfDataImporter(), MemorySource("perf.data", std::move(bytes)), options);
}

// Thread 10 waits, 20 wakes it; a second CPU's buffer comes later in the file.
void Fill(PerfDataBuilder& b) {
  b.CommRecord({.time = 0, .pid = 10, .tid = 10}, "server");
  b.CommRecord({.time = 0, .pid = 20, .tid = 20}, "client");
  b.Mmap2({.pid = -1, .tid = 0}, 1, kText, 0x1000000, kText, "[kernel.kallsyms]_text");
  b.Mmap2({.pid = 10, .tid = 10}, 2, 0x400000, 0x1000, 0x2000, "/opt/server");
  const std::vector<uint64_t> wait = {kContextKernel, kText + 0x500, kText + 0x100,
                                      kContextUser,   0x400120,      0x400800};
  b.Switch({.time = 1000, .cpu = 0, .pid = 10, .tid = 10}, 10, 0, 1, wait);
  b.Switch({.time = 5000, .cpu = 0, .pid = 0, .tid = 0}, 0, 10, 0);
  b.Clock({.time = 5500, .cpu = 0, .pid = 10, .tid = 10}, {kContextUser, 0x400200, 0x400800});
  b.Enter({.time = 6000, .cpu = 0, .pid = 10, .tid = 10}, 63);
  b.Exit({.time = 6400, .cpu = 0, .pid = 10, .tid = 10}, 63, 7);
  b.Switch({.time = 1000, .cpu = 1, .pid = 0, .tid = 0}, 0, 20, 0);
  b.Waking({.time = 4000, .cpu = 1, .pid = 20, .tid = 20}, 10);
  b.Switch({.time = 7000, .cpu = 1, .pid = 20, .tid = 20}, 20, 0, 1);
  b.FinishedRound();
  b.Switch({.time = 8000, .cpu = 0, .pid = 10, .tid = 10}, 10, 0, 1, wait);
  b.FinishedRound();
}

std::vector<std::string> Lines(const ImportedTrace& imported) {
  std::vector<std::string> lines;
  for (const Event& e : imported.trace.events) {
    lines.push_back(std::string(trace::Name(e.kind)) + " " + imported.Thread(e.thread) + " " +
                    std::to_string(e.time_ns) + "+" + std::to_string(e.dur_ns) + " " +
                    imported.Thread(e.peer) + " " + imported.Stack(e.stack));
  }
  return lines;
}

std::string Small(bool big, Layout layout) {
  PerfDataBuilder builder(big);
  Fill(builder);
  return builder.Bytes(layout);
}

TEST(PerfDataTest, ASmallRecordingIsReadExactly) {
  const ImportedTrace imported = Import(Small(false, Layout::kFile));
  ASSERT_TRUE(imported.status.ok());
  const std::string wait = "server!+0x27ff;server!+0x2120;[kernel]!+0x100;[kernel]!+0x500";
  EXPECT_EQ(
      Lines(imported),
      (std::vector<std::string>{
          "running t20/t20 (20) 1000+6000 - ", "wait t10/t10 (10) 1000+3000 t20/t20 (20) " + wait,
          "ready t10/t10 (10) 4000+1000 - " + wait, "unwait t20/t20 (20) 4000+0 t10/t10 (10) ",
          "running t10/t10 (10) 5000+3000 - server!+0x27ff;server!+0x2200",
          "syscall t10/t10 (10) 6000+400 - ", "wait t20/t20 (20) 7000+1000 - ",
          "wait t10/t10 (10) 8000+0 - " + wait}));
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_TRUE(imported.diagnostics.empty());
  EXPECT_EQ(imported.trace.metadata.machine, "box");
  EXPECT_EQ(imported.trace.metadata.sample_period_ns, 1'000'000);
  EXPECT_EQ(imported.trace.metadata.cpus, 2u);
  EXPECT_EQ(imported.trace.events[5].arg1, 7);
}

TEST(PerfDataTest, ByteOrderAndPipeModeMakeNoDifference) {
  const std::vector<std::string> expected = Lines(Import(Small(false, Layout::kFile)));
  for (const bool big : {false, true}) {
    for (const Layout layout : {Layout::kFile, Layout::kPipe}) {
      const ImportedTrace imported = Import(Small(big, layout));
      ASSERT_TRUE(imported.status.ok());
      EXPECT_EQ(Lines(imported), expected);
      EXPECT_EQ(imported.trace.metadata.machine, "box");
    }
  }
}

TEST(PerfDataTest, CompressedRecordsAreUnpacked) {
  const std::vector<std::string> expected = Lines(Import(Small(false, Layout::kFile)));
  for (const uint32_t type : {kRecordCompressed, kRecordCompressed2}) {
    for (const size_t piece : {7, 100, 60000}) {
      PerfDataBuilder builder;
      Fill(builder);
      builder.Compress(type, piece);
      EXPECT_EQ(Lines(Import(builder.Bytes(Layout::kFile))), expected) << piece;
    }
  }
}

TEST(PerfDataTest, DamagedCompressionIsCounted) {
  PerfDataBuilder builder;
  Fill(builder);
  builder.Compress(kRecordCompressed, 60000);
  std::string bytes = builder.Bytes(Layout::kFile);
  bytes[bytes.find("\x28\xb5\x2f\xfd")] ^= 1;
  const ImportedTrace imported = Import(bytes);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Counted("compressed record that cannot be unpacked"), 1u);
}

// Without its features a file has no formats: samples of a clock remain.
TEST(PerfDataTest, AFileWhoseWriterDiedIsReadToItsEnd) {
  const ImportedTrace imported = Import(Small(false, Layout::kDied));
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Count(EventKind::kRunning), 1u);
  EXPECT_EQ(imported.Counted("recording whose writer died: no data size, no features"), 1u);
  EXPECT_EQ(imported.Counted("sample of a tracepoint whose format is not in the file"), 8u);
}

TEST(PerfDataTest, AnyTruncationIsSurvived) {
  for (const Layout layout : {Layout::kFile, Layout::kPipe, Layout::kDied}) {
    const std::string whole = Small(false, layout);
    for (size_t size = 0; size < whole.size(); ++size) {
      const ImportedTrace imported = Import(whole.substr(0, size));
      ASSERT_EQ(imported.Problem(), "") << size;
    }
  }
}

TEST(PerfDataTest, AnyDamageIsSurvived) {
  std::mt19937 random(7);
  PerfDataBuilder packed;
  Fill(packed);
  packed.Compress(kRecordCompressed, 50);
  const std::vector<std::string> inputs = {Small(false, Layout::kFile), Small(true, Layout::kPipe),
                                           packed.Bytes(Layout::kFile)};
  for (int round = 0; round < 6000; ++round) {
    std::string bytes = inputs[static_cast<size_t>(round) % inputs.size()];
    const size_t changes = 1 + random() % 4;
    for (size_t i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const ImportedTrace imported = Import(std::move(bytes));
    ASSERT_EQ(imported.Problem(), "") << round;
  }
}

TEST(PerfDataTest, WhatIsNoPerfDataIsAnError) {
  EXPECT_FALSE(Import("").status.ok());
  EXPECT_FALSE(Import("PERFILE2").status.ok());
  EXPECT_FALSE(Import(std::string("PERFILE2") + std::string(16, '\0')).status.ok());
  const Source source = MemorySource("x", "hello");
  EXPECT_EQ(PerfDataImporter().sniff(source, "hello"), Match::kNo);
  EXPECT_EQ(PerfDataImporter().sniff(source, "2ELIFREP...."), Match::kCertain);
}

// The waker's stack ends where the interrupt began; the waker is the device.
TEST(PerfDataTest, InterruptWakersAreCutAtTheirEntry) {
  const std::string kallsyms =
      "ffff800080000000 T _text\nffff800080001000 T el0t_64_irq\n"
      "ffff800080002000 t gic_handle_irq\nffff800080003000 t blk_mq_complete_request\n"
      "ffff800080004000 T try_to_wake_up\nffff800080005000 T el0t_64_sync\n"
      "ffff800080006000 T net_rx_action\nffff800080007000 T end\n";
  PerfDataBuilder b;
  b.Switch({.time = 1000, .cpu = 0, .pid = 10, .tid = 10}, 10, 20, 1);
  b.Waking({.time = 2000, .cpu = 0, .pid = 20, .tid = 20}, 10, 0x08,
           {kContextKernel, kText + 0x4010, kText + 0x3010, kText + 0x2010, kText + 0x1010,
            kContextUser, 0x400120});
  b.Switch({.time = 3000, .cpu = 0, .pid = 20, .tid = 20}, 20, 10, 0);
  b.Switch({.time = 4000, .cpu = 0, .pid = 10, .tid = 10}, 10, 20, 1);
  // Loopback: a softirq inside the sender's own system call.
  b.Waking({.time = 5000, .cpu = 0, .pid = 20, .tid = 20}, 10, 0x10,
           {kContextKernel, kText + 0x4010, kText + 0x6010, kText + 0x5010});
  const ImportedTrace imported =
      Import(b.Bytes(Layout::kFile), {.symbols = false, .kallsyms = kallsyms});
  std::vector<std::string> wakes;
  for (const std::string& line : Lines(imported)) {
    if (line.starts_with("unwait")) wakes.push_back(line);
  }
  ASSERT_EQ(wakes.size(), 2u);
  EXPECT_EQ(wakes[0],
            "unwait [disk] 2000+0 t10/t10 (10) [kernel]!el0t_64_irq;[kernel]!gic_handle_irq;"
            "[kernel]!blk_mq_complete_request;[kernel]!try_to_wake_up");
  EXPECT_EQ(wakes[1],
            "unwait t20/t20 (20) 5000+0 t10/t10 (10) [kernel]!el0t_64_sync;"
            "[kernel]!net_rx_action;[kernel]!try_to_wake_up");
}

// The recorded machine's file of that path may be of another version.
TEST(PerfDataTest, NamesFromFilesThatMayBeOthersAreCounted) {
  Dl_info libc = {};
  void* const function = dlsym(RTLD_DEFAULT, "write");
  ASSERT_NE(dladdr(function, &libc), 0);
  const auto start = reinterpret_cast<uintptr_t>(libc.dli_fbase);
  const uint64_t offset = reinterpret_cast<uintptr_t>(function) - start;
  PerfDataBuilder b;
  b.Mmap2({.pid = 10, .tid = 10}, 2, 0x400000, 0x10000000, 0, libc.dli_fname);
  b.Clock({.time = 5500, .cpu = 0, .pid = 10, .tid = 10},
          {kContextUser, 0x400000 + offset, 0x400000 + offset + 8});
  const auto doubted = [&](const ImportOptions& options) -> uint64_t {
    const ImportedTrace imported = Import(b.Bytes(Layout::kFile), options);
    const auto& frames = imported.trace.dictionary.frames();
    EXPECT_EQ(options.symbols, std::any_of(frames.begin(), frames.end(), [](const auto& frame) {
                return frame.function.valid();
              }));
    return imported.Counted("module named by a file of this machine, with no build-id to compare");
  };
  EXPECT_EQ(doubted({}), 1u);
  EXPECT_EQ(doubted({.sysroot = "/"}), 0u);
  EXPECT_EQ(doubted(kNoSymbols), 0u);
}

TEST(PerfDataTest, WithoutNamesTheFlagsDecide) {
  PerfDataBuilder b;
  b.Switch({.time = 1000, .cpu = 0, .pid = 10, .tid = 10}, 10, 20, 1);
  b.Waking({.time = 2000, .cpu = 0, .pid = 20, .tid = 20}, 10, 0x10,
           {kContextKernel, kText + 0x4010, kContextUser, 0x400120});
  const ImportedTrace imported = Import(b.Bytes(Layout::kFile));
  ASSERT_EQ(imported.Count(EventKind::kUnwait), 1u);
  for (const Event& e : imported.trace.events) {
    if (e.kind != EventKind::kUnwait) continue;
    EXPECT_EQ(imported.Thread(e.thread), "[interrupt]");
    EXPECT_FALSE(e.stack.valid());
  }
}

TEST(PerfDataTest, ABuildIdOfAMapIsOneAndNotItsDeviceAndInode) {
  const auto device = [](uint32_t major, uint32_t minor, uint64_t inode) {
    std::string bytes;
    for (const uint64_t word : {uint64_t{minor} << 32 | major, inode}) {
      for (int i = 0; i < 8; ++i) bytes += static_cast<char>(word >> 8 * i);
    }
    return bytes;
  };
  const std::string id = "abcdefghijklmnopqrst";
  const std::pair<std::string, std::string> kinds[] = {
      {std::string("\x14\0\0\0", 4) + id, "6162636465666768696a6b6c6d6e6f7071727374"},
      {std::string("\x08\0\0\0", 4) + id.substr(0, 8), "6162636465666768"},
      {device(254, 0, 4711), ""},
      {device(8, 3, 4711), ""},
      {device(259, 1, 0x1234567890), ""},
      {device(0, 45, 12), ""}};
  for (const auto& [identity, expected] : kinds) {
    PerfDataBuilder b;
    b.Mmap2({.pid = 10, .tid = 10}, 2 | 1 << 14, 0x400000, 0x1000, 0, "/opt/server", identity);
    b.Clock({.time = 1000, .pid = 10, .tid = 10}, {kContextUser, 0x400120});
    const ImportedTrace imported = Import(b.Bytes(Layout::kFile));
    const trace::Dictionary& dictionary = imported.trace.dictionary;
    ASSERT_EQ(dictionary.modules().size(), 1u);
    EXPECT_EQ(dictionary.Text(dictionary.modules()[0].build_id), expected);
  }
}

TEST(PerfDataTest, DeferredUserChainsJoinTheirSamples) {
  PerfDataBuilder b;
  b.Mmap2({.pid = 10, .tid = 10}, 2, 0x400000, 0x1000, 0, "/opt/server");
  b.Clock({.time = 1000, .pid = 10, .tid = 10},
          {kContextKernel, 0xffff000000000100, kContextUserDeferred, 77});
  b.DeferredChain({.time = 1100, .pid = 10, .tid = 10}, 77, {0x400120, 0x400800});
  const ImportedTrace imported = Import(b.Bytes(Layout::kFile));
  ASSERT_EQ(imported.trace.events.size(), 1u);
  EXPECT_EQ(imported.Stack(imported.trace.events[0].stack),
            "server!+0x7ff;server!+0x120;[kernel]!+0xffff000000000100");
}

TEST(PerfDataTest, ProbesAtEntryAndReturnMakeCalls) {
  for (const bool big : {false, true}) {
    PerfDataBuilder b(big);
    b.CommRecord({.time = 0, .pid = 10, .tid = 10}, "server");
    b.Mmap2({.pid = 10, .tid = 10}, 2, 0x400000, 0x1000, 0x2000, "/opt/server");
    const auto at = [](uint64_t time) {
      return PerfDataBuilder::Who{.time = time, .cpu = 0, .pid = 10, .tid = 10};
    };
    b.Probe(at(100), 0x400100);
    b.Probe(at(200), 0x400300);
    b.Enter(at(250), 63);
    b.Exit(at(260), 63, 0);
    b.Return(at(300), 0x400300);
    b.Return(at(400), 0x400100);
    b.Return(at(500), 0x400100);  // of a call that began before
    b.FinishedRound();
    const ImportedTrace imported = Import(b.Bytes(Layout::kFile));
    std::vector<std::string> calls;
    for (const Event& event : imported.trace.events) {
      if (event.kind != EventKind::kCall) continue;
      calls.push_back(std::to_string(event.time_ns) + "+" + std::to_string(event.dur_ns) + " " +
                      imported.Stack(event.stack));
    }
    EXPECT_EQ(calls, (std::vector<std::string>{"100+300 server!+0x2100",
                                               "200+100 server!+0x2100;server!+0x2300"}));
    EXPECT_EQ(imported.diagnostics.rows().at("function exit without its entry").count, 1u);
  }
}

TEST(PerfDataTest, AChainAtTheLimitIsMarkedTruncated) {
  PerfDataBuilder b;
  std::vector<uint64_t> chain = {kContextUser};
  for (uint64_t i = 0; i < 127; ++i) chain.push_back(0x400000 + i);
  b.Clock({.time = 1000, .pid = 10, .tid = 10}, chain);
  const ImportedTrace imported = Import(b.Bytes(Layout::kFile));
  EXPECT_TRUE(imported.Stack(imported.trace.events.at(0).stack).starts_with("[truncated];"));
}

TEST(PerfDataTest, LifeCyclesAndLossesAreTaken) {
  PerfDataBuilder b;
  b.Mmap2({.pid = 10, .tid = 10}, 2, 0x400000, 0x1000, 0, "/opt/server");
  b.ForkOrExit(kRecordFork, {.time = 900, .pid = 30, .tid = 30}, 10);
  b.Clock({.time = 1000, .pid = 30, .tid = 30}, {kContextUser, 0x400120});
  b.ForkOrExit(kRecordExit, {.time = 1200, .pid = 30, .tid = 30}, 10);
  const std::string lost = std::string(8, '\0') + std::string("\x05\0\0\0\0\0\0\0", 8);
  b.Record(kRecordLost, 0, lost);
  const ImportedTrace imported = Import(b.Bytes(Layout::kFile));
  EXPECT_EQ(imported.Counted("event lost by the recorder"), 5u);
  ASSERT_EQ(imported.trace.events.size(), 1u);
  EXPECT_EQ(imported.Stack(imported.trace.events[0].stack), "server!+0x120");
  const auto& threads = imported.trace.dictionary.threads();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].start_ns, 900);
  EXPECT_EQ(threads[0].end_ns, 1200);
}

TEST(PerfDataSpaceTest, ANewMapHidesWhatItCovers) {
  PerfSpaces spaces;
  spaces.Map(1, {.start = 100, .end = 200, .file_offset = 0, .module = 1});
  spaces.Fork(1, 2);
  EXPECT_EQ(spaces.version(1), spaces.version(2));
  spaces.Map(2, {.start = 120, .end = 140, .file_offset = 7, .module = 2});
  EXPECT_NE(spaces.version(1), spaces.version(2));
  EXPECT_EQ(spaces.Find(1, 130)->module, 1u);
  EXPECT_EQ(spaces.Find(2, 130)->module, 2u);
  EXPECT_EQ(spaces.Find(2, 119)->module, 1u);
  EXPECT_EQ(spaces.Find(2, 140)->file_offset, 40u);
  EXPECT_EQ(spaces.Find(2, 200), nullptr);
  EXPECT_EQ(spaces.Find(2, 99), nullptr);
  spaces.Forget(2);
  EXPECT_EQ(spaces.Find(2, 130), nullptr);
}

// Against a map of single addresses.
TEST(PerfDataSpaceTest, MapsAgreeWithANaiveTable) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    PerfSpaces spaces;
    std::map<uint64_t, std::pair<uint32_t, uint64_t>> naive;
    for (uint32_t module = 1; module < 12; ++module) {
      const uint64_t start = random() % 60;
      const uint64_t end = start + random() % 30;
      spaces.Map(1, {.start = start, .end = end, .file_offset = 1000, .module = module});
      for (uint64_t i = start; i < end; ++i) naive[i] = {module, 1000 + i - start};
    }
    for (uint64_t address = 0; address < 100; ++address) {
      const PerfMap* map = spaces.Find(1, address);
      ASSERT_EQ(map != nullptr, naive.contains(address));
      if (map == nullptr) continue;
      ASSERT_EQ(map->module, naive[address].first);
      ASSERT_EQ(address - map->start + map->file_offset, naive[address].second);
    }
  }
}

TEST(PerfDataQueueTest, RoundsLetOutWhatCannotBeOvertaken) {
  std::vector<uint64_t> times;
  PerfDataQueue queue([&](uint64_t time, const PerfRecordView&) -> Status {
    times.push_back(time);
    return {};
  });
  const auto add = [&](uint64_t time) { ASSERT_TRUE(queue.Add(time, {.body = "x"}).ok()); };
  add(30);
  add(10);
  ASSERT_TRUE(queue.EndRound().ok());
  EXPECT_TRUE(times.empty());
  add(20);
  add(40);
  ASSERT_TRUE(queue.EndRound().ok());
  EXPECT_EQ(times, (std::vector<uint64_t>{10, 20, 30}));
  ASSERT_TRUE(queue.Finish().ok());
  EXPECT_EQ(times, (std::vector<uint64_t>{10, 20, 30, 40}));
}

TEST(PerfDataQueueTest, MemoryIsBoundedWithoutRounds) {
  uint64_t last = 0;
  uint64_t count = 0;
  uint64_t late = 0;
  PerfDataQueue queue([&](uint64_t time, const PerfRecordView& record) -> Status {
    late += time < last ? 1 : 0;
    last = time;
    count += record.body.size() == 60'000 ? 1 : 0;
    return {};
  });
  const std::string body(60'000, 'x');
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(queue.Add((i ^ 7) + 1, {.body = body}).ok());
  }
  ASSERT_TRUE(queue.Finish().ok());
  EXPECT_EQ(count, 5000u);
  EXPECT_EQ(late, 0u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
