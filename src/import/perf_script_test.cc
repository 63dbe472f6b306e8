// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <tuple>

#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/perf_script_line.h"
#include "import/stored_bytes.h"
#include "trace/syscall_operation.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

const std::string kData = CULPRIT_SOURCE_DIR "/../shared/data";

ImportedTrace FromText(const std::string& text) {
  return ImportTrace(PerfScriptImporter(), MemorySource("t", text));
}

constexpr char kSched[] =
    "# hostname : box\n# arch : aarch64\n# nrcpus online : 2\n"
    "Web Content 10/11 [001] 100.000000100: sched:sched_switch: prev_comm=Web Content prev_pid=11 "
    "prev_prio=120 prev_state=S ==> next_comm=b next_pid=20 next_prio=120\n"
    "\tffff800080104564 __schedule ([kernel.kallsyms])\n"
    "\tffff800080104564 __schedule ([kernel.kallsyms])\n"
    "\tffff800080104568 schedule+0x10 ([kernel.kallsyms])\n"
    "\t    7f81ee50c5d7 _ZN1a1bEv (inlined)\n"
    "\t    7f81ee50c5d7 c(int) (/lib/libx.so)\n"
    "\n"
    "b 20/20 [001] 100.000000200: sched:sched_waking: comm=Web Content pid=11 prio=120 "
    "target_cpu=001\n"
    "\n"
    "b 20/20 [001] 100.000000300: raw_syscalls:sys_enter: NR 63 (0, 0)\n"
    "b 20/20 [001] 100.000000400: raw_syscalls:sys_exit: NR 63 = -11\n"
    "b 20/20 [001] 100.000000500: sched:sched_switch: b:20 [120] R ==> Web Content:11 [120]\n";

TEST(PerfScript, ReadsEveryDialectOfHeads) {
  struct Case {
    std::string line;
    std::string comm;
    int64_t pid;
    int64_t tid;
    int cpu;
    int64_t time_ns;
    int64_t period;
    std::string event;
  };
  const std::vector<Case> cases = {{"noploop 21796 [001] 1410597.984841: instructions: ", "noploop",
                                    -1, 21796, 1, 1410597984841000, -1, "instructions"},
                                   {"dd 29776 666709.771979:   10101010 cpu-clock: ", "dd", -1,
                                    29776, 65535, 666709771979000, 10101010, "cpu-clock"},
                                   {"iperf 27409/28744 [000] 441995.133575: cpu-clock: ", "iperf",
                                    27409, 28744, 0, 441995133575000, -1, "cpu-clock"},
                                   {"a 12 b 34 5/6 [002] d..2. 1.5: 7 cycles:u: ", "a 12 b 34", 5,
                                    6, 2, 1500000000, 7, "cycles:u"},
                                   {"x :-1 -1/-1 [000] 1.000000001: sched:sched_switch: y", "x :-1",
                                    -1, -1, 0, 1000000001, -1, "sched:sched_switch"},
                                   {"p 7/8 [000] 2.0: PERF_RECORD_FORK(9:9):(7:8)", "p", 7, 8, 0,
                                    2000000000, -1, "PERF_RECORD_FORK"}};
  for (const Case& each : cases) {
    const auto head = ParsePerfScriptHead(each.line, true);
    ASSERT_TRUE(head) << each.line;
    EXPECT_EQ(head->comm, each.comm);
    EXPECT_EQ(head->pid, each.pid);
    EXPECT_EQ(head->tid, each.tid);
    EXPECT_EQ(head->cpu, each.cpu);
    EXPECT_EQ(head->time_ns, each.time_ns);
    EXPECT_EQ(head->period.value_or(-1), each.period);
    EXPECT_EQ(head->event, each.event);
  }
  EXPECT_FALSE(ParsePerfScriptHead("java 3244 cpu-clock: ", true));
  EXPECT_EQ(ParsePerfScriptHead("java 3244 cpu-clock: ", false)->event, "cpu-clock");
  EXPECT_FALSE(ParsePerfScriptHead("  => 12 [000] 1.5", true));
  EXPECT_FALSE(IsTracepoint("cycles:ppp"));
  EXPECT_FALSE(IsTracepoint("cpu-clock/freq=1000/"));
  EXPECT_TRUE(IsTracepoint("sched:sched_switch"));
  EXPECT_EQ(BaseEvent("cpu_core/cycles/u"), "cycles");
  EXPECT_EQ(BaseEvent("cpu-clock/freq=1000/"), "cpu-clock");
}

