// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "import/importers.h"
#include "import/pprof_profile.h"
#include "import/stored_bytes.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

struct Imported {
  Status status;
  trace::Trace trace;
  Diagnostics diagnostics;
  Match match = Match::kNo;
};

Imported ImportFrom(const Source& source) {
  Imported imported;
  std::string file;
  trace::TraceWriter writer([&](std::string_view bytes) {
    file.append(bytes);
    return Status();
  });
  std::string head;
  EXPECT_TRUE(source.bytes().ReadAt(0, kSniffBytes, head).ok());
  imported.match = PprofImporter().sniff(source, head);
  imported.status = PprofImporter().read(source, {.symbols = false}, writer, imported.diagnostics);
  EXPECT_TRUE(writer.Finish().ok());
  imported.trace = trace::TraceReader::FromBytes(file, "test").value().ReadAll();
  return imported;
}

Imported Import(const std::string& bytes) { return ImportFrom(MemorySource("profile", bytes)); }

std::string Message(int field, const std::string& bytes) {
  ByteWriter out;
  out.Varint(static_cast<uint64_t>(field) << 3 | 2);
  out.String(bytes);
  return out.Take();
}

std::string Number(int field, uint64_t value) {
  ByteWriter out;
  out.Varint(static_cast<uint64_t>(field) << 3);
  out.Varint(value);
  return out.Take();
}

std::string Packed(int field, const std::vector<uint64_t>& values) {
  ByteWriter out;
  for (const uint64_t value : values) out.Varint(value);
  return Message(field, out.bytes());
}

