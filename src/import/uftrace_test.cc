// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/test_folder.h"
#include "import/import_run.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"
#include "import/text_scan.h"
#include "import/uftrace_builder.h"
#include "import/uftrace_symbols.h"
#include "import/uftrace_tasks.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

ImportedTrace Import(const UftraceBuilder& data) {
  return ImportTrace(UftraceImporter(), data.Build(), {.symbols = false});
}

// One line an event: kind, thread, begin, duration, stack.
std::string Summary(const ImportedTrace& imported) {
  std::vector<Event> events = imported.trace.events;
  trace::SortByTime(events);
  std::string text;
  for (const Event& event : events) {
    text += std::string(trace::Name(event.kind)) + " " + std::to_string(event.time_ns) + "+" +
            std::to_string(event.dur_ns) + " " + imported.Thread(event.thread) + " " +
            imported.Stack(event.stack) + "\n";
  }
  return text;
}

TEST(Uftrace, CallsNestAndWaitsHaveTheirFunctions) {
  const ImportedTrace imported = Import(SmallUftrace());
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(Summary(imported),
            "running 950+350 app/main task (10) \n"
            "call 1000+1100 app/main task (10) app!main\n"
            "call 1100+900 app/main task (10) app!main;app!work\n"
            "call 1200+700 app/main task (10) app!main;app!work;app!leaf\n"
            "wait 1300+550 app/main task (10) app!main;app!work;app!leaf\n"
            "running 1400+250 app/app (11) \n"
            "call 1600+100 app/app (11) [truncated];app!work\n"
            "ready 1650+30 app/app (11) [truncated];app!work\n"
            "running 1680+150 app/app (11) \n"
            "running 1850+250 app/main task (10) \n");
  EXPECT_EQ(imported.Counted("record lost by the recorder"), 7u);
  EXPECT_EQ(imported.Counted("function exit without its entry"), 1u);
  EXPECT_EQ(imported.diagnostics.rows().size(), 2u);
  EXPECT_TRUE(imported.trace.metadata.has_switches);
  EXPECT_EQ(imported.trace.metadata.machine, "host-a");
  EXPECT_EQ(imported.trace.metadata.arch, "aarch64");
  EXPECT_EQ(imported.trace.metadata.kernel, "6.1.0");
  EXPECT_EQ(imported.trace.metadata.source, "uftrace v0.13");
}

TEST(Uftrace, WithoutPerfFilesThereAreOnlyCalls) {
  UftraceBuilder data = SmallUftrace();
  data.files.erase("perf-cpu0.dat");
  data.files.erase("perf-cpu1.dat");
  const ImportedTrace imported = Import(data);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_FALSE(imported.trace.metadata.has_switches);
  EXPECT_EQ(imported.trace.events.size(), 4u);
  EXPECT_EQ(imported.trace.metadata.begin_ns, 1000);
  EXPECT_EQ(imported.trace.metadata.end_ns, 2100);
}

TEST(Uftrace, AnEntryEndsWhatIsNotAboveIt) {
  UftraceBuilder data;
  data.Entry(10, 1000, 0, UftraceBuilder::kMain);
  data.Entry(10, 1100, 1, UftraceBuilder::kWork);
  data.Entry(10, 1200, 2, UftraceBuilder::kLeaf);
  data.Entry(10, 1300, 1, UftraceBuilder::kLeaf);  // longjmp to main
  data.Exit(10, 1400, 0, UftraceBuilder::kMain);
  const ImportedTrace imported = Import(data);
  EXPECT_EQ(Summary(imported),
            "call 1000+400 app/app (10) app!main\n"
            "call 1100+200 app/app (10) app!main;app!work\n"
            "call 1200+100 app/app (10) app!main;app!work;app!leaf\n"
            "call 1300+100 app/app (10) app!main;app!leaf\n");
  EXPECT_EQ(imported.Counted("function entry without its exit"), 3u);
}

TEST(Uftrace, DamagedRecordsAreSkippedAndCounted) {
  UftraceBuilder data;
  data.Entry(10, 1000, 0, UftraceBuilder::kMain);
  data.files["10.dat"] += std::string(40, '\xee');
  data.Entry(10, 1100, 1, UftraceBuilder::kWork);
  data.Exit(10, 1200, 1, UftraceBuilder::kWork);
  data.Exit(10, 1300, 0, UftraceBuilder::kMain);
  data.files["10.dat"] += "cut";
  data.Perf(0, kRecordSwitch, 0, 10, uint64_t{1} << 62);
  data.files["perf-cpu0.dat"] += "cut";
  const ImportedTrace imported = Import(data);
  EXPECT_EQ(imported.Count(EventKind::kCall), 2u);
  EXPECT_EQ(imported.Counted("damaged record, skipped to the next"), 1u);
  EXPECT_EQ(imported.Counted("file ends inside a record"), 1u);
  EXPECT_EQ(imported.Counted("record of perf at an impossible time"), 1u);
  EXPECT_EQ(imported.Counted("damaged record of perf, the rest of its file is not read"), 1u);
}

