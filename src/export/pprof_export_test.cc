// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include "export/gzip_sink.h"
#include "export/sample_trace.h"
#include "export/target.h"
#include "export/wire_message.h"

namespace culprit::export_ {
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
}  // namespace culprit::export_
