// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "import/ftrace_line.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"
#include "import/tracepoint_text.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

const std::string kData = CULPRIT_SOURCE_DIR "/../shared/data/ftrace-text/";

ImportedTrace FromText(const std::string& text) {
  return ImportTrace(FtraceTextImporter(), MemorySource("t", text));
}

constexpr char kTrace[] =
    "# tracer: nop\n"
    "   Web Content-11 (   10) [001] d..2 5.000001: sched_switch: prev_comm=Web Content "
    "prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=my-app-7 next_pid=20 next_prio=120\n"
    "   Web Content-11 (   10) [001] d..2 5.000001: <stack trace>\n"
    " => __schedule\n => schedule+0x10/0x20\n => ext4_file_write [ext4]\n"
    "   my-app-7-20    (-----) [001] ...1 5.000002: tracing_mark_write: B|20|outer|x\n"
    "   my-app-7-20    (-----) [001] ...1 5.000003: tracing_mark_write: S|20|async|7\n"
    "   my-app-7-20    (-----) [001] d.h3 5.000004: sched_waking: comm=Web Content pid=11 "
    "prio=120 target_cpu=001\n"
    "   my-app-7-20    (-----) [001] ...1 5.000005: tracing_mark_write: E\n"
    "   my-app-7-20    (-----) [001] ...1 5.000006: tracing_mark_write: F|20|async|7\n"
    "   my-app-7-20    (-----) [001] .... 5.000007: sys_read(fd: 3, buf: 0)\n"
    "   my-app-7-20    (-----) [001] .... 5.000009: sys_read -> 0xfffffffffffffff5\n"
    "CPU:1 [LOST 12 EVENTS]\n"
    "   my-app-7-20    (-----) [001] d..2 5.000010: sched_switch: prev_comm=my-app-7 prev_pid=20 "
    "prev_prio=120 prev_state=R+ ==> next_comm=Web Content next_pid=11 next_prio=120\n";

TEST(FtraceText, ReadsLines) {
  const auto line = ParseFtraceLine(
      "   kworker/u8:2 [x]-46 (  12) [003] dNh3 26186.336680: irq_handler_entry: irq=28 name=a");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->comm, "kworker/u8:2 [x]");
  EXPECT_EQ(line->tid, 46);
  EXPECT_EQ(line->tgid, 12);
  EXPECT_EQ(line->cpu, 3);
  EXPECT_EQ(line->flags, 0x08u);
  EXPECT_EQ(line->time_ns, 26186336680000);
  EXPECT_EQ(line->event, "irq_handler_entry");
  EXPECT_EQ(line->payload, "irq=28 name=a");
  EXPECT_FALSE(ParseFtraceLine("a 1/1 [000] 1.5: sched:sched_switch: x"));
  EXPECT_FALSE(ParseFtraceLine("a-1 [000] no time here"));
}

// trace-cmd report -l, and with --ts-diff.
TEST(FtraceText, ReadsTheOtherReportsOfTraceCmd) {
  const auto latency = ParseFtraceLine(
      "trace-cm-86689   3d.h1. 11370.816169: sched_waking:         comm=smbd-notifyd pid=2965");
  ASSERT_TRUE(latency);
  EXPECT_EQ(latency->comm, "trace-cm");
  EXPECT_EQ(latency->tid, 86689);
  EXPECT_EQ(latency->cpu, 3);
  EXPECT_EQ(latency->flags, 0x08u);
  EXPECT_EQ(latency->time_ns, 11370816169000);
  EXPECT_EQ(latency->event, "sched_waking");
  EXPECT_EQ(latency->payload, "comm=smbd-notifyd pid=2965");
  const auto difference = ParseFtraceLine(
      "          <idle>-0     [002]  2084.021502: (+59200) sched_load_se:        cpu=2 load=0");
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->event, "sched_load_se");
  EXPECT_EQ(difference->payload, "cpu=2 load=0");
  EXPECT_FALSE(ParseFtraceLine("2023-01-01 12:00:01.5: something: else"));
  EXPECT_FALSE(ParseFtraceLine("a-1 x 1.5: b: c"));
}

TEST(FtraceText, ReadsStatesOfAllKernels) {
  for (const std::string_view text : {"R", "R+", "0", "4096", "256"}) {
    EXPECT_TRUE(ParsePrevState(text).runnable) << text;
  }
  for (const std::string_view text : {"S", "D", "D|W", "I", "1", "2", "130", "T", "t"}) {
    EXPECT_FALSE(ParsePrevState(text).runnable) << text;
    EXPECT_FALSE(ParsePrevState(text).exiting) << text;
  }
  for (const std::string_view text : {"X", "Z", "x", "64", "16", "32"}) {
    EXPECT_TRUE(ParsePrevState(text).exiting) << text;
  }
}

