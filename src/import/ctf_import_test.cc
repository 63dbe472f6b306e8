// SPDX-License-Identifier: Apache-2.0
// The importer as a whole: hand-made traces in all formats, damaged ones, and
// real ones against babeltrace2 and the figures their collectors published.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>

#include "import/ctf_reader.h"
#include "import/ctf_test_trace.h"
#include "import/importers.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;
using trace::Trace;

struct Imported {
  Status status;
  Diagnostics diagnostics;
  Trace trace;
};

Imported Import(const Source& source) {
  Imported result;
  std::string bytes;
  trace::TraceWriter writer([&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  result.status = CtfImporter().read(source, {.symbols = false}, writer, result.diagnostics);
  EXPECT_TRUE(writer.Finish().ok());
  result.trace = std::move(trace::TraceReader::FromBytes(bytes, "test").value()).ReadAll();
  return result;
}

std::vector<Event> OfKind(const Trace& trace, EventKind kind, int64_t tid) {
  std::vector<Event> found;
  for (const Event& event : trace.events) {
    const bool known = event.thread.valid();
    const int64_t whose = known ? trace.dictionary.threads()[event.thread.value].tid : -1;
    if (event.kind == kind && whose == tid) found.push_back(event);
  }
  return found;
}

int64_t TidOf(const Trace& trace, trace::ThreadId id) {
  return id.valid() ? trace.dictionary.threads()[id.value].tid : -1;
}

class CtfFormats : public testing::TestWithParam<CtfTestTrace::Format> {};

TEST_P(CtfFormats, TellTheSameStory) {
  const CtfTestTrace made(GetParam());
  const Source source = made.source();
  EXPECT_EQ(CtfImporter().sniff(source, ""), Match::kCertain);
  const Imported imported = Import(source);
  ASSERT_TRUE(imported.status.ok()) << imported.status.error().ToString();
  const Trace& trace = imported.trace;
  EXPECT_TRUE(trace::CheckConservation(trace).ok());
  const auto at = [](int64_t ns) { return static_cast<int64_t>(CtfTestTrace::kBegin) + ns; };

  const auto waits = OfKind(trace, EventKind::kWait, 10);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].time_ns, at(1100));
  EXPECT_EQ(waits[0].dur_ns, 400);
  EXPECT_EQ(TidOf(trace, waits[0].peer), 20);
  const auto ready = OfKind(trace, EventKind::kReady, 10);
  ASSERT_EQ(ready.size(), 2u);
  EXPECT_EQ(ready[0].time_ns, at(1500));
  EXPECT_EQ(ready[0].dur_ns, 200);
  EXPECT_EQ(ready[1].time_ns, at(2000));
  EXPECT_EQ(ready[1].flags & trace::kPreempted, trace::kPreempted);
  const auto calls = OfKind(trace, EventKind::kSyscall, 10);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].time_ns, at(1000));
  EXPECT_EQ(calls[0].dur_ns, 800);
  EXPECT_EQ(calls[0].arg0, 0);
  EXPECT_EQ(calls[0].arg1, 5);
  EXPECT_EQ(trace.metadata.end_ns, at(2500));
  EXPECT_EQ(trace.metadata.wall_start_ns,
            static_cast<int64_t>(CtfTestTrace::kOffset) + trace.metadata.begin_ns);
  EXPECT_EQ(trace.metadata.machine, "box");
  EXPECT_EQ(trace.metadata.cpus, 2u);
  EXPECT_EQ(trace.metadata.properties.at("ctf.events"), "10");
  EXPECT_EQ(trace.metadata.properties.at("drops.cpu0"), "7");
  EXPECT_EQ(imported.diagnostics.rows().at("event lost by the tracer").count, 7u);
}

INSTANTIATE_TEST_SUITE_P(All, CtfFormats,
                         testing::Values(CtfTestTrace::Format::kLittle, CtfTestTrace::Format::kBig,
                                         CtfTestTrace::Format::kJson));