TEST(Uftrace, FunctionsWithoutSymbolsKeepModuleAndOffset) {
  UftraceBuilder data;
  data.files.erase("app.sym");
  data.Entry(10, 1000, 0, UftraceBuilder::kMain);
  data.Entry(10, 1100, 1, 0x1234);
  const ImportedTrace imported = Import(data);
  EXPECT_EQ(Summary(imported),
            "call 1000+100 app/app (10) app!+0x1008\n"
            "call 1100+0 app/app (10) app!+0x1008;[unknown]!+0x1234\n");
  EXPECT_EQ(imported.Counted("function of a module without a list of its symbols"), 1u);
  EXPECT_EQ(imported.Counted("function outside of all known modules"), 1u);
  EXPECT_EQ(imported.trace.events.front().flags & trace::kUnfinished, trace::kUnfinished);
}

TEST(Uftrace, AProcessRunsItsParentsProgramUntilItsOwn) {
  Diagnostics diagnostics;
  const UftraceTasks tasks(
      "SESS timestamp=1.000000000 pid=10 sid=a exename=\"/bin/my app\"\n"
      "TASK timestamp=1.100000000 tid=10 pid=10\n"
      "FORK timestamp=2.000000000 pid=20 ppid=10\n"
      "SESS timestamp=3.000000000 pid=20 sid=b exename=\"/bin/b\"\n"
      "DLOP timestamp=3.5 tid=10 sid=a base=ffff9000 libname=\"/lib/x.so\"\n"
      "what is this\n",
      diagnostics);
  EXPECT_EQ(tasks.RunOf(10, 0).program->path, "/bin/my app");
  EXPECT_EQ(tasks.RunOf(20, 2'500'000'000).program->sid, "a");
  EXPECT_EQ(tasks.RunOf(20, 2'500'000'000).until_ns, 3'000'000'000);
  EXPECT_EQ(tasks.RunOf(20, 3'500'000'000).program->sid, "b");
  EXPECT_EQ(tasks.libraries().front().base, 0xffff9000u);
  EXPECT_EQ(diagnostics.total(), 1u);
}

TEST(Uftrace, SymbolsEndWhereTheNextBegins) {
  const UftraceSymbolFile file(
      "# path name: /bin/app\n0000000000001000 00000010 T sized\n0000000000002000 T open\n"
      "0000000000002100 d data\n0000000000003000 00000010 T operator new(unsigned long)\n");
  EXPECT_EQ(file.path(), "/bin/app");
  EXPECT_EQ(file.Find(0x100f)->name, "sized");
  EXPECT_EQ(file.Find(0x1010), nullptr);
  EXPECT_EQ(file.Find(0x20ff)->name, "open");
  EXPECT_EQ(file.Find(0x2100), nullptr);
  EXPECT_EQ(file.Find(0x3000)->name, "operator new(unsigned long)");
  EXPECT_EQ(file.Find(0x3010), nullptr);
}

TEST(Uftrace, IsKnownByItsInfoFile) {
  const Source folder = UftraceBuilder().Build();
  EXPECT_EQ(UftraceImporter().sniff(folder, {}), Match::kCertain);
  const std::string info = UftraceBuilder().files.at("info");
  const Source alone = MemorySource("info", info);
  EXPECT_EQ(UftraceImporter().sniff(alone, info), Match::kLikely);
  EXPECT_FALSE(ImportTrace(UftraceImporter(), alone).status.ok());
}

// ---- against uftrace itself ----

std::string Output(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[65536];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, count);
  ::pclose(pipe);
  return text;
}

bool HasUftrace() { return !Output("uftrace --version").empty(); }

// "tid begin+duration function", sorted, from `uftrace dump`:
//   12.000000100   10: [entry] main(aaaab7570b6c) depth: 0
// Whatever does not pair up plainly is left out.
std::vector<std::string> DumpedCalls(const std::string& folder) {
  std::istringstream lines(Output("uftrace dump --demangle=no -d '" + folder + "'"));
  std::vector<std::string> calls;
  std::map<std::string, std::vector<std::pair<int64_t, std::string>>> open;  // by tid
  for (std::string text; std::getline(lines, text);) {
    std::string_view line = text;
    const auto time_ns = ParseSecondsNs(TakeToken(line));
    const std::string tid(TakeToken(line));
    const bool entry = line.starts_with("[entry]");
    if (!time_ns || (!entry && !line.starts_with("[exit ]"))) continue;
    const std::string_view rest = line.substr(8);
    const std::string name(rest.substr(0, rest.rfind('(')));
    auto& stack = open[tid];
    if (entry) {
      stack.emplace_back(*time_ns, name);
    } else if (!stack.empty() && stack.back().second == name) {
      calls.push_back(tid + " " + std::to_string(stack.back().first) + "+" +
                      std::to_string(*time_ns - stack.back().first) + " " + name);
      stack.pop_back();
    }
  }
  std::sort(calls.begin(), calls.end());
  return calls;
}

// Without the names, which older programs cannot read from newer recordings.
std::vector<std::string> Times(std::vector<std::string> calls) {
  for (std::string& call : calls) call.resize(call.rfind(' '));
  std::sort(calls.begin(), calls.end());
  return calls;
}

std::vector<std::string> ImportedCalls(const ImportedTrace& imported) {
  std::vector<std::string> calls;
  const trace::Dictionary& dictionary = imported.trace.dictionary;
  for (const Event& event : imported.trace.events) {
    if (event.kind != EventKind::kCall || (event.flags & trace::kUnfinished) != 0) continue;
    const trace::FrameId leaf = dictionary.stacks()[event.stack.value].frame;
    calls.push_back(std::to_string(dictionary.threads()[event.thread.value].tid) + ": " +
                    std::to_string(event.time_ns) + "+" + std::to_string(event.dur_ns) + " " +
                    std::string(dictionary.Text(dictionary.frames()[leaf.value].function)));
  }
  std::sort(calls.begin(), calls.end());
  return calls;
}

TEST(Uftrace, ReadsRedis) {
  const std::string path = CULPRIT_SOURCE_DIR "/../shared/data/uftrace/redis";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto sources = OpenSources(path);
  ASSERT_EQ(sources.size(), 1u);
  const Source& source = sources.front().value();
  EXPECT_EQ(ChooseImporter(source, "").value()->name, "uftrace");
  const ImportedTrace imported = ImportTrace(UftraceImporter(), source, {.symbols = false});
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(imported.Count(EventKind::kCall), 71'141u);
  EXPECT_EQ(imported.Counted("function exit without its entry"), 1u);
  EXPECT_EQ(imported.diagnostics.rows().size(), 1u);
  EXPECT_EQ(imported.trace.metadata.app, "redis-server");
  if (!HasUftrace()) GTEST_SKIP() << "no uftrace to compare with";
  EXPECT_EQ(Times(ImportedCalls(imported)), Times(DumpedCalls(path)));
}

constexpr const char* kProgram = R"(
#include <pthread.h>
#include <string.h>
#include <unistd.h>
int leaf(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
int mid(const char* text, int n) { usleep(3000); return leaf(n + strlen(text)); }
int deep(int n) { return n == 0 ? leaf(3) : deep(n - 1) + 1; }
void* worker(void* p) { for (int i = 0; i < 3; i++) mid("a text", 10); return p; }
int main() {
  pthread_t t;
  pthread_create(&t, 0, worker, 0);
  for (int i = 0; i < 5; i++) mid("another", 100);
  deep(4);
  pthread_join(t, 0);
  return 0;
}
)";

TEST(Uftrace, AgreesWithUftraceOnAFreshRecording) {
  if (!HasUftrace()) GTEST_SKIP() << "no uftrace here";
  const TestFolder folder;
  const std::string source_path = folder.Write("app.c", kProgram);
  const std::string program = folder / "app";
  const std::string data = folder / "data";
  // Arguments and return values stand between the records.
  const std::string make = "cc -pg -g -O0 -o '" + program + "' '" + source_path +
                           "' -lpthread && uftrace record -a -d '" + data + "' '" + program + "'";
  (void)Output(make);
  if (!std::filesystem::exists(data + "/info")) GTEST_SKIP() << "uftrace cannot record here";
  const auto sources = OpenSources(data);
  ASSERT_EQ(sources.size(), 1u);
  const ImportedTrace imported =
      ImportTrace(UftraceImporter(), sources.front().value(), {.symbols = false});
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  const std::vector<std::string> calls = ImportedCalls(imported);
  EXPECT_GT(calls.size(), 25u);
  EXPECT_EQ(calls, DumpedCalls(data));
  if (!imported.trace.metadata.has_switches) GTEST_SKIP() << "no perf events here";
  int64_t slept_ns = 0;
  for (const Event& event : imported.trace.events) {
    const bool wait = event.kind == EventKind::kWait;
    if (wait && imported.Stack(event.stack).ends_with("app!main;app!mid;[plt]!usleep")) {
      slept_ns += event.dur_ns;
    }
  }
  EXPECT_GT(slept_ns, 1'000'000);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
