// SPDX-License-Identifier: Apache-2.0
// Real recordings of other people, where they are present, held against counts
// known from an independent reading of their bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "import/etl_event.h"
#include "import/etl_file.h"
#include "import/imported_trace.h"
#include "import/importers.h"

namespace culprit::import_::TEST_FILE {
namespace {

namespace fs = std::filesystem;
using trace::EventKind;

const fs::path kData = fs::path(CULPRIT_SOURCE_DIR) / "../shared/data/etw";

struct Recording {
  std::map<uint16_t, uint64_t> kernel;  // events by code
  uint64_t events = 0;
  Diagnostics damage;
  ImportedTrace imported;
};

// The log file in an archive, read record by record and imported.
Recording Open(const std::string& name) {
  Recording recording;
  for (const Result<Source>& source : OpenSources((kData / name).string())) {
    if (!source.ok() || !source.value().name().ends_with(".etl")) continue;
    const Bytes& bytes = source.value().bytes();
    const EtlHeader header = std::move(ReadEtlHeader(source.value())).value();
    std::string records;
    for (const EtlBuffer& buffer : ListEtlBuffers(bytes, header, recording.damage).value()) {
      EXPECT_TRUE(LoadEtlBuffer(bytes, header, buffer, records, recording.damage).ok());
      EtlWalk walk(records, buffer.cpu);
      for (EtlEvent event; walk.Next(event);) {
        ++recording.events;
        if (event.provider == EtlProvider::kKernel) ++recording.kernel[event.code];
      }
      EXPECT_FALSE(walk.damaged());
    }
    recording.imported = ImportTrace(EtlImporter(), source.value());
    EXPECT_TRUE(recording.imported.status.ok());
  }
  return recording;
}

// How many samples of a thread, by "process (tid)".
uint64_t SamplesOf(const ImportedTrace& imported, const std::string& label) {
  return static_cast<uint64_t>(std::count_if(
      imported.trace.events.begin(), imported.trace.events.end(), [&](const trace::Event& event) {
        return event.kind == EventKind::kRunning && imported.Thread(event.thread) == label;
      }));
}

bool HasStack(const ImportedTrace& imported, const std::string& part) {
  return std::any_of(imported.trace.events.begin(), imported.trace.events.end(),
                     [&](const trace::Event& event) {
                       return imported.Stack(event.stack).find(part) != std::string::npos;
                     });
}

TEST(EtlRecordings, SamplesAndDiskRequestsOfAProfile) {
  if (!fs::exists(kData)) GTEST_SKIP() << "no " << kData;
  Recording r = Open("perfview-net45-x86.etl.zip");
  EXPECT_EQ(r.events, 185'961u);
  EXPECT_EQ(r.kernel[kEtlSample], 16'865u);
  EXPECT_EQ(r.kernel[kEtlStack], 18'532u);
  EXPECT_TRUE(r.damage.empty());
  const ImportedTrace& imported = r.imported;
  EXPECT_EQ(imported.Problem(), "");
  // The rest is of the idle thread; 4,488 have a recorded stack.
  EXPECT_EQ(imported.CountStacked(EventKind::kRunning), 4'664u);
  EXPECT_EQ(SamplesOf(imported, "test.exe/test.exe (3720)"), 2'926u);
  EXPECT_EQ(SamplesOf(imported, "PerfView.exe/PerfView.exe (2820)"), 639u);
  // 65 reads, 471 writes, 6 flushes, and a read that did not end.
  EXPECT_EQ(imported.Count(EventKind::kHardware), 543u);
  EXPECT_EQ(imported.trace.dictionary.processes().size(), 48u);
  EXPECT_TRUE(HasStack(imported, "clr.dll!+0x2652;test.exe!Test.Main;clr.dll!+0x8aff"));
  const trace::Metadata& metadata = imported.trace.metadata;
  EXPECT_EQ(metadata.sample_period_ns, 1'000'000);
  EXPECT_EQ(metadata.machine, "JEFFSCHW-GC2");
  EXPECT_EQ(metadata.os, "Windows 7 Enterprise");
  EXPECT_EQ(metadata.cpus, 4u);
  EXPECT_FALSE(metadata.has_switches);
}

TEST(EtlRecordings, CompressedBuffersAndStacksByKey) {
  if (!fs::exists(kData)) GTEST_SKIP() << "no " << kData;
  Recording r = Open("perfview-net452-x64-xpress.etl.zip");
  EXPECT_EQ(r.events, 179'474u);
  EXPECT_EQ(r.kernel[kEtlSample], 79'528u);
  EXPECT_EQ(r.kernel[kEtlStackRefKernel], 2'061u);
  EXPECT_EQ(r.kernel[kEtlStackRefUser], 7'046u);
  EXPECT_EQ(r.kernel[kEtlStackKeyDelete] + r.kernel[kEtlStackKeyRundown], 2'921u);
  EXPECT_TRUE(r.damage.empty());
  const ImportedTrace& imported = r.imported;
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(imported.CountStacked(EventKind::kRunning), 6'215u);
  EXPECT_EQ(SamplesOf(imported, "Test.x64.exe/Test.x64.exe (3680)"), 5'128u);
  EXPECT_EQ(imported.Count(EventKind::kHardware), 1'231u);
  EXPECT_EQ(imported.Counted("stack by a key that is not explained"), 0u);
  EXPECT_TRUE(HasStack(imported,
                       "test.x64.exe!Test.Program.Main;"
                       "mscorlib.dll!System.DateTime.get_Now;"));
  EXPECT_EQ(imported.trace.metadata.cpus, 8u);
}

TEST(EtlRecordings, ProcessesThreadsAndImagesOfAShutdown) {
  if (!fs::exists(kData)) GTEST_SKIP() << "no " << kData;
  Recording r = Open("airbus-shutdown.etl");
  EXPECT_EQ(r.events, 17'078u);
  EXPECT_TRUE(r.damage.empty());
  const trace::Dictionary& dictionary = r.imported.trace.dictionary;
  EXPECT_EQ(dictionary.processes().size(), 97u);
  uint64_t ended = 0;
  for (const trace::Process& process : dictionary.processes()) {
    EXPECT_TRUE(process.name.valid());
    ended += process.end_ns != trace::kNoTime ? 1 : 0;
  }
  EXPECT_EQ(ended, r.kernel[kEtlProcessEnd]);
  EXPECT_EQ(r.imported.Count(EventKind::kMarker), 2 * ended);
  EXPECT_EQ(r.imported.Problem(), "");
  EXPECT_EQ(dictionary.threads().size(), 1'531u);
  EXPECT_EQ(r.imported.trace.metadata.end_ns - r.imported.trace.metadata.begin_ns, 4'163'301'800);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