TEST(CtfImport, ReadsUpToTheCutWhereverItIs) {
  const CtfTestTrace whole(CtfTestTrace::Format::kLittle);
  uint64_t last = 0;
  for (size_t size = 0; size <= whole.files.at("chan_0").size(); ++size) {
    CtfTestTrace cut = whole;
    cut.files["chan_0"].resize(size);
    const Imported imported = Import(cut.source());
    ASSERT_TRUE(imported.status.ok()) << size;
    EXPECT_TRUE(trace::CheckConservation(imported.trace).ok()) << size;
    const uint64_t events = std::stoull(imported.trace.metadata.properties.at("ctf.events"));
    EXPECT_GE(events, last) << size;
    last = events;
  }
  EXPECT_EQ(last, 10u);
}

TEST(CtfImport, SurvivesMetadataCutAnywhere) {
  for (const auto format : {CtfTestTrace::Format::kLittle, CtfTestTrace::Format::kJson}) {
    const CtfTestTrace whole(format);
    for (size_t size = 0; size < whole.files.at("metadata").size(); ++size) {
      CtfTestTrace cut = whole;
      cut.files["metadata"].resize(size);
      const Imported imported = Import(cut.source());
      EXPECT_TRUE(trace::CheckConservation(imported.trace).ok()) << size;
    }
  }
}

TEST(CtfImport, SurvivesAnyWrongByte) {
  const CtfTestTrace whole(CtfTestTrace::Format::kLittle);
  for (const char* name : {"chan_0", "metadata"}) {
    for (size_t at = 0; at < whole.files.at(name).size(); at += 3) {
      CtfTestTrace damaged = whole;
      damaged.files[name][at] = static_cast<char>(~damaged.files[name][at]);
      const Imported imported = Import(damaged.source());
      EXPECT_TRUE(trace::CheckConservation(imported.trace).ok()) << name << " " << at;
    }
  }
}

TEST(CtfImport, UnpacksMetadataInPackets) {
  for (const auto format : {CtfTestTrace::Format::kLittle, CtfTestTrace::Format::kBig}) {
    CtfTestTrace made(format);
    const bool big = format == CtfTestTrace::Format::kBig;
    const std::string text = made.files["metadata"];
    const auto u32 = [&](uint32_t value) {
      std::string out;
      for (int i = 0; i < 4; ++i)
        out.push_back(static_cast<char>(value >> (8 * (big ? 3 - i : i))));
      return out;
    };
    std::string packed;
    for (size_t at = 0; at < text.size(); at += 100) {
      const std::string piece = text.substr(at, 100);
      const auto bits = static_cast<uint32_t>(8 * (37 + piece.size()));
      packed += u32(0x75D11D57) + std::string(16, 'u') + u32(0) + u32(bits) + u32(bits + 80) +
                std::string("\0\0\0\1\x8", 5) + piece + std::string(10, '\0');
    }
    made.files["metadata"] = packed;
    EXPECT_EQ(CtfImporter().sniff(made.source(), ""), Match::kCertain);
    const Imported imported = Import(made.source());
    ASSERT_TRUE(imported.status.ok());
    EXPECT_EQ(imported.trace.metadata.properties.at("ctf.events"), "10");
  }
}

TEST(CtfImport, SaysWhatIsMissing) {
  CtfTestTrace made(CtfTestTrace::Format::kLittle);
  made.files.erase("chan_0");
  made.files.erase("chan_1");
  const Imported imported = Import(made.source());
  ASSERT_FALSE(imported.status.ok());
  EXPECT_NE(imported.status.error().hint.find("folder"), std::string::npos);
  const Source text = MemorySource("x", "hello world\n");
  EXPECT_EQ(CtfImporter().sniff(text, "hello world\n"), Match::kNo);
}

// Real traces.

const std::string kData = CULPRIT_SOURCE_DIR "/../shared/data/ctf/";

std::vector<Source> SourcesAt(const std::string& path) {
  std::vector<Source> sources;
  for (Result<Source>& source : OpenSources(path)) {
    if (source.ok() && CtfImporter().sniff(source.value(), "") != Match::kNo) {
      sources.push_back(std::move(source).value());
    }
  }
  return sources;
}