TEST(PerfScript, ReadsSourceLinesAndSamplesWithoutAnEvent) {
  for (const std::string text :
       {"sh 304 25507.429023: \n\tffff8000802f70c0 el0_svc\n\t 10794 main\n\n"
        "sh 304 25507.430023: \n\tffff8000802f70c0 el0_svc\n\t 10794 main\n\n",
        "sh 304 25507.429023:     250000 cpu-clock: \n"
        "\tffff8000802f70c0 el0_svc+0x13c ([kernel.kallsyms])\n  [kernel.kallsyms][ffff80008]\n"
        "\t           10794 main+0xe4 (/bin/sh)\n  rseq-internal.h:65\n\n"
        "sh 304 25507.430023:     250000 cpu-clock: \n"
        "\tffff8000802f70c0 el0_svc+0x13c ([kernel.kallsyms])\n  [kernel.kallsyms][ffff80008]\n"
        "\t           10794 main+0xe4 (/bin/sh)\n  rseq-internal.h:65\n\n"}) {
    const Source source = MemorySource("t", text);
    EXPECT_NE(PerfScriptImporter().sniff(source, text), Match::kNo) << text;
    const ImportedTrace imported = ImportTrace(PerfScriptImporter(), source);
    EXPECT_EQ(imported.CountStacked(EventKind::kRunning), 2u) << text;
    EXPECT_TRUE(imported.diagnostics.empty()) << text;
    for (const trace::Event& event : imported.trace.events) {
      const std::string stack = imported.Stack(event.stack);
      EXPECT_TRUE(stack.ends_with("el0_svc")) << stack;
      EXPECT_NE(stack.find("main"), std::string::npos) << stack;
    }
  }
}

TEST(PerfScript, SwitchesWakingsAndCallsBecomeEvents) {
  const ImportedTrace imported = FromText(kSched);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(imported.trace.metadata.machine, "box");
  EXPECT_EQ(imported.trace.metadata.cpus, 2u);
  EXPECT_EQ(imported.Count(EventKind::kUnwait), 1u);
  ASSERT_EQ(imported.Count(EventKind::kSyscall), 1u);
  for (const trace::Event& event : imported.trace.events) {
    if (event.kind == EventKind::kWait && event.dur_ns == 100) {
      EXPECT_EQ(imported.Thread(event.thread).find("Web Content"), 0u);
      EXPECT_EQ(imported.Stack(event.stack),
                "libx.so!c(int);libx.so!a::b();[kernel]!schedule;[kernel]!__schedule");
    }
    if (event.kind == EventKind::kSyscall) {
      EXPECT_EQ(event.arg0, 63);
      EXPECT_EQ(event.arg1, -11);
      EXPECT_EQ(event.dur_ns, 100);
    }
  }
}

TEST(PerfScript, OfSeveralEventsOneIsTime) {
  const ImportedTrace imported = FromText(
      "a 1 [000] 1.0: instructions: \n\t993 f (/a)\n\na 1 [000] 1.1: 2000000 cpu-clock: \n\t993 f "
      "(/a)\n\na 1 [000] 1.2: instructions: \n\t993 f (/a)\n");
  EXPECT_EQ(imported.Count(EventKind::kRunning), 1u);
  EXPECT_EQ(imported.trace.metadata.sample_period_ns, 2'000'000);
  EXPECT_EQ(imported.Counted("sample of another event than cpu-clock"), 2u);
}

TEST(PerfScript, InterruptsAreNotTheInterruptedThread) {
  const std::string wake = " [000] 1.000002: sched:sched_waking: comm=w pid=9 prio=120 cpu=0\n";
  const std::string text =
      "w 9/9 [000] 1.000001: sched:sched_switch: w:9 [120] S ==> a:1 [120]\n\na 1/1" + wake +
      "\tffff8000800c7214 try_to_wake_up ([kernel.kallsyms])\n"
      "\tffff8000800c7215 hrtimer_wakeup ([kernel.kallsyms])\n"
      "\tffff8000800c7216 el1h_64_irq ([kernel.kallsyms])\n"
      "\t         1234 victim (/a)\n\n"
      "a 1/1 [000] 1.000003: sched:sched_switch: a:1 [120] S ==> w:9 [120]\n";
  const ImportedTrace imported = FromText(text);
  for (const trace::Event& event : imported.trace.events) {
    if (event.kind != EventKind::kUnwait) continue;
    EXPECT_EQ(imported.trace.dictionary.threads()[event.thread.value].kind,
              trace::ThreadKind::kDevice);
    EXPECT_EQ(imported.Stack(event.stack).find("victim"), std::string::npos);
  }
}

TEST(PerfScript, TruncatedAnywhereItStillKeepsAccount) {
  const std::string whole = kSched;
  for (size_t size = 0; size < whole.size(); ++size) {
    const ImportedTrace imported = FromText(whole.substr(0, size));
    if (imported.status.ok() && imported.trace.metadata.has_switches) {
      EXPECT_EQ(imported.Problem(), "") << size;
    }
  }
}

TEST(PerfScript, RecognisesItsTextAndNoOther) {
  const Importer importer = PerfScriptImporter();
  const auto sniff = [&](const std::string& text) {
    return importer.sniff(MemorySource("t", text), text);
  };
  EXPECT_EQ(sniff(kSched), Match::kLikely);
  EXPECT_EQ(sniff("java 3244 cpu-clock: \n\t7f1e f (/l)\n"), Match::kMaybe);
  EXPECT_EQ(sniff("a-1 [000] d..2 1.5: sched_switch: x\n"), Match::kNo);
  EXPECT_EQ(sniff("main;f 12\nmain;g 3\n"), Match::kNo);
  EXPECT_EQ(sniff("# Title\nSome text: with words\n"), Match::kNo);
}

