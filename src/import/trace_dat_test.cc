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
#include "import/trace_dat_file.h"

namespace culprit::import_ {
namespace {

using trace::EventKind;

constexpr std::string_view kKallsyms =
    "ffff0000 T schedule\nffff0100 T do_nanosleep\nffff0200 T try_to_wake_up\n"
    "ffff0300 T hrtimer_wakeup\nffff0400 T asm_sysvec_apic_timer_interrupt\n"
    "ffff0500 T futex_wake\n";

// A and B on two CPUs: A sleeps at 1000 and is woken by B at 3000, runs on at
// 3500; B sleeps at 5000 and a timer wakes it at 6000.
struct Pages {
  std::string cpu0;
  std::string cpu1;
};

Pages MakePages(RingSample sample) {
  Pages pages;
  sample.Switch(0, "a", 10, 1, "swapper/0", 0).Stack(1, 10, {0xffff0010, 0xffff0110});
  sample.Switch(2499, "swapper/0", 0, 0, "a", 10);
  sample.Print(100, 10, "B|9|work\n").Print(400, 10, "E|9\n");
  sample.Waking(2000, 10, "b", 20, 0x08)
      .Stack(1, 10, {0xffff0210, 0xffff0310, 0xffff0410, 0xffff0010});
  pages.cpu0 = sample.Page(1000);
  sample.Waking(0, 20, "a", 10).Stack(1, 20, {0xffff0210, 0xffff0510});
  sample.Switch(1999, "b", 20, 1, "swapper/1", 0);
  sample.Switch(1100, "swapper/1", 0, 0, "b", 20);
  pages.cpu1 = sample.Page(3000);
  return pages;
}

class FileBuilder {
 public:
  FileBuilder(ByteOrder order, size_t long_bytes) : sample_(order, long_bytes), order_(order) {
    long_bytes_ = long_bytes;
  }

  std::string Number(uint64_t value, size_t size) const { return sample_.Number(value, size); }
  std::string Sized(std::string_view text) const {
    return Number(text.size(), 8) + std::string(text);
  }
  std::string HeaderInfo() const {
    return std::string("header_page\0", 12) + Sized(sample_.HeaderPage()) +
           std::string("header_event\0", 13) + Sized("# compressed entry header\n");
  }
  std::string FtraceFormats() const {
    return Number(2, 4) + Sized(RingSample::StackFormat()) + Sized(RingSample::PrintFormat());
  }
  std::string EventFormats() const {
    return Number(1, 4) + std::string("sched\0", 6) + Number(2, 4) +
           Sized(RingSample::SwitchFormat()) + Sized(RingSample::WakingFormat());
  }
  std::string Kallsyms() const { return Number(kKallsyms.size(), 4) + std::string(kKallsyms); }
  std::string Option(uint16_t id, std::string_view data) const {
    return Number(id, 2) + Number(data.size(), 4) + std::string(data);
  }
  std::string Start(char version) const {
    return std::string(kTraceDatMagic) + version + '\0' +
           (order_ == ByteOrder::kBig ? '\1' : '\0') + static_cast<char>(long_bytes_) +
           Number(RingSample::kPageBytes, 4);
  }

  std::string Version6() const {
    const Pages pages = MakePages(sample_);
    const std::string names = "9 main\n";
    std::string file = Start('6') + HeaderInfo() + FtraceFormats() + EventFormats() + Kallsyms() +
                       Number(0, 4) + Sized(names) + Number(2, 4) + std::string("options  \0", 10) +
                       Option(4, std::string_view("local [boot] mono\0", 18)) +
                       Option(5, std::string_view("Linux box 6.1.0 arm64\0", 22)) +
                       Option(2, std::string_view("CPU: 1\noverrun: 7\n\0", 19)) + Number(0, 2) +
                       std::string("flyrecord\0", 10);
    const size_t data = file.size() + 32;
    file += Number(data, 8) + Number(pages.cpu0.size(), 8);
    file += Number(data + pages.cpu0.size(), 8) + Number(pages.cpu1.size(), 8);
    return file + pages.cpu0 + pages.cpu1;
  }

