// SPDX-License-Identifier: Apache-2.0
// Real recordings: those of other people, where they are present, held against
// `perf script` or against counts known from their authors; and one made here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "base/file.h"
#include "base/test_folder.h"
#include "import/import_run.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

namespace fs = std::filesystem;
using trace::EventKind;

const fs::path kData = fs::path(CULPRIT_SOURCE_DIR) / "../shared/data";
const ImportOptions kNoSymbols = {.symbols = false};

std::string OutputOf(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  char buffer[65536];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  pclose(pipe);
  return out;
}

bool HasPerf() { return OutputOf("perf --version 2>/dev/null").starts_with("perf"); }

std::string Contents(const fs::path& path) {
  if (path.extension() == ".zst") return OutputOf("zstd -dqc '" + path.string() + "'");
  Result<std::string> bytes = ReadWholeFile(path.string());
  return bytes.ok() ? std::move(bytes).value() : std::string();
}

ImportedTrace Import(const fs::path& path, const ImportOptions& options = kNoSymbols) {
  return ImportTrace(PerfDataImporter(), MemorySource(path.string(), Contents(path)), options);
}

size_t LineCount(const std::string& text, const std::string& word) {
  size_t count = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) count += line.find(word) != std::string::npos;
  return count;
}

// Lines of `perf script`: event name -> how many, tid 0 left out.
std::map<std::string, size_t> EventsByPerfScript(const fs::path& path) {
  const std::string text =
      OutputOf("perf script -i '" + path.string() + "' -F tid,event 2>/dev/null");
  std::map<std::string, size_t> counts;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    char name[200] = {};
    long tid = -1;
    const std::string line = text.substr(at, end - at);
    if (std::sscanf(line.c_str(), " %ld %199[^ \t\n]", &tid, name) == 2 && tid != 0) {
      std::string event = name;
      while (event.ends_with(':')) event.pop_back();
      ++counts[event];
    }
    at = end + 1;
  }
  return counts;
}

TEST(PerfDataRecordingsTest, EveryRecordingOfOthersIsRead) {
  if (!fs::exists(kData / "perf-data")) GTEST_SKIP() << "no folder of real traces";
  size_t files = 0;
  for (const char* folder : {"perf-data", "bugs"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kData / folder)) {
      const std::string name = entry.path().filename().string();
      const bool mine =
          name.ends_with(".data") || name.ends_with(".data.zst") || name.starts_with("perf.data");
      if (!entry.is_regular_file() || !mine) continue;
      const ImportedTrace imported = Import(entry.path());
      ASSERT_TRUE(imported.status.ok()) << name;
      EXPECT_EQ(imported.Problem(), "") << name;
      EXPECT_FALSE(imported.trace.events.empty()) << name;
      ++files;
    }
  }
  EXPECT_GE(files, 30u);
}

// One running event a sample, whichever perf wrote it.
TEST(PerfDataRecordingsTest, SampleCountsAreThoseOfPerfScript) {
  if (!fs::exists(kData / "perf-data")) GTEST_SKIP() << "no folder of real traces";
  if (!HasPerf()) GTEST_SKIP() << "perf is not installed";
  const std::map<std::string, std::string> files = {
      {"converter-with-callchain.data", "cpu-clock"},
      {"simpleperf-linux-perf.data", "cycles"},
      {"quipper/testdata/perf.data.busy.1-3.8", "cycles"},
      {"quipper/testdata/perf.data.callgraph-3.8", "cycles"},
      {"quipper/testdata/perf.data.callgraph_and_branch-3.8", "cycles"},
      {"quipper/testdata/perf.data.forkexit-3.8", "cycles"},
      {"quipper/testdata/perf.data.piped.target-3.8", "cycles"},
      {"quipper/testdata/perf.data.raw_callgraph_branch-3.4", "cycles"},
      {"quipper/testdata/perf.data.systemwide.5-3.8", "cycles"}};
  for (const auto& [file, event] : files) {
    const fs::path path = kData / "perf-data" / file;
    const size_t expected = EventsByPerfScript(path)[event];
    ASSERT_GT(expected, 0u) << file;
    EXPECT_EQ(Import(path).Count(EventKind::kRunning), expected) << file;
  }
}

TEST(PerfDataRecordingsTest, CompressedAndNewRecordingsAreRead) {
  const fs::path folder = kData / "perf-data/linux-perf-data-fixtures";
  if (!fs::exists(folder)) GTEST_SKIP() << "no folder of real traces";
  EXPECT_EQ(Import(folder / "sleep.data").Count(EventKind::kRunning), 7u);
  EXPECT_EQ(Import(folder / "sleep.compressed.data").Count(EventKind::kRunning), 8u);
  EXPECT_EQ(Import(folder / "sleep.compressed2.data").Count(EventKind::kRunning), 7u);
}