TEST(FtraceText, StacksMarksAndCallsFindTheirEvents) {
  const ImportedTrace imported = FromText(kTrace);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(imported.Counted("event lost by the recorder"), 12u);
  std::vector<std::string> scenarios;
  for (const trace::Instance& instance : imported.trace.instances) {
    scenarios.emplace_back(imported.trace.dictionary.Text(instance.scenario));
  }
  std::sort(scenarios.begin(), scenarios.end());
  EXPECT_EQ(scenarios, (std::vector<std::string>{"async", "outer|x"}));
  bool found = false;
  for (const trace::Event& event : imported.trace.events) {
    if (event.kind == EventKind::kWait && event.dur_ns == 3000) {
      found = true;
      EXPECT_EQ(imported.Stack(event.stack),
                "[ext4]!ext4_file_write;[kernel]!schedule;[kernel]!__schedule");
    }
    if (event.kind == EventKind::kUnwait) {  // the flags say: in a hard interrupt
      EXPECT_EQ(imported.trace.dictionary.threads()[event.thread.value].kind,
                trace::ThreadKind::kDevice);
    }
    if (event.kind == EventKind::kSyscall) {
      EXPECT_EQ(event.arg0, 0);  // x86-64 by default
      EXPECT_EQ(event.arg1, -11);
      EXPECT_EQ(event.dur_ns, 2000);
    }
  }
  EXPECT_TRUE(found);
}

TEST(FtraceText, ReadsSystraceStrings) {
  const ImportedTrace imported = FromText(
      "<!DOCTYPE html>\n<script>var linuxPerfData = \"\\\n"
      "  a-1   [000] 1.000000: sched_switch: prev_comm=a prev_pid=1 prev_prio=1 prev_state=S ==> "
      "next_comm=b\\'s next_pid=2 next_prio=1\\n\\\n"
      "  b's-2   [000] 1.000010: sched_wakeup: comm=a pid=1 prio=1 success=1 target_cpu=000\\n\\\n"
      "</script>\n");
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(imported.Count(EventKind::kUnwait), 1u);
  EXPECT_EQ(imported.Thread(trace::ThreadId(1)).find("b's"), 0u);
}

TEST(FtraceText, TruncatedAnywhereItStillKeepsAccount) {
  const std::string whole = kTrace;
  for (size_t size = 0; size < whole.size(); ++size) {
    const ImportedTrace imported = FromText(whole.substr(0, size));
    if (imported.status.ok() && imported.trace.metadata.has_switches) {
      EXPECT_EQ(imported.Problem(), "") << size;
    }
  }
}

TEST(FtraceText, RecognisesItsText) {
  const Importer importer = FtraceTextImporter();
  const auto sniff = [&](const std::string& text) {
    return importer.sniff(MemorySource("t", text), text);
  };
  EXPECT_EQ(sniff(kTrace), Match::kCertain);
  EXPECT_EQ(sniff("cpus=6\n  sh-1642  [002]    76.211696: sched_wakeup:  comm=k pid=46\n"
                  "  sh-1642  [002]    76.211697: sched_wakeup:  comm=k pid=46\n"),
            Match::kLikely);
  EXPECT_EQ(sniff("a 1/1 [000] 1.5: sched:sched_switch: x\n"), Match::kNo);
  EXPECT_EQ(sniff("<!DOCTYPE html><body>hello</body>"), Match::kNo);
}

// Every wake-up line must be an unwait; lines counted with grep.
TEST(FtraceText, ReadsRealTraces) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const std::vector<std::pair<std::string, size_t>> files = {
      {"catapult-android-systrace.html", 6827},
      {"incubator-atrace-test", 1540},
      {"incubator-trace-critical-path", 12},
      {"incubator-trace-android-sched-irq-syscall", 5},
      {"lisa-trace.txt", 1068}};
  for (const auto& [file, wakings] : files) {
    const auto sources = OpenSources(kData + file);
    ASSERT_TRUE(sources.front().ok()) << file;
    const ImportedTrace imported = ImportTrace(FtraceTextImporter(), sources.front().value());
    ASSERT_TRUE(imported.status.ok()) << file;
    EXPECT_EQ(imported.Problem(), "") << file;
    EXPECT_EQ(imported.Count(EventKind::kUnwait), wakings) << file;
    EXPECT_EQ(imported.Counted("event whose fields could not be read"), 0u) << file;
  }
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
