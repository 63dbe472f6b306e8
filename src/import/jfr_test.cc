// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/test_folder.h"
#include "base/text.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/jfr_builder.h"
#include "import/jfr_pools.h"
#include "import/stored_bytes.h"
#include "import/text_scan.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

ImportedTrace FromBytes(const std::string& bytes) {
  return ImportTrace(JfrImporter(), MemorySource("t.jfr", bytes));
}

// One line an event: kind, time, duration, thread, who ended it, stack.
std::string Summary(const ImportedTrace& imported) {
  std::vector<Event> events = imported.trace.events;
  trace::SortByTime(events);
  std::string text;
  for (const Event& event : events) {
    text += std::string(trace::Name(event.kind)) + " " +
            std::to_string(event.time_ns - JfrBuilder::kStartNs) + "+" +
            std::to_string(event.dur_ns) + " " + imported.Thread(event.thread) + " " +
            imported.Thread(event.peer) + " " + imported.Stack(event.stack) + "\n";
  }
  return text;
}

TEST(Jfr, WaitsAndSamplesHaveStacksAndWakers) {
  for (const bool compressed : {true, false}) {
    const ImportedTrace imported = FromBytes(SmallJfr(compressed));
    ASSERT_TRUE(imported.status.ok());
    EXPECT_EQ(imported.Problem(), "");
    EXPECT_TRUE(imported.diagnostics.empty());
    EXPECT_EQ(Summary(imported),
              "running 200+10000000 java/worker (71) - "
              "Main.main;org.app!Queue.take;org.app!Lock$$Lambda$7.lock\n"
              "wait 500+200 java/worker (71) - [truncated];org.app!Queue.take\n"
              "wait 1000+300 java/worker (71) java/VM Thread (72) "
              "Main.main;org.app!Queue.take;org.app!Lock$$Lambda$7.lock\n"
              "unwait 1300+0 java/VM Thread (72) java/worker (71) \n"
              "wait 1500+100 java/worker (71) [timer] "
              "Main.main;org.app!Queue.take;org.app!Lock$$Lambda$7.lock\n"
              "unwait 1600+0 [timer] java/worker (71) \n"
              "wait 2000+50 java/worker (71) [timer] \n"
              "unwait 2050+0 [timer] java/worker (71) \n")
        << compressed;
    const trace::Metadata& metadata = imported.trace.metadata;
    EXPECT_FALSE(metadata.has_switches);
    EXPECT_TRUE(metadata.has_wakers);
    EXPECT_EQ(metadata.sample_period_ns, 10'000'000);
    EXPECT_EQ(metadata.app, "Main");
    EXPECT_EQ(metadata.properties.at("jfr.events"), "8");
    EXPECT_EQ(metadata.properties.at("jfr.events_unused"), "1");
    EXPECT_EQ(imported.trace.dictionary.processes().front().pid, 70);
  }
}

TEST(Jfr, AnUnfinishedChunkIsReadToItsEnd) {
  const ImportedTrace whole = FromBytes(SmallJfr(true));
  const ImportedTrace unfinished = FromBytes(SmallJfr(true, false));
  ASSERT_TRUE(unfinished.status.ok());
  EXPECT_EQ(Summary(unfinished), Summary(whole));
}

TEST(Jfr, SeveralChunksAreOneRecording) {
  const std::string chunk = SmallJfr(true);
  const ImportedTrace imported = FromBytes(chunk + chunk + "rest");
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Count(EventKind::kWait), 8u);
  EXPECT_EQ(imported.Counted("no chunk where one should begin, the rest is not read"), 1u);
  EXPECT_EQ(imported.trace.dictionary.threads().size(), 3u);  // two and the timer
}

TEST(Jfr, DamageIsCountedAndNotFatal) {
  const std::string whole = SmallJfr(true);
  for (size_t size = 0; size < whole.size(); ++size) {
    const ImportedTrace imported = FromBytes(whole.substr(0, size));
    if (imported.status.ok()) {
      EXPECT_EQ(imported.Problem(), "") << size;
    }
  }
  EXPECT_EQ(FromBytes(whole.substr(0, whole.size() - 1)).Counted("file ends inside a chunk"), 1u);
  std::string old = whole;
  old[5] = '\1';
  const ImportedTrace refused = FromBytes(old);
  ASSERT_FALSE(refused.status.ok());
  EXPECT_NE(refused.status.error().message.find("version 1"), std::string::npos);
}

TEST(Jfr, ClassNamesLoseWhatChangesFromRunToRun) {
  const JfrClassName name = SplitJfrClassName("org/app/Main$$Lambda$14/0x0000000800c1");
  EXPECT_EQ(name.package, "org.app");
  EXPECT_EQ(name.name, "Main$$Lambda$14");
  EXPECT_EQ(SplitJfrClassName("Main").package, "");
  EXPECT_EQ(SplitJfrClassName("Main").name, "Main");
}