TEST(PerfDataRecordingsTest, TheConvoyHasEverySwitchWakingSampleAndStack) {
  const fs::path path = kData / "bugs/postgresql-15-notify-convoy/buggy.sched.data.zst";
  if (!fs::exists(path)) GTEST_SKIP() << "no folder of real traces";
  const ImportedTrace imported = Import(path);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  // 83,791 wakings, 15,034 block requests by `perf script`.
  EXPECT_EQ(imported.Count(EventKind::kUnwait), 83'791u);
  EXPECT_EQ(imported.Count(EventKind::kHardware), 15'034u);
  // A switch-out of a thread is a wait or a preemption.
  size_t preempted = 0;
  for (const auto& event : imported.trace.events) {
    preempted += (event.flags & trace::kPreempted) != 0 ? 1 : 0;
  }
  EXPECT_GT(imported.Count(EventKind::kWait) + preempted, 90'000u);
  EXPECT_GT(imported.CountStacked(EventKind::kWait), imported.Count(EventKind::kWait) * 99 / 100);
  EXPECT_GT(imported.CountStacked(EventKind::kRunning), 2'500u);
  EXPECT_TRUE(imported.trace.metadata.has_wakers);
  EXPECT_EQ(imported.trace.metadata.kernel, "6.18.44-fc-v445");
  EXPECT_EQ(imported.trace.metadata.sample_period_ns, 1'000'000);
}

TEST(PerfDataRecordingsTest, SystemCallsArePaired) {
  const fs::path path = kData / "bugs/sqlite-3.40-autocommit-fsync/buggy.trace.data.zst";
  if (!fs::exists(path)) GTEST_SKIP() << "no folder of real traces";
  const ImportedTrace imported = Import(path);
  EXPECT_EQ(imported.Problem(), "");
  // 11,884 entries and exits; the first exit is that of the exec that began it.
  EXPECT_EQ(imported.Count(EventKind::kSyscall), 11'884u);
  // Only sqlite3 was recorded: nobody else has a time line.
  for (const auto& event : imported.trace.events) {
    EXPECT_EQ(imported.trace.dictionary.threads()[event.thread.value].kind,
              trace::ThreadKind::kUser);
  }
}

TEST(PerfDataRecordingsTest, SimpleperfOffCpuStacksAreOnTheWaits) {
  const fs::path path = kData / "perf-data/simpleperf-offcpu-v2.data";
  if (!fs::exists(path)) GTEST_SKIP() << "no folder of real traces";
  const ImportedTrace imported = Import(path);
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(imported.Count(EventKind::kWait), 88u);
  EXPECT_EQ(imported.CountStacked(EventKind::kWait), 88u);
  EXPECT_EQ(imported.CountStacked(EventKind::kRunning), 208u);
}

// perf record --threads: a folder, a file for each of perf's own threads.
TEST(PerfDataRecordingsTest, AFolderOfSeveralFilesIsOneRecording) {
  if (!HasPerf()) GTEST_SKIP() << "perf is not installed";
  const TestFolder folder;
  const std::string path = folder / "by-threads";
  OutputOf("perf record -q -B -a --threads -e sched:sched_switch,cpu-clock -o '" + path +
           "' -- sleep 0.1 >/dev/null 2>&1");
  if (!fs::exists(path + "/data.0")) GTEST_SKIP() << "this perf does not record with threads";
  auto sources = OpenSources(path);
  ASSERT_EQ(sources.size(), 1u);
  ASSERT_TRUE(sources[0].ok());
  const auto importer = ChooseImporter(sources[0].value(), "");
  ASSERT_TRUE(importer.ok());
  EXPECT_EQ(importer.value()->name, "perf.data");
  const ImportedTrace imported = ImportTrace(*importer.value(), sources[0].value(), kNoSymbols);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_GT(imported.Count(EventKind::kWait), 0u);
  EXPECT_EQ(imported.Counted("fact earlier than one before it, moved to that one's time"), 0u);
  auto expected = EventsByPerfScript(path);
  EXPECT_NEAR(static_cast<double>(imported.CountStacked(EventKind::kRunning)),
              static_cast<double>(expected["cpu-clock"]), 20);
}

// Both count the same time.
TEST(PerfDataRecordingsTest, OfTwoClocksOneIsTime) {
  if (!HasPerf()) GTEST_SKIP() << "perf is not installed";
  const TestFolder folder;
  const std::string path = folder / "two.data";
  OutputOf("perf record -q -B -e '{cpu-clock,task-clock}' -o '" + path +
           "' -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' >/dev/null 2>&1");
  auto expected = EventsByPerfScript(path);
  if (expected["cpu-clock"] == 0) GTEST_SKIP() << "perf may not record here";
  EXPECT_EQ(Import(path).Count(EventKind::kRunning), expected["cpu-clock"]);
}

TEST(PerfDataRecordingsTest, ARecordingMadeHereIsRead) {
  if (!HasPerf()) GTEST_SKIP() << "perf is not installed";
  const fs::path path =
      fs::temp_directory_path() / ("culprit-perf-" + std::to_string(getpid()) + ".data");
  for (const std::string options :
       {"-a -g -e sched:sched_switch,sched:sched_waking,cpu-clock",
        "-e raw_syscalls:sys_enter,raw_syscalls:sys_exit", "-e cpu-clock --switch-events -z"}) {
    OutputOf("perf record -q " + options + " -o '" + path.string() +
             "' -- sh -c 'for i in 1 2 3; do sleep 0.01; done' >/dev/null 2>&1");
    if (!fs::exists(path) || fs::file_size(path) == 0) {
      GTEST_SKIP() << "perf may not record here: " << options;
    }
    const ImportedTrace imported = Import(path);
    EXPECT_TRUE(imported.status.ok()) << options;
    EXPECT_EQ(imported.Problem(), "") << options;
    // All wakings count here, those that an interrupt of the idle task did too.
    const size_t wakings =
        LineCount(OutputOf("perf script -G -i '" + path.string() + "' -F event 2>/dev/null"),
                  "sched:sched_waking");
    const size_t unwaits = imported.Count(EventKind::kUnwait);
    EXPECT_LE(unwaits, wakings) << options;
    EXPECT_GE(unwaits * 10, wakings * 9) << options;
    auto expected = EventsByPerfScript(path);
    const size_t calls = expected["raw_syscalls:sys_enter"];
    EXPECT_NEAR(static_cast<double>(imported.Count(EventKind::kSyscall)),
                static_cast<double>(calls), 8)
        << options;
    fs::remove(path);
  }
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