// Two stacks: main > work, and main > work > inner with inner inlined.
std::string SmallProto(const std::string& type, const std::string& unit) {
  const std::vector<std::string> strings = {"",     "samples",  "count", type,      unit,
                                            "main", "_Z4workv", "inner", "prog.cc", "/bin/prog"};
  std::string out;
  out += Message(1, Number(1, 1) + Number(2, 2)) + Message(1, Number(1, 3) + Number(2, 4));
  out += Message(2, Packed(1, {2, 1}) + Packed(2, {3, 30'000'000}));
  out += Message(2, Number(1, 3) + Number(1, 1) + Number(2, 1) + Number(2, 7));
  out += Message(3, Number(1, 1) + Number(2, 0x400000) + Number(3, 0x500000) + Number(5, 9));
  out += Message(4, Number(1, 1) + Number(2, 1) + Number(3, 0x400010) +
                        Message(4, Number(1, 1) + Number(2, 3)));
  out += Message(4, Number(1, 2) + Number(2, 1) + Number(3, 0x400020) +
                        Message(4, Number(1, 2) + Number(2, 9)));
  out += Message(4, Number(1, 3) + Number(2, 1) + Number(3, 0x400030) +
                        Message(4, Number(1, 3) + Number(2, 12)) +
                        Message(4, Number(1, 2) + Number(2, 10)));
  for (uint64_t i = 1; i <= 3; ++i) {
    out += Message(5, Number(1, i) + Number(2, 4 + i) + Number(4, 8));
  }
  for (const std::string& text : strings) out += Message(6, text);
  out += Number(9, 1'700'000'000'000'000'000) + Number(10, 5'000'000'000);
  out += Message(11, Number(1, 3) + Number(2, 4)) + Number(12, 10'000'000);
  return out;
}

TEST(Pprof, CpuSamplesBecomeRunningEvents) {
  const Imported imported = Import(SmallProto("cpu", "nanoseconds"));
  ASSERT_TRUE(imported.status.ok()) << imported.status.error().ToString();
  EXPECT_EQ(imported.match, Match::kLikely);
  const trace::Trace& trace = imported.trace;
  ASSERT_EQ(trace.events.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(trace.events[i].kind, EventKind::kRunning);
    EXPECT_EQ(trace.events[i].dur_ns, 10'000'000);
    EXPECT_EQ(trace.dictionary.StackText(trace.events[i].stack), "prog!main;prog!work()");
  }
  EXPECT_EQ(trace.events[3].dur_ns, 7);
  EXPECT_EQ(trace.dictionary.StackText(trace.events[3].stack), "prog!main;prog!work();prog!inner");
  const auto frames = trace.dictionary.StackFrames(trace.events[3].stack);
  EXPECT_EQ(trace.dictionary.frames()[frames[2].value].flags, trace::kInlined);
  EXPECT_EQ(trace.dictionary.frames()[frames[2].value].line, 12u);
  EXPECT_EQ(trace.dictionary.frames()[frames[1].value].flags, 0);
  EXPECT_EQ(trace.metadata.end_ns, 30'000'007);
  EXPECT_EQ(trace.metadata.sample_period_ns, 10'000'000);
  EXPECT_EQ(trace.metadata.app, "prog");
  EXPECT_EQ(trace.metadata.wall_start_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(trace.metadata.properties.at("profile.layout"), "synthetic: a profile has no times");
  EXPECT_FALSE(trace.metadata.has_switches);
  EXPECT_EQ(imported.diagnostics.total(), 1u);
}

TEST(Pprof, DelaysBecomeWaits) {
  const Imported imported = Import(SmallProto("delay", "microseconds"));
  ASSERT_TRUE(imported.status.ok());
  ASSERT_EQ(imported.trace.events.size(), 4u);
  EXPECT_EQ(imported.trace.events[0].kind, EventKind::kWait);
  EXPECT_EQ(imported.trace.events[0].dur_ns, 10'000'000'000);
  EXPECT_EQ(imported.trace.events[0].flags, trace::kWakerUnknown);
  EXPECT_TRUE(imported.trace.metadata.has_switches);
  EXPECT_TRUE(trace::CheckConservation(imported.trace).ok());
}

TEST(Pprof, CountsWithAPeriodInTimeAreTime) {
  std::string bytes = Message(1, Number(1, 1) + Number(2, 2));
  bytes += Message(2, Packed(2, {3})) + Message(2, Packed(2, {1, 1}));
  for (const char* text : {"", "samples", "count", "cpu", "milliseconds"})
    bytes += Message(6, text);
  bytes += Message(11, Number(1, 3) + Number(2, 4)) + Number(12, 10);
  const Imported imported = Import(bytes);
  ASSERT_TRUE(imported.status.ok());
  ASSERT_EQ(imported.trace.events.size(), 3u);
  EXPECT_EQ(imported.trace.events[0].dur_ns, 10'000'000);
  // The second sample has one value too many.
  EXPECT_EQ(imported.diagnostics.rows().at("sample with an impossible value").count, 1u);
}

TEST(Pprof, RefusesProfilesWithoutTime) {
  const Imported imported = Import(SmallProto("alloc_space", "bytes"));
  ASSERT_FALSE(imported.status.ok());
  EXPECT_EQ(imported.status.error().message,
            "a profile without a value in time: it has samples/count, alloc_space/bytes");
  EXPECT_FALSE(imported.status.error().hint.empty());
  for (const char* text : {"heap profile:      6:  \n", "--- heapz 1 ---\n", "--- threadz 1 ---\n",
                           "goroutine profile: total 7\n"}) {
    EXPECT_EQ(Import(text).match, Match::kCertain);
    EXPECT_FALSE(Import(text).status.ok());
  }
}

TEST(Pprof, ReadsCpuWordsOfEitherSizeAndOrder) {
  for (const size_t size : {size_t{4}, size_t{8}}) {
    for (const bool big_endian : {false, true}) {
      std::string bytes;
      for (const uint32_t word :
           {0u, 3u, 0u, 1000u, 0u, 2u, 2u, 0x400100u, 0x400201u, 1u, 1u, 0x400300u, 0u, 1u, 0u}) {
        for (size_t i = 0; i < size; ++i) {
          const size_t shift = 8 * (big_endian ? size - 1 - i : i);
          bytes.push_back(shift < 32 ? static_cast<char>(word >> shift) : '\0');
        }
      }
      bytes += "00400000-00500000 r-xp 00000000 00:00 1  /bin/prog\n";
      const Imported imported = Import(bytes);
      ASSERT_TRUE(imported.status.ok());
      EXPECT_EQ(imported.match, Match::kCertain);
      ASSERT_EQ(imported.trace.events.size(), 3u);
      EXPECT_EQ(imported.trace.metadata.end_ns, 3'000'000);
      EXPECT_EQ(imported.trace.dictionary.StackText(imported.trace.events[0].stack),
                "prog!+0x200;prog!+0x100");
    }
  }
}

TEST(Pprof, HugeCountsAreContracted) {
  const Imported imported = Import(
      "--- contention:\nsampling period = 1\n"
      "9000000000000 3000000000 @ 0x1000 0x2000\n1000 1 @ 0x3000\n");
  ASSERT_TRUE(imported.status.ok());
  EXPECT_LE(imported.trace.events.size(), 200'001u);
  EXPECT_EQ(imported.trace.metadata.end_ns, 9'000'000'001'000);
  EXPECT_TRUE(imported.trace.metadata.properties.contains("profile.contracted"));
}

TEST(Pprof, ImpossibleValuesAreCounted) {
  const Imported imported = Import(
      "--- contentionz 1 ---\ncycles/second = 1\n"
      "9223372036854775807 1 @ 0x1\n9223372036 9223372036854775807 @ 0x2\nrubbish\n5 1 @ 0x3\n");
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.diagnostics.rows().at("line of a profile that could not be read").count, 1u);
  EXPECT_GE(imported.diagnostics.rows().at("sample with an impossible value").count, 1u);
}

TEST(Pprof, SurvivesCutsAnywhere) {
  const std::string proto = SmallProto("cpu", "nanoseconds");
  const std::string contention =
      "--- contentionz 1 ---\nformat = java\nresolution = microseconds\n"
      " 14 1 @ 0x0000000d 0x0000000e\n\n 0x000000d a.b (c.java:3)\n";
  for (const std::string& whole : {proto, contention}) {
    for (size_t length = 0; length < whole.size(); ++length) (void)Import(whole.substr(0, length));
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      (void)Import(changed);
    }
  }
}

// The .string file that stands beside a profile: pprof's own reading of it.
struct Expected {
  struct Sample {
    int64_t count;
    int64_t value;
    std::vector<std::string> stack;
  };
  std::vector<Sample> samples;
};

// "0xbccc96 M=1" is an address and its mapping, "0x0 f file:3:0 s=0" a function.
std::string Place(std::istringstream& words) {
  std::string address;
  std::string second;
  words >> address >> second;
  if (second.starts_with("M=")) return address + " " + second.substr(2);
  if (address != "0x0") return address + " ";
  std::string source;
  words >> source;
  return second + " " + source.substr(0, source.rfind(':'));
}

// An address whose mapping is a number, with the mapping's path instead.
std::string WithPath(const std::string& place, std::map<std::string, std::string>& paths) {
  const size_t blank = place.find(' ');
  if (!place.starts_with("0x") || blank == std::string::npos) return place;
  return place.substr(0, blank) + " " + paths[place.substr(blank + 1)];
}

Expected ReadExpected(const std::string& text) {
  Expected expected;
  std::vector<std::vector<std::string>> ids;
  std::map<std::string, std::string> places;
  std::map<std::string, std::string> paths;
  std::istringstream lines(text);
  int part = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Samples:") part = 1;
    if (line == "Locations") part = 2;
    if (line == "Mappings") part = 3;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream words(line);
    if (part == 1 && line != "Samples:") {
      Expected::Sample sample = {};
      if (!(words >> sample.count >> sample.value)) continue;
      std::istringstream rest(line.substr(colon + 1));
      ids.emplace_back();
      for (std::string id; rest >> id;) ids.back().push_back(id);
      expected.samples.push_back(sample);
    } else if (part == 2) {
      std::string id;
      words >> id;
      id.pop_back();
      if (!places.contains(id)) places[id] = Place(words);
    } else if (part == 3) {
      std::string id;
      std::string extent;
      words >> id >> extent;
      words >> paths[line.substr(0, colon)];
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    for (const std::string& id : ids[i])
      expected.samples[i].stack.push_back(WithPath(places[id], paths));
  }
  return expected;
}

std::string PlaceOf(const Profile& profile, uint32_t index) {
  const Profile::Location& location = profile.locations[index];
  if (location.lines.empty()) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx ", static_cast<unsigned long long>(location.address));
    if (location.mapping == Profile::kNone) return text;
    return text + std::string(profile.mappings[location.mapping].path);
  }
  const Profile::Function& function = profile.functions[location.lines[0].function];
  return std::string(function.name) + " " + std::string(function.file) + ":" +
         std::to_string(location.lines[0].line);
}

const std::string kData = CULPRIT_SOURCE_DIR "/../shared/data/pprof/google-pprof/";

TEST(PprofData, LegacyProfilesReadAsPprofReadsThem) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  for (const char* name : {"cppbench.cpu", "cppbench.contention", "go.crc32.cpu", "gobench.cpu",
                           "java.cpu", "java.contention"}) {
    const Expected expected = ReadExpected(ReadWholeFile(kData + name + ".string").value());
    Diagnostics diagnostics;
    const auto read = ReadPprofLegacy(ReadWholeFile(kData + name).value(), name, diagnostics);
    ASSERT_TRUE(read.ok()) << name;
    const Profile& profile = read.value();
    EXPECT_TRUE(diagnostics.empty()) << name;
    ASSERT_EQ(profile.samples.size(), expected.samples.size()) << name;
    const int64_t unit = std::string(name) == "java.contention" ? 1000 : 1;
    int64_t total = 0;
    for (size_t i = 0; i < profile.samples.size(); ++i) {
      const auto values = profile.ValuesOf(profile.samples[i]);
      EXPECT_EQ(values[0], expected.samples[i].count) << name << " sample " << i;
      EXPECT_EQ(values[1], expected.samples[i].value * unit) << name << " sample " << i;
      std::vector<std::string> stack;
      for (const uint32_t at : profile.StackOf(profile.samples[i])) {
        stack.push_back(PlaceOf(profile, at));
      }
      EXPECT_EQ(stack, expected.samples[i].stack) << name << " sample " << i;
      total += values[1];
    }
    const Imported imported = Import(ReadWholeFile(kData + name).value());
    ASSERT_TRUE(imported.status.ok()) << name;
    EXPECT_EQ(imported.match, Match::kCertain) << name;
    EXPECT_EQ(imported.trace.metadata.end_ns, total) << name;
    if (imported.trace.metadata.has_switches) {
      EXPECT_TRUE(trace::CheckConservation(imported.trace).ok()) << name;
    }
  }
}

