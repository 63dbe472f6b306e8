// SPDX-License-Identifier: Apache-2.0
#include "import/import_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/glob.h"
#include "import/stored_bytes.h"
#include "trace/trace_reader.h"

namespace culprit::import_::TEST_FILE {
namespace {

const std::string kData = CULPRIT_SOURCE_DIR "/../shared/data/";

std::string NewPath() {
  static int serial = 0;
  return (std::filesystem::temp_directory_path() /
          ("culprit-run-" + std::to_string(::getpid()) + "-" + std::to_string(++serial)))
      .string();
}

TEST(ImportRun, FormatNamesAreDistinct) {
  std::set<std::string_view> names;
  for (const Importer& importer : Importers()) {
    EXPECT_TRUE(names.insert(importer.name).second) << importer.name;
    EXPECT_FALSE(importer.summary.empty());
  }
  EXPECT_GE(names.size(), 10u);
}

TEST(ImportRun, UnknownInputSaysHowItBegins) {
  const auto chosen = ChooseImporter(MemorySource("x",
                                                  "\x7f"
                                                  "ELF\x02\x01"),
                                     "");
  ASSERT_FALSE(chosen.ok());
  EXPECT_NE(chosen.error().message.find("7f 45 4c 46 02 01 '.ELF..'"), std::string::npos);
  EXPECT_NE(chosen.error().hint.find("perf-script"), std::string::npos);
  EXPECT_NE(ChooseImporter(MemorySource("x", ""), "").error().message.find("empty"),
            std::string::npos);
}

TEST(ImportRun, CountsWhatItImported) {
  const std::string path = NewPath();
  const auto outcome =
      ImportOne(MemorySource("offcpu", "a;f;schedule 5\nb;f;g;schedule 7\n"), {}, path);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().format, "folded");
  EXPECT_EQ(outcome.value().events, 2u);
  EXPECT_EQ(outcome.value().threads, 2u);
  EXPECT_EQ(outcome.value().stacks, 2u);
  EXPECT_EQ(outcome.value().waits, 2u);
  EXPECT_EQ(outcome.value().waits_with_waker, 0u);
  std::filesystem::remove(path);
}

TEST(ImportRun, AFailureLeavesNothing) {
  const std::string path = NewPath();
  EXPECT_FALSE(ImportOne(MemorySource("x", "nothing"), {.format = "strace"}, path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(InstanceRule, GlobsMatchAsPeopleExpect) {
  EXPECT_TRUE(MatchesGlob("*!PeekMessage*", "user32.dll!PeekMessageW"));
  EXPECT_TRUE(MatchesGlob("[ext4]!*", "[ext4]!ext4_sync"));
  EXPECT_TRUE(MatchesGlob("a?c", "abc"));
  EXPECT_TRUE(MatchesGlob("*a*b", "xxaxxbxb"));
  EXPECT_TRUE(MatchesGlob("**", ""));
  EXPECT_FALSE(MatchesGlob("a?c", "ac"));
  EXPECT_FALSE(MatchesGlob("*a", "ab"));
  EXPECT_FALSE(MatchesGlob("", "x"));
}

TEST(InstanceRule, ParsesItsTwoForms) {
  const auto whole = ParseInstanceRule("Load page: process chrome*");
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole.value().scenario, "Load page");
  EXPECT_EQ(whole.value().process, "chrome*");
  const auto call = ParseInstanceRule("Startup: process-start app .. call *!PeekMessage*");
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call.value().process, "app");
  EXPECT_EQ(call.value().call, "*!PeekMessage*");
  for (const std::string_view bad :
       {"", "x", "x: ", "x: process", ": process a", "x: process-start a", "x: thread a",
        "x: process-start a .. call", "x: process-start a .. jump b"}) {
    EXPECT_FALSE(ParseInstanceRule(bad).ok()) << bad;
  }
}

// What each real input is taken for; nothing may be taken for something else.
TEST(ImportRun, RecognisesRealInputs) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"bugs/redis-7.0.15-watch/buggy.trace.data.zst", "perf.data"},
      {"bugs/redis-7.0.15-watch/buggy.trace.txt.zst", "perf-script"},
      {"bugs/redis-7.0.15-watch/README.md", ""},
      {"bugs/redis-7.0.15-watch/buggy.func_syscalls.tsv", ""},
      {"bugs/redis-7.0.15-watch/scaling.txt", ""},
      {"bugs/postgresql-15-notify-convoy/notify.sql", ""},
      {"ftrace-text/catapult-android-systrace.html", "ftrace-text"},
      {"ftrace-text/incubator-ftrace_syscalls.txt", "ftrace-text"},
      {"ftrace-text/lisa-trace.txt", "ftrace-text"},
      {"folded/inferno-example.folded", "folded"},
      {"folded/simpleperf-offcpu.folded", "folded"},
      {"perf-script/ms-linux-tools.txt", "perf-script"},
      {"perf-script/FlameGraph/example-perf-stacks.txt.gz", "perf-script"},
      {"perf-script/FlameGraph/test/perf-js-stacks-01.txt", "perf-script"},
      {"syscalls/perfview-dotnet-info.strace.zip", "strace"},
      {"syscalls/falco-container.scap", "scap"},
      {"uftrace/redis", "uftrace"},
      {"etw/airbus-shutdown.etl", "etl"}};
  for (const auto& [file, format] : inputs) {
    const auto sources = OpenSources(kData + file);
    ASSERT_TRUE(sources.front().ok()) << file;
    const auto chosen = ChooseImporter(sources.front().value(), "");
    EXPECT_EQ(chosen.ok() ? chosen.value()->name : "", format) << file;
  }
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