std::map<std::string, uint64_t> CountByName(const Source& source, Diagnostics& diagnostics) {
  const auto schema = LoadCtfSchema(source, diagnostics);
  std::map<std::string, uint64_t> counts;
  if (!schema.ok()) return counts;
  CtfDecoder decoder(schema.value(), {},
                     [](const CtfEventClass&) { return std::span<const CtfWant>(); });
  const auto files = CtfStreamFiles(source);
  CtfReader reader(decoder, files, diagnostics);
  while (const CtfStreamFile* file = reader.Next()) {
    ++counts[schema.value().events[file->event_class()].name];
  }
  return counts;
}

bool HasBabeltrace() { return std::system("babeltrace2 --version > /dev/null 2>&1") == 0; }

// What babeltrace2 prints for a folder: the count of lines by event name.
std::map<std::string, uint64_t> BabeltraceCounts(const std::string& folder) {
  const std::string command = "babeltrace2 --no-delta --clock-seconds '" + folder + "' 2>/dev/null";
  std::map<std::string, uint64_t> counts;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return counts;
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, pipe) > 0) {
    const std::string_view text = line;
    const size_t end = text.find(": {");
    if (end == std::string_view::npos) continue;
    const std::string_view before = text.substr(0, end);
    ++counts[std::string(before.substr(before.rfind(' ') + 1))];
  }
  free(line);
  pclose(pipe);
  return counts;
}

TEST(CtfRealTraces, AgreeWithBabeltraceOnEveryEventName) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no real traces here";
  if (!HasBabeltrace()) GTEST_SKIP() << "babeltrace2 is not installed";
  const std::vector<std::string> folders = {
      "babeltrace/lttng-modules-2.0.0-ref-trace/kernel",
      "babeltrace/lttng-tracefile-rotation/kernel",
      "babeltrace/multi-domains/kernel",
      "babeltrace/multi-domains/ust",
      "tracecompass-big-endian",
      "tracecompass-many-threads",
      "tracecompass-old-lttng",
      "tracecompass-perf-to-ctf",
  };
  for (const std::string& folder : folders) {
    const auto sources = SourcesAt(kData + folder);
    ASSERT_EQ(sources.size(), 1u) << folder;
    Diagnostics diagnostics;
    EXPECT_EQ(CountByName(sources[0], diagnostics), BabeltraceCounts(kData + folder)) << folder;
  }
}

TEST(CtfTestTrace, IsWhatBabeltraceReadsToo) {
  if (!HasBabeltrace()) GTEST_SKIP() << "babeltrace2 is not installed";
  for (const auto format : {CtfTestTrace::Format::kLittle, CtfTestTrace::Format::kBig}) {
    const CtfTestTrace made(format);
    const std::filesystem::path folder = testing::TempDir() + "ctf_test_trace";
    std::filesystem::create_directories(folder);
    for (const auto& [name, bytes] : made.files) std::ofstream(folder / name) << bytes;
    Diagnostics diagnostics;
    EXPECT_EQ(CountByName(made.source(), diagnostics), BabeltraceCounts(folder));
    std::filesystem::remove_all(folder);
  }
}

// Time, both threads and the state of every switch, in order.
using Switches = std::vector<std::array<int64_t, 4>>;

Switches OurSwitches(const Source& source) {
  static constexpr CtfWant kWants[] = {
      {"prev_tid", 0}, {"prev_pid", 0}, {"next_tid", 1}, {"next_pid", 1}, {"prev_state", 2}};
  Diagnostics diagnostics;
  const CtfSchema schema = LoadCtfSchema(source, diagnostics).value();
  CtfDecoder decoder(schema, {}, [](const CtfEventClass&) { return std::span(kWants); });
  const auto files = CtfStreamFiles(source);
  CtfReader reader(decoder, files, diagnostics);
  Switches switches;
  while (const CtfStreamFile* file = reader.Next()) {
    if (!schema.events[file->event_class()].name.ends_with("sched_switch")) continue;
    const auto value = [&](size_t i) { return static_cast<int64_t>(file->fields()[i].number); };
    switches.push_back({file->time_ns() + decoder.wall_offset_ns(), value(0), value(1), value(2)});
  }
  return switches;
}

