// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

ImportedTrace FromText(const std::string& name, const std::string& text) {
  return ImportTrace(FoldedImporter(), MemorySource(name, text));
}

TEST(Folded, ValuesAreSamples) {
  const ImportedTrace imported =
      FromText("cpu.folded", "java-7/9;main;libc.so.6`read;sys_read_[k] 3\njava-7/9;main 2\n");
  ASSERT_TRUE(imported.status.ok());
  ASSERT_EQ(imported.Count(EventKind::kRunning), 2u);
  const trace::Event& first = imported.trace.events[0];
  EXPECT_EQ(first.dur_ns, 3'000'000);
  EXPECT_EQ(imported.Stack(first.stack), "main;libc.so.6!read;[kernel]!sys_read");
  EXPECT_EQ(imported.trace.dictionary.threads()[first.thread.value].tid, 9);
  EXPECT_FALSE(imported.trace.metadata.has_switches);
}

TEST(Folded, ValuesMayHaveAnExponent) {
  const std::string text = "a;f 1.5e3\na;g 2E+2\na;h 5e-1\na;i 7\n";
  const Source source = MemorySource("x", text);
  EXPECT_NE(FoldedImporter().sniff(source, text), Match::kNo);
  const ImportedTrace imported = ImportTrace(FoldedImporter(), source);
  std::map<std::string, int64_t> dur_ns;
  for (const trace::Event& event : imported.trace.events) {
    dur_ns[imported.Stack(event.stack)] = event.dur_ns;
  }
  EXPECT_EQ(dur_ns,
            (std::map<std::string, int64_t>{
                {"f", 1'500'000'000}, {"g", 200'000'000}, {"h", 500'000}, {"i", 7'000'000}}));
  EXPECT_EQ(FromText("x", "a;f 1e999\na;g 3\n").Count(EventKind::kRunning), 1u);
}

TEST(Folded, OffCpuStacksAreWaits) {
  const ImportedTrace by_name = FromText("x.offcpu.folded", "a;f;g 5\nb;f 7\na;h 1\n");
  EXPECT_EQ(by_name.Count(EventKind::kWait), 3u);
  EXPECT_EQ(by_name.Problem(), "");
  EXPECT_EQ(by_name.trace.events[0].dur_ns % 1000, 0);
  const ImportedTrace by_leaf = FromText("x", "a;f;schedule 5\nb;f;__schedule_[k] 7\n");
  EXPECT_EQ(by_leaf.Count(EventKind::kWait), 2u);
  const ImportedTrace in_ns = FromText("offcpu", "a;f 900000001\n");
  EXPECT_EQ(in_ns.trace.events[0].dur_ns, 900'000'001);
  const ImportedTrace settled = FromText("offcpu", "# unit: ms\na;f 3\n");
  EXPECT_EQ(settled.trace.events[0].dur_ns, 3'000'000);
}

TEST(Folded, BadLinesAreCounted) {
  const ImportedTrace imported = FromText("x", "a;b 1\nno value here\na;b 99999999999999999\n");
  EXPECT_EQ(imported.Counted("line that is no folded stack"), 1u);
  EXPECT_EQ(imported.Counted("stack with a value beyond all time"), 1u);
  EXPECT_EQ(imported.trace.events.size(), 1u);
}

TEST(Folded, RecognisesOnlyFoldedStacks) {
  const Importer importer = FoldedImporter();
  const auto sniff = [&](const std::string& text) {
    return importer.sniff(MemorySource("t", text), text);
  };
  EXPECT_EQ(sniff("a;b 1\na;c 2\n"), Match::kLikely);
  EXPECT_EQ(sniff("a 1\nb 2\n"), Match::kNo);
  EXPECT_EQ(sniff("begin; insert 1\nselect x;\ncommit;\n"), Match::kNo);
  EXPECT_EQ(sniff(""), Match::kNo);
}

TEST(Folded, ReadsRealOnes) {
  const std::string folder = CULPRIT_SOURCE_DIR "/../shared/data/folded/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const auto cpu = OpenSources(folder + "inferno-example.folded");
  const ImportedTrace running = ImportTrace(FoldedImporter(), cpu.front().value());
  EXPECT_EQ(running.Count(EventKind::kRunning), 710u);
  const auto off = OpenSources(folder + "simpleperf-offcpu.folded");
  const ImportedTrace waiting = ImportTrace(FoldedImporter(), off.front().value());
  EXPECT_EQ(waiting.Count(EventKind::kWait), 41u);
  EXPECT_EQ(waiting.Problem(), "");
  EXPECT_EQ(waiting.trace.metadata.properties.at("folded.unit"), "ns, guessed");
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