TEST(PprofData, HeapAndThreadProfilesAreRefused) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  for (const char* name : {"cppbench.heap", "gobench.heap", "java.heap", "cppbench.thread",
                           "cppbench.thread.all", "cppbench.thread.none", "go.godoc.thread"}) {
    const Imported imported = Import(ReadWholeFile(kData + name).value());
    EXPECT_EQ(imported.match, Match::kCertain) << name;
    EXPECT_FALSE(imported.status.ok()) << name;
  }
}

// protoc knows nothing of profiles but how their messages nest.
TEST(PprofData, ProtobufReadsAsProtocReadsIt) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const auto sources = OpenSources(kData + "large.cpu");
  ASSERT_EQ(sources.size(), 1u);
  ASSERT_TRUE(sources[0].ok());
  const Imported imported = ImportFrom(sources[0].value());
  ASSERT_TRUE(imported.status.ok()) << imported.status.error().ToString();
  EXPECT_EQ(imported.match, Match::kLikely);
  // 24,029 times 10 ms.
  EXPECT_EQ(imported.trace.events.size(), 24'029u);
  EXPECT_EQ(imported.trace.metadata.end_ns, 240'290'000'000);
  FILE* pipe =
      popen(("zcat " + kData + "large.cpu | protoc --decode_raw 2>/dev/null").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  size_t samples = 0;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    samples += std::string_view(line).starts_with("2 {") ? 1 : 0;
  }
  if (pclose(pipe) != 0 || samples == 0) GTEST_SKIP() << "no protoc here";
  EXPECT_EQ(imported.trace.metadata.properties.at("profile.samples"), std::to_string(samples));
  EXPECT_EQ(imported.diagnostics.rows().size(), 1u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
