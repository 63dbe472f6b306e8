// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/ring_buffer_sample.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

SourceFile File(std::string path, std::string bytes) {
  return {std::move(path), std::make_shared<MemoryBytes>(std::move(bytes))};
}

Source Folder(std::string pages) {
  return Source(
      "folder",
      {File("formats/header_page", RingSample().HeaderPage()),
       File("formats/sched/sched_switch/format", RingSample::SwitchFormat()),
       File("formats/sched/sched_waking/format", RingSample::WakingFormat()),
       File("saved_cmdlines", "10 named\n"), File("trace_clock", "local [mono]\n"),
       File("topology/node0/cpu0/topology/core_id", "0\n"), File("traces/cpu0", std::move(pages))});
}

std::string TwoPages() {
  RingSample sample;
  sample.Switch(0, "a", 10, 2, "swapper", 0).Waking(50, 0, "a", 10, 0x10);
  std::string pages = sample.Page(1000);
  sample.Switch(10, "swapper", 0, 0, "a", 10);
  return pages + sample.Page(1100, uint64_t{1} << 31);
}

TEST(RingBuffer, ReadsAFolderOfPagesAndFormats) {
  const Source folder = Folder(TwoPages());
  EXPECT_EQ(RingBufferImporter().sniff(folder, ""), Match::kCertain);
  const ImportedTrace imported = ImportTrace(RingBufferImporter(), folder);
  ASSERT_TRUE(imported.status.ok()) << imported.status.error().ToString();
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(imported.trace.metadata.clock, "mono");
  EXPECT_EQ(imported.Count(EventKind::kWait), 1u);
  EXPECT_EQ(imported.Counted("gap while recording, number of lost events not known"), 1u);
  const auto wait =
      std::find_if(imported.trace.events.begin(), imported.trace.events.end(),
                   [](const trace::Event& event) { return event.kind == EventKind::kWait; });
  EXPECT_EQ(wait->dur_ns, 50);
  // Without a stack a softirq is the device's.
  EXPECT_EQ(imported.trace.dictionary.threads()[wait->peer.value].kind, trace::ThreadKind::kDevice);
}

TEST(RingBuffer, NeedsFormatsAndPages) {
  EXPECT_EQ(RingBufferImporter().sniff(MemorySource("t", "x"), "x"), Match::kNo);
  const Source bare("bare", {File("traces/cpu0", "x"), File("readme", "y")});
  EXPECT_EQ(RingBufferImporter().sniff(bare, ""), Match::kNo);
  EXPECT_FALSE(ImportTrace(RingBufferImporter(), bare).status.ok());
}

TEST(RingBuffer, CutAnywhereDoesNoHarm) {
  const std::string pages = TwoPages();
  for (size_t size = 0; size < pages.size(); size += size % 4096 < 400 ? 1 : 101) {
    const ImportedTrace imported = ImportTrace(RingBufferImporter(), Folder(pages.substr(0, size)));
    if (imported.status.ok()) {
      ASSERT_EQ(imported.Problem(), "") << size;
    }
  }
}

TEST(RingBuffer, ReadsRealPagesOfSchedViz) {
  const std::string path =
      CULPRIT_SOURCE_DIR "/../shared/data/ftrace-text/schedviz-raw-pages.tar.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  auto sources = OpenSources(path);
  ASSERT_EQ(sources.size(), 1u);
  ASSERT_TRUE(sources[0].ok());
  EXPECT_EQ(RingBufferImporter().sniff(sources[0].value(), ""), Match::kCertain);
  const ImportedTrace imported = ImportTrace(RingBufferImporter(), sources[0].value());
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_TRUE(imported.diagnostics.empty());
  EXPECT_EQ(imported.trace.metadata.cpus, 1u);
  EXPECT_EQ(imported.Count(EventKind::kUnwait), 13866u);
  EXPECT_EQ(imported.Count(EventKind::kWait), 11134u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