// ---- against the JDK's own reader ----

constexpr const char* kProgram = R"(
public class Waits {
  static final Object monitor = new Object();
  static void hold() throws Exception { synchronized (monitor) { Thread.sleep(80); } }
  static void enter() throws Exception { synchronized (monitor) { monitor.hashCode(); } }
  public static void main(String[] arguments) throws Exception {
    Thread holder = new Thread(() -> {
      try { for (int i = 0; i < 4; i++) hold(); } catch (Exception e) { }
    }, "holder");
    Thread enterer = new Thread(() -> {
      try { for (int i = 0; i < 4; i++) { enter(); Thread.sleep(25); } } catch (Exception e) { }
    }, "enterer");
    holder.start();
    Thread.sleep(30);
    enterer.start();
    for (int i = 0; i < 3; i++) java.util.concurrent.locks.LockSupport.parkNanos(40_000_000);
    holder.join();
    enterer.join();
  }
}
)";

// "PT0.060123456S"
int64_t IsoDurationNs(const std::string& text) {
  if (!text.starts_with("PT") || !text.ends_with("S")) return -1;
  return ParseSecondsNs(std::string_view(text).substr(2, text.size() - 3)).value_or(-1);
}

// Thread, duration, depth of stack, who ended it if a thread did.
using WaitRow = std::tuple<std::string, int64_t, size_t, std::string>;

std::multiset<WaitRow> PrintedWaits(const std::string& json_path) {
  std::multiset<WaitRow> rows;
  const auto text = ReadWholeFile(json_path);
  const auto json = nlohmann::json::parse(text.ok() ? text.value() : "", nullptr, false);
  if (!json.is_object()) return rows;
  for (const auto& event : json["recording"]["events"]) {
    const auto& values = event["values"];
    const auto name = [&](const char* key) -> std::string {
      if (!values.contains(key) || values[key].is_null()) return {};
      return values[key]["javaName"].is_string() ? values[key]["javaName"].get<std::string>() : "";
    };
    const bool timed_out = values.contains("timedOut") && values["timedOut"].get<bool>();
    const size_t depth = values["stackTrace"].is_null() ? 0 : values["stackTrace"]["frames"].size();
    rows.emplace(name("eventThread"), IsoDurationNs(values["duration"].get<std::string>()), depth,
                 timed_out ? "" : name("previousOwner") + name("notifier"));
  }
  return rows;
}

std::multiset<WaitRow> ImportedWaits(const ImportedTrace& imported) {
  std::multiset<WaitRow> rows;
  const trace::Dictionary& dictionary = imported.trace.dictionary;
  const auto name = [&](trace::ThreadId id) -> std::string {
    if (!id.valid()) return {};
    const trace::Thread& thread = dictionary.threads()[id.value];
    if (thread.kind == trace::ThreadKind::kDevice) return {};
    return std::string(dictionary.Text(thread.name));
  };
  for (const Event& event : imported.trace.events) {
    if (event.kind != EventKind::kWait) continue;
    rows.emplace(name(event.thread), event.dur_ns, dictionary.StackFrames(event.stack).size(),
                 name(event.peer));
  }
  return rows;
}

TEST(Jfr, AgreesWithTheJdkOnAFreshRecording) {
  if (std::system("java -version >/dev/null 2>&1 && jfr version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no JDK here";
  }
  const TestFolder folder;
  folder.Write("Waits.java", kProgram);
  const std::string run =
      "cd '" + folder.path() +
      "' && java -XX:StartFlightRecording=filename=w.jfr,settings=profile Waits.java "
      ">/dev/null 2>&1 && jfr print --json --stack-depth 64 --events "
      "JavaMonitorEnter,JavaMonitorWait,ThreadPark,ThreadSleep,SocketRead,SocketWrite,FileRead,"
      "FileWrite,FileForce w.jfr > w.json 2>/dev/null";
  if (std::system(run.c_str()) != 0) GTEST_SKIP() << "the JDK cannot record here";
  const auto sources = OpenSources(folder / "w.jfr");
  ASSERT_EQ(sources.size(), 1u);
  const ImportedTrace imported = ImportTrace(JfrImporter(), sources.front().value());
  ASSERT_TRUE(imported.status.ok());
  EXPECT_TRUE(imported.diagnostics.empty());
  EXPECT_EQ(imported.Problem(), "");
  const std::multiset<WaitRow> expected = PrintedWaits(folder / "w.json");
  EXPECT_GT(expected.size(), 8u);
  EXPECT_EQ(ImportedWaits(imported), expected);
  bool contended = false;
  for (const Event& event : imported.trace.events) {
    const std::string stack = imported.Stack(event.stack);
    contended = contended || (event.kind == EventKind::kWait && stack.ends_with("Waits.enter") &&
                              imported.Thread(event.peer).find("holder") != std::string::npos);
  }
  EXPECT_TRUE(contended);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
