// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "export/event_walk.h"
#include "export/sample_trace.h"
#include "export/target.h"

namespace culprit::export_::TEST_FILE {
namespace {

using trace::EventKind;

std::string Exported(const trace::TraceReader& reader, const Options& options) {
  std::string text;
  const auto result = ExportFolded(reader, options, [&](std::string_view piece) {
    text += piece;
    return Status();
  });
  EXPECT_TRUE(result.ok());
  return text;
}

TEST(ExportFolded, ShowsWaitsByDefault) {
  EXPECT_EQ(Exported(SampleReader(), {}),
            "[no stack] 100\n"
            "app!main;app!operator()(int:_char)_\uFFFD;app!+0x1a2b 200\n"
            "app!main;fs.sys!AcquireMDU 300\n");
}

TEST(ExportFolded, ShowsRunningCodeByDefaultWhereThereAreNoWaits) {
  trace::Trace trace = SampleTrace();
  std::erase_if(trace.events, [](const trace::Event& e) { return e.kind == EventKind::kWait; });
  const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace(trace), "t");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(Exported(reader.value(), {}),
            "[not sampled] 350\n"
            "app!main 100\n"
            "app!main;app!operator()(int:_char)_\uFFFD;app!+0x1a2b 700\n");
}

TEST(ExportFolded, CountsEventsThatTakeNoTime) {
  EXPECT_EQ(Exported(SampleReader(), {.kind = EventKind::kUnwait}),
            "app!main;app!operator()(int:_char)_\uFFFD;app!+0x1a2b 1\n");
}

TEST(ExportFolded, BeginsWithProcessAndThreadWhenAsked) {
  EXPECT_EQ(Exported(SampleReader(), {.kind = EventKind::kHardware, .threads = true}),
            "[no process];disk;app!main;fs.sys!AcquireMDU 150\n");
  EXPECT_EQ(Exported(SampleReader(), {.kind = EventKind::kSyscall, .threads = true}),
            "my_browser;UI(11);app!main 300\n");
}

TEST(ExportFolded, SumsToTheTotalOfEveryKind) {
  const trace::Trace trace = SampleTrace();
  for (size_t i = 0; i < trace::kEventKinds - 1; ++i) {
    const auto kind = static_cast<EventKind>(i);
    int64_t total = 0;
    for (const trace::Event& event : trace.events) {
      if (event.kind == kind) total += kind == EventKind::kUnwait ? 1 : event.dur_ns;
    }
    ASSERT_GT(total, 0) << trace::Name(kind);
    for (bool threads : {false, true}) {
      std::istringstream in(Exported(SampleReader(), {.kind = kind, .threads = threads}));
      int64_t sum = 0;
      for (std::string line; std::getline(in, line);) {
        sum += std::stoll(line.substr(line.rfind(' ') + 1));
      }
      EXPECT_EQ(sum, total) << trace::Name(kind);
    }
  }
}

TEST(ExportFolded, LinesAreSortedAndDistinct) {
  // Two functions that differ only in what cannot be written become one line.
  trace::Trace trace = SampleTrace();
  trace::Dictionary& d = trace.dictionary;
  for (const char* name : {"a b", "a_b", "z", "b"}) {
    trace.events.push_back({.time_ns = 1500,
                            .dur_ns = 5,
                            .thread = trace::ThreadId(0),
                            .stack = d.InternStack({d.InternFrame("m", name)}),
                            .kind = EventKind::kCall});
  }
  const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace(trace), "t");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(Exported(reader.value(), {.kind = EventKind::kCall}),
            "app!main;fs.sys!AcquireMDU 10\nm!a_b 10\nm!b 5\nm!z 5\n");
}

TEST(Utf8Text, IsValidWhateverTheBytes) {
  EXPECT_EQ(Utf8Text("aé日😀"), "aé日😀");
  EXPECT_EQ(Utf8Text(std::string_view("a\0b", 3)), "a\uFFFDb");
  EXPECT_EQ(Utf8Text("\xc3"), "\uFFFD");
  EXPECT_EQ(Utf8Text("\xe0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Utf8Text("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Utf8Text("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Utf8Text("\xf5"), "\uFFFD");
}

TEST(FlagNames, NameEveryBit) {
  EXPECT_EQ(FlagNames(0xff).size(), 8u);
  EXPECT_EQ(FlagNames(trace::kNotSampled | trace::kEnd),
            (std::vector<std::string_view>{"not_sampled", "end"}));
  EXPECT_TRUE(FlagNames(0).empty());
}

}  // namespace
}  // namespace culprit::export_::TEST_FILE
