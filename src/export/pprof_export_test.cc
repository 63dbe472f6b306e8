// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <sstream>

#include "base/test_folder.h"
#include "export/gzip_sink.h"
#include "export/sample_trace.h"
#include "export/target.h"
#include "export/wire_message.h"

namespace culprit::export_::TEST_FILE {
namespace {

using trace::EventKind;

std::string Unzipped(const std::string& bytes) {
  archive* in = archive_read_new();
  archive_read_support_filter_gzip(in);
  archive_read_support_format_raw(in);
  archive_entry* entry = nullptr;
  EXPECT_EQ(archive_read_open_memory(in, bytes.data(), bytes.size()), ARCHIVE_OK);
  EXPECT_EQ(archive_read_next_header(in, &entry), ARCHIVE_OK);
  std::string text(1 << 20, '\0');
  const auto size = archive_read_data(in, text.data(), text.size());
  EXPECT_GE(size, 0);
  text.resize(static_cast<size_t>(std::max<la_ssize_t>(size, 0)));
  archive_read_free(in);
  return text;
}

std::string Exported(const trace::TraceReader& reader, const Options& options) {
  std::string bytes;
  const auto result = ExportPprof(reader, options, [&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return bytes;
}

// A profile with its references followed, as a reader would.
struct Profile {
  explicit Profile(const std::string& bytes) : message(Unzipped(bytes)) {
    strings = message.Texts(6);
    for (const WireMessage& row : message.Messages(5)) functions.emplace(row.Number(1), row);
    for (const WireMessage& row : message.Messages(4)) locations.emplace(row.Number(1), row);
    for (const WireMessage& row : message.Messages(3)) mappings.emplace(row.Number(1), row);
  }
  std::string Text(uint64_t index) const { return strings.at(index); }
  std::vector<std::string> Types() const {
    std::vector<std::string> types;
    for (const WireMessage& row : message.Messages(1)) {
      types.push_back(Text(row.Number(1)) + "/" + Text(row.Number(2)));
    }
    return types;
  }
  // "main;lock", caller first.
  std::string Stack(const WireMessage& sample) const {
    std::string text;
    for (uint64_t id : sample.Packed(1)) {
      const WireMessage& location = locations.at(id);
      std::string name = "?";
      if (location.Has(4)) {
        name = Text(functions.at(location.Message(4).Number(1)).Number(2));
      }
      text = text.empty() ? name : name + ";" + text;
    }
    return text;
  }
  std::vector<uint64_t> Totals() const {
    std::vector<uint64_t> totals(Types().size(), 0);
    for (const WireMessage& sample : message.Messages(2)) {
      const std::vector<uint64_t> values = sample.Packed(2);
      EXPECT_EQ(values.size(), totals.size());
      for (size_t i = 0; i < values.size(); ++i) totals[i] += values[i];
    }
    return totals;
  }

  WireMessage message;
  std::vector<std::string> strings;
  std::map<uint64_t, WireMessage> functions, locations, mappings;
};

TEST(ExportPprof, HasWaitsByDefault) {
  const Profile profile(Exported(SampleReader(), {}));
  EXPECT_EQ(profile.strings.at(0), "");
  EXPECT_EQ(profile.Types(), (std::vector<std::string>{"waits/count", "delay/nanoseconds"}));
  EXPECT_EQ(profile.Text(profile.message.Number(14)), "delay");
  EXPECT_EQ(profile.message.Number(10), 1000u);
  std::map<std::string, uint64_t> delays;
  for (const WireMessage& sample : profile.message.Messages(2)) {
    delays[profile.Stack(sample)] = sample.Packed(2).at(1);
  }
  EXPECT_EQ(delays,
            (std::map<std::string, uint64_t>{{"[no stack]", 100},
                                             {"main;AcquireMDU", 300},
                                             {"main;operator()(int; char)\n\uFFFD;?", 200}}));
}

// The messages of profile.proto: names and numbers of all fields, from its
// published text.
constexpr char kSchema[] = R"(
syntax = "proto3";
package check;
message Profile {
  repeated ValueType sample_type = 1;
  repeated Sample sample = 2;
  repeated Mapping mapping = 3;
  repeated Location location = 4;
  repeated Function function = 5;
  repeated string string_table = 6;
  int64 drop_frames = 7;
  int64 keep_frames = 8;
  int64 time_nanos = 9;
  int64 duration_nanos = 10;
  ValueType period_type = 11;
  int64 period = 12;
  repeated int64 comment = 13;
  int64 default_sample_type = 14;
  int64 doc_url = 15;
}
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample {
  repeated uint64 location_id = 1;
  repeated int64 value = 2;
  repeated Label label = 3;
}
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Mapping {
  uint64 id = 1;
  uint64 memory_start = 2;
  uint64 memory_limit = 3;
  uint64 file_offset = 4;
  int64 filename = 5;
  int64 build_id = 6;
  bool has_functions = 7;
  bool has_filenames = 8;
  bool has_line_numbers = 9;
  bool has_inline_frames = 10;
}
message Location {
  uint64 id = 1;
  uint64 mapping_id = 2;
  uint64 address = 3;
  repeated Line line = 4;
  bool is_folded = 5;
}
message Line { uint64 function_id = 1; int64 line = 2; int64 column = 3; }
message Function {
  uint64 id = 1;
  int64 name = 2;
  int64 system_name = 3;
  int64 filename = 4;
  int64 start_line = 5;
}
)";

// protoc prints a field that the schema does not have, or has otherwise, by its
// number.
TEST(ExportPprof, ProtocReadsEveryFieldByThePublishedSchema) {
  const TestFolder folder;
  folder.Write("profile.proto", kSchema);
  folder.Write("profile.pb", Unzipped(Exported(SampleReader(), {.threads = true})));
  FILE* pipe = popen(
      ("cd " + folder.path() + " && protoc --decode=check.Profile profile.proto < profile.pb 2>&1")
          .c_str(),
      "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char chunk[4096];
  for (size_t n; (n = fread(chunk, 1, sizeof chunk, pipe)) > 0;) text.append(chunk, n);
  const int status = pclose(pipe);
  if (text.find("not found") != std::string::npos) GTEST_SKIP() << "protoc is not installed";
  ASSERT_EQ(status, 0) << text;
  EXPECT_NE(text.find("location_id: "), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find_first_not_of(' ');
    ASSERT_NE(first, std::string::npos);
    EXPECT_EQ(std::isdigit(static_cast<unsigned char>(line[first])), 0) << line;
  }
}

// What pprof itself insists on when it reads a profile.
TEST(ExportPprof, IdsAndStringsAreAsTheFormatDemands) {
  for (const bool threads : {false, true}) {
    const Profile profile(Exported(SampleReader(), {.threads = threads}));
    ASSERT_FALSE(profile.strings.empty());
    EXPECT_EQ(profile.strings.front(), "");
    EXPECT_FALSE(profile.functions.contains(0) || profile.locations.contains(0) ||
                 profile.mappings.contains(0));
    EXPECT_EQ(profile.functions.size(), profile.message.Messages(5).size()) << "an id twice";
    EXPECT_EQ(profile.locations.size(), profile.message.Messages(4).size());
    for (const auto& [id, location] : profile.locations) {
      if (location.Has(2)) {
        EXPECT_TRUE(profile.mappings.contains(location.Number(2)));
      }
      for (const WireMessage& line : location.Messages(4)) {
        EXPECT_TRUE(profile.functions.contains(line.Number(1)));
      }
    }
    for (const WireMessage& sample : profile.message.Messages(2)) {
      EXPECT_EQ(sample.Packed(2).size(), profile.Types().size());
      for (const uint64_t id : sample.Packed(1)) EXPECT_TRUE(profile.locations.contains(id));
    }
  }
}

TEST(ExportPprof, SumsToTheTotalsOfEveryKind) {
  const trace::Trace trace = SampleTrace();
  for (size_t i = 0; i < trace::kEventKinds - 1; ++i) {
    const auto kind = static_cast<EventKind>(i);
    uint64_t events = 0, time_ns = 0;
    for (const trace::Event& event : trace.events) {
      if (event.kind != kind) continue;
      ++events;
      time_ns += static_cast<uint64_t>(event.dur_ns);
    }
    std::vector<uint64_t> expected = {events};
    if (kind != EventKind::kUnwait) expected.push_back(time_ns);
    for (bool threads : {false, true}) {
      const Profile profile(Exported(SampleReader(), {.kind = kind, .threads = threads}));
      EXPECT_EQ(profile.Totals(), expected) << trace::Name(kind);
    }
  }
}

TEST(ExportPprof, UnnamedFramesKeepAddressAndModule) {
  trace::Trace trace = SampleTrace();
  trace::Dictionary& d = trace.dictionary;
  const trace::ModuleId module = d.InternModule({.name = d.Intern("libx.so"),
                                                 .path = d.Intern("/usr/lib/libx.so"),
                                                 .build_id = d.Intern("00ff17")});
  trace.events[1].stack = d.InternStack({d.InternFrame({.module = module, .offset = 0x77})});
  trace.metadata.sample_period_ns = 1000;
  const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace(trace), "t");
  const Profile profile(Exported(reader.value(), {.kind = EventKind::kRunning}));
  EXPECT_EQ(profile.message.Number(12), 1000u);
  size_t unnamed = 0;
  for (const auto& [id, mapping] : profile.mappings) {
    if (profile.Text(mapping.Number(5)) != "/usr/lib/libx.so") continue;
    EXPECT_EQ(profile.Text(mapping.Number(6)), "00ff17");
    EXPECT_EQ(mapping.Number(7), 0u);
    for (const auto& [number, location] : profile.locations) {
      if (location.Number(2) != id) continue;
      ++unnamed;
      EXPECT_EQ(location.Number(3), 0x77u);
      EXPECT_FALSE(location.Has(4));
      EXPECT_LT(location.Number(3), mapping.Number(3));
    }
  }
  EXPECT_EQ(unnamed, 1u);
}

TEST(ExportPprof, LabelsThreadsWhenAsked) {
  const Profile profile(Exported(SampleReader(), {.kind = EventKind::kSyscall, .threads = true}));
  std::map<std::string, std::string> labels;
  for (const WireMessage& label : profile.message.Message(2).Messages(3)) {
    labels[profile.Text(label.Number(1))] =
        label.Has(2) ? profile.Text(label.Number(2)) : std::to_string(label.Number(3));
  }
  EXPECT_EQ(labels,
            (std::map<std::string, std::string>{
                {"process", "my browser"}, {"pid", "10"}, {"thread", "UI"}, {"tid", "11"}}));
}

TEST(ExportPprof, SameTraceSameBytes) {
  EXPECT_EQ(Exported(SampleReader(), {}), Exported(SampleReader(), {}));
}

TEST(ExportPprof, GivesWhatIsReadableOfADamagedTrace) {
  for (size_t block = 0; block < SampleReader().blocks().size(); ++block) {
    auto reader = trace::TraceReader::FromBytes(DamagedBytes(block), "t");
    ASSERT_TRUE(reader.ok());
    uint64_t waits = 0;
    std::vector<trace::Event> events;
    for (size_t i = 0; i < reader.value().blocks().size(); ++i) {
      if (!reader.value().ReadBlock(i, events).ok()) continue;
      for (const trace::Event& event : events) waits += event.kind == EventKind::kWait;
    }
    const Profile profile(Exported(reader.value(), {.kind = EventKind::kWait}));
    EXPECT_EQ(profile.Totals().at(0), waits);
  }
}

TEST(GzipSink, PassesOnTheErrorOfItsSink) {
  const Sink full = [](std::string_view) { return Status(Error{.message = "disk full"}); };
  GzipSink gzip(full);
  (void)gzip.Write("abc").ok();
  const Status status = gzip.Finish();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "disk full");
}

}  // namespace
}  // namespace culprit::export_::TEST_FILE
