// SPDX-License-Identifier: Apache-2.0
// Names that are inside a recording, or given beside it.
#include "import/perf_file_symbols.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

#include "base/file.h"
#include "base/test_folder.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/perf_data_builder.h"
#include "import/perf_data_session.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

namespace fs = std::filesystem;
using trace::EventKind;

const fs::path kData = fs::path(CULPRIT_SOURCE_DIR) / "../shared/data/perf-data";

std::string Int(uint64_t value, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string FileEntry() {
  std::string body = std::string("/lib/a.so") + '\0' + Int(2, 4) + Int(0x2000, 8) + Int(2, 4);
  body += Int(0x2100, 8) + Int(0x40, 4) + "_ZN1a1fEv" + '\0';
  body += Int(0x2140, 8) + Int(0x10, 4) + "g" + '\0';
  body += Int(0x1000, 8);
  return Int(body.size(), 4) + body;
}

std::string Field(uint32_t number, const std::string& bytes) {
  return Int(number << 3 | 2, 1) + Int(bytes.size(), 1) + bytes;
}

std::string Varint(uint32_t number, uint64_t value) {
  std::string out = Int(number << 3, 1);
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

std::string File2Entry() {
  std::string message = Field(1, "/lib/a.so") + Varint(2, 2) + Varint(3, 0x2000);
  message += Field(4, Varint(1, 0x2100) + Varint(2, 0x40) + Field(3, "_ZN1a1fEv"));
  message += Field(4, Varint(1, 0x2140) + Varint(2, 0x10) + Field(3, "g"));
  message += Field(6, Varint(1, 0x1000));
  return Int(message.size(), 4) + message;
}

TEST(PerfFileSymbolsTest, BothEncodingsNameAPlaceInAFile) {
  for (const bool second : {false, true}) {
    PerfFileSymbols symbols;
    Diagnostics diagnostics;
    if (second) {
      symbols.AddFile2(File2Entry(), 0, diagnostics);
    } else {
      symbols.AddFile(FileEntry(), 0, diagnostics);
    }
    symbols.Build();
    EXPECT_TRUE(diagnostics.empty());
    const PerfFileSymbols::Found found = symbols.Lookup("/lib/a.so", 0x700000001110, 0x1110);
    EXPECT_EQ(found.name, "a::f()");
    EXPECT_EQ(found.file_start, 0x1100u);
    EXPECT_EQ(symbols.Lookup("/lib/a.so", 0, 0x1145).name, "g");
    EXPECT_EQ(symbols.Lookup("/lib/a.so", 0, 0x1150).name, "");
    EXPECT_EQ(symbols.Lookup("/lib/b.so", 0, 0x1145).name, "");
  }
}

TEST(PerfFileSymbolsTest, MadeCodeAndTheKernelGoByAddress) {
  std::string message = Field(1, "perf.data_jit_app_cache:0-784") + Varint(2, 2);
  message += Field(4, Varint(1, 0x9ce0ce90) + Varint(2, 100) + Field(3, "java.lang.Long.of"));
  std::string bytes = Int(message.size(), 4) + message;
  message = Field(1, "[kernel.kallsyms]") + Varint(2, 0);
  message += Field(4, Varint(1, 0xffff800000001000) + Varint(2, 100) + Field(3, "schedule"));
  bytes += Int(message.size(), 4) + message;
  PerfFileSymbols symbols;
  Diagnostics diagnostics;
  symbols.AddFile2(bytes, 0, diagnostics);
  symbols.Build();
  const auto found = symbols.Lookup("perf.data_jit_app_cache:0-784", 0x9ce0ce99, 9);
  EXPECT_EQ(found.name, "java.lang.Long.of");
  EXPECT_TRUE(found.made_code);
  EXPECT_EQ(symbols.LookupKernel(0xffff800000001063).name, "schedule");
  EXPECT_EQ(symbols.LookupKernel(0xffff800000001064).name, "");
}

TEST(PerfFileSymbolsTest, EveryCutIsSurvivedAndDamageHasItsPlace) {
  const std::string file = FileEntry() + FileEntry();
  const std::string file2 = File2Entry() + File2Entry();
  for (size_t size = 0; size < file.size(); ++size) {
    PerfFileSymbols symbols;
    Diagnostics diagnostics;
    symbols.AddFile(file.substr(0, size), 100, diagnostics);
    symbols.Build();
    if (size > FileEntry().size() + 4) {
      ASSERT_EQ(diagnostics.rows().size(), 1u) << size;
      EXPECT_EQ(diagnostics.rows().begin()->second.first_offset, 100 + FileEntry().size());
      EXPECT_EQ(symbols.Lookup("/lib/a.so", 0, 0x1145).name, "g") << size;
    }
  }
  for (size_t size = 0; size < file2.size(); ++size) {
    PerfFileSymbols symbols;
    Diagnostics diagnostics;
    symbols.AddFile2(file2.substr(0, size), 100, diagnostics);
    symbols.Build();
    if (size > File2Entry().size() + 4) {
      EXPECT_EQ(diagnostics.total(), 1u) << size;
    }
  }
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = round % 2 == 0 ? file : file2;
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    PerfFileSymbols symbols;
    Diagnostics diagnostics;
    symbols.AddFile(bytes, 0, diagnostics);
    symbols.AddFile2(bytes, 0, diagnostics);
    symbols.Build();
    (void)symbols.Lookup("/lib/a.so", 0, 0x1145);
  }
}

// Share of frames outside the kernel that have a name.
double NamedShare(const ImportedTrace& imported) {
  size_t frames = 0;
  size_t named = 0;
  for (const trace::Frame& frame : imported.trace.dictionary.frames()) {
    if (!frame.module.valid() || (frame.flags & trace::kKernelMode) != 0) continue;
    ++frames;
    named += frame.function.valid() ? 1 : 0;
  }
  return frames == 0 ? 0 : static_cast<double>(named) / static_cast<double>(frames);
}

TEST(PerfFileSymbolsTest, ARecordingOfAPhoneHasItsOwnNames) {
  const std::string path = (kData / "simpleperf-offcpu-v2.data").string();
  if (!fs::exists(path)) GTEST_SKIP() << "no folder of real traces";
  auto bytes = ReadWholeFile(path);
  ASSERT_TRUE(bytes.ok());
  const ImportedTrace imported =
      ImportTrace(PerfDataImporter(), MemorySource(path, bytes.value()), {.symbols = false});
  ASSERT_TRUE(imported.status.ok());
  std::string all;
  for (size_t i = 0; i < imported.trace.dictionary.stacks().size(); ++i) {
    all += imported.Stack(trace::StackId(i)) + "\n";
  }
  EXPECT_GT(NamedShare(imported), 0.95);
  for (const char* frame : {"[jit]!android.os.MessageQueue.next", "libc.so!", "app_process64!main",
                            "framework.jar!android.app.ActivityThread.main"}) {
    EXPECT_NE(all.find(frame), std::string::npos) << frame;
  }
}

TEST(PerfFileSymbolsTest, AnOlderRecordingNamesItsKernel) {
  const std::string path = (kData / "simpleperf-sched-stat-runtime.data").string();
  if (!fs::exists(path)) GTEST_SKIP() << "no folder of real traces";
  auto bytes = ReadWholeFile(path);
  ASSERT_TRUE(bytes.ok());
  Diagnostics diagnostics;
  auto session = ReadPerfHeader(MemorySource(path, bytes.value()), diagnostics);
  ASSERT_TRUE(session.ok());
  session.value().file_symbols.Build();
  EXPECT_EQ(session.value().file_symbols.LookupKernel(0xffffffc0000e52f0).name, "update_curr");
}

TEST(PerfMapFileTest, TheProcessIsGivenOrInTheName) {
  EXPECT_EQ(ParsePerfMapFile("/x/names.txt:12").path, "/x/names.txt");
  EXPECT_EQ(ParsePerfMapFile("/x/names.txt:12").pid, 12);
  EXPECT_EQ(ParsePerfMapFile("/x/perf-77.map").pid, 77);
  EXPECT_EQ(ParsePerfMapFile("/x/perf-77.map:5").pid, 5);
  EXPECT_EQ(ParsePerfMapFile("/x/names.txt").pid, std::nullopt);
  EXPECT_EQ(ParsePerfMapFile("C:names").path, "C:names");
}

TEST(PerfMapFileTest, NamesCodeOfARecordingFromElsewhere) {
  const TestFolder folder;
  const std::string map = folder.Write("names.txt", "7f0000001000 100 compiled\n");
  PerfDataBuilder builder;
  for (const int32_t pid : {50, 51}) {
    const PerfDataBuilder::Who who = {.time = 1'000'000, .cpu = 0, .pid = pid, .tid = pid};
    builder.Mmap2(who, 2, 0x7f0000000000, 1 << 20, 0, "//anon");
    builder.Clock({.time = 5'000'000, .cpu = 0, .pid = pid, .tid = pid},
                  {kContextUser, 0x7f0000001004});
  }
  const auto stacks = [&](const ImportOptions& options) {
    const ImportedTrace imported =
        ImportTrace(PerfDataImporter(),
                    MemorySource("x", builder.Bytes(PerfDataBuilder::Layout::kFile)), options);
    std::multiset<std::string> out;
    for (const trace::Event& event : imported.trace.events) {
      if (event.kind == EventKind::kRunning) out.insert(imported.Stack(event.stack));
    }
    return out;
  };
  using Stacks = std::multiset<std::string>;
  const std::string unnamed = "[anon]!+0x7f0000001004";
  EXPECT_EQ(stacks({}), (Stacks{unnamed, unnamed}));
  EXPECT_EQ(stacks({.perf_maps = {{.path = map}}}), (Stacks{"[jit]!compiled", "[jit]!compiled"}));
  EXPECT_EQ(stacks({.symbols = false, .perf_maps = {{.path = map, .pid = 51}}}),
            (Stacks{unnamed, "[jit]!compiled"}));
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
