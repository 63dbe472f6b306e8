// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>

#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/ring_buffer_sample.h"
#include "import/stored_bytes.h"
#include "import/trace_dat_builder.h"
#include "import/trace_dat_file.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

void ExpectTheStory(const ImportedTrace& imported) {
  ASSERT_TRUE(imported.status.ok()) << imported.status.error().ToString();
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_TRUE(imported.trace.metadata.has_switches);
  EXPECT_EQ(imported.trace.metadata.clock, "boot");
  EXPECT_EQ(imported.trace.metadata.kernel, "6.1.0");
  EXPECT_EQ(imported.Count(EventKind::kUnwait), 2u);
  EXPECT_EQ(imported.Count(EventKind::kMarker), 2u);
  std::vector<std::string> waits;
  for (const trace::Event& event : imported.trace.events) {
    if (event.kind != EventKind::kWait) continue;
    waits.push_back(std::to_string(event.dur_ns) + " by " + imported.Thread(event.peer) + " in " +
                    imported.Stack(event.stack));
  }
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0], "2000 by b/b (20) in [kernel]!do_nanosleep;[kernel]!schedule");
  EXPECT_NE(waits[1].find("1000 by "), std::string::npos) << waits[1];
  EXPECT_NE(waits[1].find("[timer]"), std::string::npos) << waits[1];
  for (const trace::Event& event : imported.trace.events) {
    if (event.kind != EventKind::kUnwait || event.time_ns != 6000) continue;
    EXPECT_EQ(imported.Stack(event.stack),
              "[kernel]!asm_sysvec_apic_timer_interrupt;[kernel]!hrtimer_wakeup;"
              "[kernel]!try_to_wake_up");
  }
}

TEST(TraceDat, ReadsVersion6InEveryByteOrderAndWordSize) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    for (const size_t long_bytes : {4, 8}) {
      const ImportedTrace imported = ImportTrace(
          TraceDatImporter(), MemorySource("t", TraceDatBuilder(order, long_bytes).Version6()));
      ExpectTheStory(imported);
      EXPECT_EQ(imported.trace.metadata.properties.at("drops.cpu1"), "7");
    }
  }
}

TEST(TraceDat, ReadsVersion7WithEveryCodec) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    const TraceDatBuilder builder(order, 8);
    for (const std::string& file :
         {builder.Version7("none", nullptr), builder.Version7("zstd", PackZstd),
          builder.Version7("zlib", PackZlib)}) {
      ExpectTheStory(ImportTrace(TraceDatImporter(), MemorySource("t", file)));
    }
  }
}

TEST(TraceDat, IsRecognizedByItsMagic) {
  const std::string file = TraceDatBuilder(ByteOrder::kLittle, 8).Version6();
  EXPECT_EQ(TraceDatImporter().sniff(MemorySource("t", file), file), Match::kCertain);
  EXPECT_EQ(TraceDatImporter().sniff(MemorySource("t", "x"), "x"), Match::kNo);
}

TEST(TraceDat, SaysWhyNothingCanBeRead) {
  const auto message = [](std::string bytes) {
    return ImportTrace(TraceDatImporter(), MemorySource("t", std::move(bytes))).status.error();
  };
  EXPECT_NE(message("").message.find("not a trace.dat"), std::string::npos);
  EXPECT_NE(message(std::string(kTraceDatMagic) + std::string("9\0\0\10", 4)).message.find("'9'"),
            std::string::npos);
  const std::string lz4 = TraceDatBuilder(ByteOrder::kLittle, 8).Version7("lz4", nullptr);
  EXPECT_NE(message(lz4).message.find("lz4"), std::string::npos);
  EXPECT_FALSE(message(lz4).hint.empty());
}

TEST(TraceDat, CutAnywhereDoesNoHarm) {
  for (const std::string& file : {TraceDatBuilder(ByteOrder::kLittle, 8).Version6(),
                                  TraceDatBuilder(ByteOrder::kBig, 4).Version7("zstd", PackZstd)}) {
    for (size_t size = 0; size < file.size(); size += size < 4000 ? 1 : 97) {
      const ImportedTrace imported =
          ImportTrace(TraceDatImporter(), MemorySource("t", file.substr(0, size)));
      if (imported.status.ok()) {
        ASSERT_EQ(imported.Problem(), "") << size;
      }
    }
  }
}

TEST(TraceDat, BytesFlippedAnywhereDoNoHarm) {
  const std::string whole = TraceDatBuilder(ByteOrder::kLittle, 8).Version6();
  for (size_t at = 10; at < whole.size(); at += 3) {
    std::string file = whole;
    file[at] = static_cast<char>(file[at] ^ (1 << (at % 8)));
    const ImportedTrace imported = ImportTrace(TraceDatImporter(), MemorySource("t", file));
    if (imported.status.ok()) {
      ASSERT_EQ(imported.Problem(), "") << at;
    }
  }
}