  using Packer = std::string (*)(std::string_view);
  // `pack` nullptr: nothing is compressed.
  std::string Version7(std::string_view codec, Packer pack) const {
    std::string file = Start('7') + std::string(codec) + '\0' + std::string("1\0", 2);
    const size_t offset_at = file.size();
    file += Number(0, 8);
    std::string options;
    const auto section = [&](uint16_t id, const std::string& plain) {
      options += Option(id, Number(file.size(), 8));
      std::string data = plain;
      if (pack != nullptr) {
        const std::string packed = pack(plain);
        data = Number(packed.size(), 4) + Number(plain.size(), 4) + packed;
      }
      file += Number(id, 2) + Number(pack != nullptr ? 1 : 0, 2) + Number(0, 4) +
              Number(data.size(), 8) + data;
    };
    section(16, HeaderInfo());
    section(17, FtraceFormats());
    section(18, EventFormats());
    section(19, Kallsyms());
    section(21, Sized("9 main\n"));
    const Pages pages = MakePages(sample_);
    std::string buffer = Number(file.size(), 8) + '\0' + std::string("boot\0", 5) +
                         Number(RingSample::kPageBytes, 4) + Number(2, 4);
    file += Number(3, 2) + Number(pack != nullptr ? 1 : 0, 2) + Number(0, 4) + Number(0, 8);
    uint32_t cpu = 0;
    for (const std::string& page : {pages.cpu0, pages.cpu1}) {
      std::string data = page;
      if (pack != nullptr) {
        const std::string packed = pack(page);
        data = Number(1, 4) + Number(packed.size(), 4) + Number(page.size(), 4) + packed;
      }
      buffer += Number(cpu++, 4) + Number(file.size(), 8) + Number(data.size(), 8);
      file += data;
    }
    options += Option(3, buffer);
    options += Option(5, std::string_view("Linux box 6.1.0 arm64\0", 22)) + Option(0, Number(0, 8));
    file.replace(offset_at, 8, Number(file.size(), 8));
    return file + Number(0, 2) + Number(0, 2) + Number(0, 4) + Number(options.size(), 8) + options;
  }

 private:
  RingSample sample_;
  ByteOrder order_;
  size_t long_bytes_;
};

std::string Zstd(std::string_view plain) {
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  return packed;
}

// Stored, not compressed: the simplest zlib stream.
std::string Zlib(std::string_view plain) {
  std::string packed = "\x78\x01";
  for (size_t at = 0; at < plain.size(); at += 30'000) {
    const std::string_view part = plain.substr(at, 30'000);
    const auto size = static_cast<uint16_t>(part.size());
    packed.push_back(at + part.size() == plain.size() ? '\1' : '\0');
    for (const uint16_t number : {size, static_cast<uint16_t>(~size)}) {
      packed.push_back(static_cast<char>(number & 0xff));
      packed.push_back(static_cast<char>(number >> 8));
    }
    packed += part;
  }
  return packed + std::string(4, '\0');
}

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
          TraceDatImporter(), MemorySource("t", FileBuilder(order, long_bytes).Version6()));
      ExpectTheStory(imported);
      EXPECT_EQ(imported.trace.metadata.properties.at("drops.cpu1"), "7");
    }
  }
}

TEST(TraceDat, ReadsVersion7WithEveryCodec) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    const FileBuilder builder(order, 8);
    for (const std::string& file :
         {builder.Version7("none", nullptr), builder.Version7("zstd", Zstd),
          builder.Version7("zlib", Zlib)}) {
      ExpectTheStory(ImportTrace(TraceDatImporter(), MemorySource("t", file)));
    }
  }
}

TEST(TraceDat, IsRecognizedByItsMagic) {
  const std::string file = FileBuilder(ByteOrder::kLittle, 8).Version6();
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
  const std::string lz4 = FileBuilder(ByteOrder::kLittle, 8).Version7("lz4", nullptr);
  EXPECT_NE(message(lz4).message.find("lz4"), std::string::npos);
  EXPECT_FALSE(message(lz4).hint.empty());
}

TEST(TraceDat, CutAnywhereDoesNoHarm) {
  for (const std::string& file : {FileBuilder(ByteOrder::kLittle, 8).Version6(),
                                  FileBuilder(ByteOrder::kBig, 4).Version7("zstd", Zstd)}) {
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
  const std::string whole = FileBuilder(ByteOrder::kLittle, 8).Version6();
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
}  // namespace culprit::import_