TEST(PerfScript, ReadsRealDialects) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const std::vector<std::pair<std::string, size_t>> files = {
      // Samples of the idle task are not running code.
      {"FlameGraph/test/perf-cycles-instructions-01.txt", 102},
      {"FlameGraph/test/perf-dd-stacks-01.txt", 11},
      {"FlameGraph/test/perf-funcab-cmd-01.txt", 169},
      {"FlameGraph/test/perf-funcab-pid-01.txt", 228},
      {"FlameGraph/test/perf-iperf-stacks-pidtid-01.txt", 201},
      {"FlameGraph/test/perf-java-stacks-02.txt", 2},
      {"FlameGraph/test/perf-js-stacks-01.txt", 2},
      {"FlameGraph/test/perf-rust-Yamakaky-dcpu.txt", 58},
      {"FlameGraph/test/perf-vertx-stacks-01.txt", 286},
      {"speedscope/simple-with-header.linux-perf.txt", 136},
      {"speedscope/simple-with-pid.linux-perf.txt", 137},
      {"speedscope/rust-mangled.linux-perf.txt", 96}};
  for (const auto& [file, samples] : files) {
    const auto sources = OpenSources(kData + "/perf-script/" + file);
    ASSERT_TRUE(sources.front().ok()) << file;
    const ImportedTrace imported = ImportTrace(PerfScriptImporter(), sources.front().value());
    ASSERT_TRUE(imported.status.ok()) << file;
    EXPECT_EQ(imported.Count(EventKind::kRunning), samples) << file;
    EXPECT_EQ(imported.Counted("line that perf script does not write"), 0u) << file;
  }
}

TEST(PerfScript, CallsHaveTheirOperationWhereTheMachineIsKnown) {
  const std::string text =
      "b 20/20 [001] 100.000000300: raw_syscalls:sys_enter: NR 98 (ffff9a20, 81, 1, 0, 0, 0)\n"
      "b 20/20 [001] 100.000000400: raw_syscalls:sys_exit: NR 98 = 1\n";
  for (const bool known : {false, true}) {
    const ImportedTrace imported = FromText((known ? "# arch : aarch64\n" : "") + text);
    ASSERT_EQ(imported.Count(EventKind::kSyscall), 1u);
    for (const trace::Event& event : imported.trace.events) {
      if (event.kind != EventKind::kSyscall) continue;
      EXPECT_EQ(trace::CallNumber(event.arg0), 98);
      EXPECT_EQ(trace::CallOperation(event.arg0), known ? std::optional(1U) : std::nullopt);
      EXPECT_EQ(event.dur_ns, 100);
    }
  }
}

using Row = std::tuple<int64_t, int64_t, int, int64_t, int64_t, uint16_t, int, int64_t, int64_t>;

std::vector<Row> Rows(const ImportedTrace& imported) {
  const auto& threads = imported.trace.dictionary.threads();
  const auto tid = [&](trace::ThreadId id) { return id.valid() ? threads[id.value].tid : -2; };
  std::vector<Row> rows;
  for (const trace::Event& event : imported.trace.events) {
    // Text does not say of which machine it is, so it has no operations of calls.
    const int64_t number = trace::CallNumber(event.arg0);
    rows.emplace_back(event.time_ns, event.dur_ns, static_cast<int>(event.kind), tid(event.thread),
                      tid(event.peer), event.cpu, event.flags, number, event.arg1);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// perf's own text of a recording must give what the recording gives. Text lacks
// records of exits and forks and the interrupt flags of events without stacks,
// which concern a few events at the ends of threads.
TEST(PerfScript, TextAndDataOfARecordingAgree) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  constexpr size_t kMayDiffer = 16;
  for (const std::string each :
       {"httpd-2.2.3-37680/normal.trace", "httpd-2.2.3-37680/buggy.trace",
        "redis-7.0.15-watch/normal.trace", "redis-7.0.15-watch/buggy.trace",
        "sqlite-3.40-autocommit-fsync/normal.trace", "sqlite-3.40-autocommit-fsync/buggy.trace",
        "postgresql-15-notify-convoy/buggy.sched"}) {
    const auto text = OpenSources(kData + "/bugs/" + each + ".txt.zst");
    const auto data = OpenSources(kData + "/bugs/" + each + ".data.zst");
    ASSERT_TRUE(text.front().ok() && data.front().ok()) << each;
    const ImportedTrace from_text = ImportTrace(PerfScriptImporter(), text.front().value());
    const ImportedTrace from_data =
        ImportTrace(PerfDataImporter(), data.front().value(), {.symbols = false});
    ASSERT_TRUE(from_text.status.ok() && from_data.status.ok()) << each;
    EXPECT_EQ(from_text.Problem(), "") << each;
    const std::vector<Row> ours = Rows(from_text);
    const std::vector<Row> theirs = Rows(from_data);
    std::vector<Row> different;
    std::set_symmetric_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                                  std::back_inserter(different));
    EXPECT_LE(different.size(), kMayDiffer) << each << " of " << ours.size();
  }
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