// Events of a real file by name, as the pages have them.
std::map<std::string, size_t> EventCounts(const Bytes& bytes) {
  Diagnostics diagnostics;
  const TraceDatFile file = ReadTraceDatFile(bytes, "t", diagnostics).value();
  std::map<uint64_t, std::string> names;
  for (const EventFormat& format : file.formats) names[format.id] = format.name;
  std::map<std::string, size_t> counts;
  for (const CpuPages& pages : file.pages) {
    const auto feed = PagesOf(bytes, file, pages, diagnostics);
    std::string page;
    uint64_t offset = 0;
    while (feed->Next(page, offset).value()) {
      PageReader reader(file.layout, page);
      for (PageEvent event; reader.Next(event);) {
        ++counts[names[LoadUnsigned(event.data, 0, 2, file.layout.order)]];
      }
    }
  }
  EXPECT_TRUE(diagnostics.empty());
  return counts;
}

// "  task-pid [cpu] time: event: ..." of `trace-cmd report`.
std::map<std::string, size_t> ReportedCounts(const std::string& path) {
  std::map<std::string, size_t> counts;
  FILE* pipe = popen(("trace-cmd report -N '" + path + "' 2>/dev/null").c_str(), "r");
  std::array<char, 4096> line;
  while (pipe != nullptr && fgets(line.data(), line.size(), pipe) != nullptr) {
    const std::string_view text(line.data());
    const size_t cpu = text.find("] ");
    const size_t time_end = text.find(": ", cpu);
    const size_t name_end = text.find(": ", time_end + 2);
    if (cpu == std::string_view::npos || name_end == std::string_view::npos) continue;
    ++counts[std::string(text.substr(time_end + 2, name_end - time_end - 2))];
  }
  if (pipe != nullptr) pclose(pipe);
  return counts;
}

ImportedTrace ImportFile(const std::string& path) {
  auto file = InputFile::Open(path);
  return ImportTrace(TraceDatImporter(),
                     Source(path, {{"", std::make_shared<FileBytes>(std::move(file).value())}}));
}

TEST(TraceDat, ReadsRealFilesLikeTraceCmd) {
  const std::string folder = CULPRIT_SOURCE_DIR "/../shared/data/trace-dat";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const bool oracle = std::system("trace-cmd --version >/dev/null 2>&1") == 0;
  for (const std::string name :
       {"langraph-v7-stacks.dat", "lisa-sched-load.dat", "trappy-raw.dat"}) {
    const std::string path = folder + "/" + name;
    const ImportedTrace imported = ImportFile(path);
    ASSERT_TRUE(imported.status.ok()) << name;
    EXPECT_EQ(imported.Problem(), "") << name;
    const FileBytes bytes(std::move(InputFile::Open(path)).value());
    const auto counts = EventCounts(bytes);
    EXPECT_FALSE(counts.empty());
    if (oracle) {
      EXPECT_EQ(counts, ReportedCounts(path)) << name;
    }
  }
}

TEST(TraceDat, KeepsEveryWakingAndItsStackOfARealFile) {
  const std::string path = CULPRIT_SOURCE_DIR "/../shared/data/trace-dat/langraph-v7-stacks.dat";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const ImportedTrace imported = ImportFile(path);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Count(EventKind::kUnwait), 1126u);
  EXPECT_EQ(imported.CountStacked(EventKind::kUnwait), 1126u);
  EXPECT_EQ(imported.CountStacked(EventKind::kWait), imported.Count(EventKind::kWait));
  EXPECT_EQ(imported.trace.metadata.cpus, 4u);
  EXPECT_EQ(imported.trace.metadata.arch, "x86_64");
}

TEST(TraceDat, ReadsWhatTraceCmdRecordsNow) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("culprit_trace_dat_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "t.dat";
  const int code = std::system(("cd '" + folder.string() + "' && timeout 20 trace-cmd record -o '" +
                                path + "' -e sched -e raw_syscalls sleep 0.1 >/dev/null 2>&1")
                                   .c_str());
  if (code != 0 || !std::filesystem::exists(path)) {
    std::filesystem::remove_all(folder);
    GTEST_SKIP() << "trace-cmd cannot record here";
  }
  const ImportedTrace imported = ImportFile(path);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_GT(imported.Count(EventKind::kWait), 0u);
  EXPECT_GT(imported.Count(EventKind::kSyscall), 0u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