Switches BabeltraceSwitches(const std::string& folder) {
  const std::string command =
      "babeltrace2 --no-delta --clock-seconds '" + folder + "' 2>/dev/null | grep sched_switch:";
  Switches switches;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return switches;
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, pipe) > 0) {
    const std::string text = line;
    const auto number = [&](const std::string& a, const std::string& b) {
      size_t at = text.find(a);
      if (at == std::string::npos) at = text.find(b);
      return std::stoll(text.substr(text.find('=', at) + 1));
    };
    const size_t dot = text.find('.');
    const int64_t time_ns =
        std::stoll(text.substr(1, dot - 1)) * 1'000'000'000 + std::stoll(text.substr(dot + 1, 9));
    switches.push_back({time_ns, number("prev_tid =", "prev_pid ="),
                        number("next_tid =", "next_pid ="), number("prev_state =", "")});
  }
  free(line);
  pclose(pipe);
  return switches;
}

TEST(CtfRealTraces, AgreeWithBabeltraceOnEverySwitch) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no real traces here";
  if (!HasBabeltrace()) GTEST_SKIP() << "babeltrace2 is not installed";
  for (const std::string folder :
       {"babeltrace/lttng-tracefile-rotation/kernel", "tracecompass-big-endian",
        "tracecompass-perf-to-ctf", "tracecompass-old-lttng"}) {
    const auto sources = SourcesAt(kData + folder);
    ASSERT_EQ(sources.size(), 1u) << folder;
    const Switches ours = OurSwitches(sources[0]);
    EXPECT_GT(ours.size(), 100u);
    EXPECT_EQ(ours, BabeltraceSwitches(kData + folder)) << folder;
  }
}

struct Expected {
  std::string path;
  uint64_t events;
  std::map<std::string, uint64_t> some;
};

TEST(CtfRealTraces, HaveTheirPublishedCountsAndConserveTime) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no real traces here";
  const std::vector<Expected> all = {
      {"tracevizlab-apt.tgz", 280'137, {{"sched_switch", 12'549}, {"sched_waking", 6'829}}},
      {"tracevizlab-simple-kernel.tgz", 11'980, {{"sched_switch", 774}}},
      {"tracevizlab-ls-ust/traces/ls-ust.tgz",
       14'580,
       {{"lttng_ust_cyg_profile:func_entry", 5'915}, {"lttng_ust_cyg_profile:func_exit", 5'915}}},
      {"tracecompass-many-threads", 240'644, {{"sched_switch", 28'325}}},
      {"tracecompass-clock-backwards/scp_dest", 85'729, {}},
      {"tracecompass-clock-backwards/scp_src", 110'771, {}},
      {"tracecompass-big-endian", 14'310, {{"sched_switch", 2'540}}},
      {"babeltrace/lttng-tracefile-rotation/kernel",
       12'305,
       {{"sched_switch", 4'687}, {"sched_waking", 2'378}}},
  };
  for (const Expected& expected : all) {
    const auto sources = SourcesAt(kData + expected.path);
    ASSERT_EQ(sources.size(), 1u) << expected.path;
    Diagnostics diagnostics;
    const auto counts = CountByName(sources[0], diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << expected.path;
    uint64_t total = 0;
    for (const auto& [name, count] : counts) total += count;
    EXPECT_EQ(total, expected.events) << expected.path;
    for (const auto& [name, count] : expected.some) EXPECT_EQ(counts.at(name), count) << name;
    const Imported imported = Import(sources[0]);
    ASSERT_TRUE(imported.status.ok()) << expected.path;
    const auto report = trace::CheckConservation(imported.trace);
    EXPECT_TRUE(report.ok()) << expected.path << ": " << report.first_problem;
  }
}

TEST(CtfRealTraces, CallsNestAndLostEventsAreCounted) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no real traces here";
  const Imported calls = Import(SourcesAt(kData + "tracevizlab-ls-ust/traces/ls-ust.tgz").at(0));
  size_t count = 0;
  for (const Event& event : calls.trace.events) count += event.kind == EventKind::kCall ? 1 : 0;
  EXPECT_EQ(count, 5'915u);
  EXPECT_FALSE(calls.diagnostics.rows().contains("function exit without its entry"));
  EXPECT_EQ(calls.trace.dictionary.ThreadLabel(calls.trace.events.front().thread), "ls/ls (5035)");
  const Imported lost = Import(SourcesAt(kData + "babeltrace/multi-domains/kernel").at(0));
  EXPECT_EQ(lost.diagnostics.rows().at("event lost by the tracer").count, 728u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
