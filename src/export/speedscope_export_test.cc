// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/sample_trace.h"
#include "export/target.h"

namespace culprit::export_::TEST_FILE {
namespace {

using nlohmann::json;
using trace::EventKind;

json Exported(const trace::TraceReader& reader, const Options& options) {
  std::string text;
  const auto result = ExportSpeedscope(reader, options, [&](std::string_view piece) {
    text += piece;
    return Status();
  });
  EXPECT_TRUE(result.ok());
  return json::parse(text);
}

int64_t TotalOf(const json& profile) {
  int64_t total = 0;
  for (const json& weight : profile["weights"]) total += weight.get<int64_t>();
  return total;
}

TEST(ExportSpeedscope, HasTheFieldsOfTheFormat) {
  const json file = Exported(SampleReader(), {});
  EXPECT_EQ(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
  EXPECT_EQ(file["shared"]["frames"][0]["name"], "app!main");
  EXPECT_EQ(file["activeProfileIndex"], 0);  // 300 ns against 300: the first
  ASSERT_EQ(file["profiles"].size(), 2u);
  for (const json& profile : file["profiles"]) {
    EXPECT_EQ(profile["type"], "sampled");
    EXPECT_EQ(profile["unit"], "nanoseconds");
    EXPECT_EQ(profile["startValue"], 0);
    EXPECT_EQ(profile["endValue"], TotalOf(profile));
    EXPECT_EQ(profile["samples"].size(), profile["weights"].size());
  }
  EXPECT_EQ(file["profiles"][0]["name"], "my browser/UI (11)");
}

TEST(ExportSpeedscope, SamplesLeadToTheirFrames) {
  const json file = Exported(SampleReader(), {});
  std::map<std::string, int64_t> stacks;
  for (const json& profile : file["profiles"]) {
    for (size_t i = 0; i < profile["samples"].size(); ++i) {
      std::string text;
      for (const json& frame : profile["samples"][i]) {
        const std::string name = file["shared"]["frames"].at(frame.get<size_t>())["name"];
        text += text.empty() ? name : ";" + name;
      }
      stacks[text] += profile["weights"][i].get<int64_t>();
    }
  }
  EXPECT_EQ(stacks, (std::map<std::string, int64_t>{
                        {"[no stack]", 100},
                        {"app!main;app!operator()(int; char)\n\uFFFD;app!+0x1a2b", 200},
                        {"app!main;fs.sys!AcquireMDU", 300}}));
}

TEST(ExportSpeedscope, SumsToTheTotalOfEveryKind) {
  const trace::Trace trace = SampleTrace();
  for (size_t i = 0; i < trace::kEventKinds - 1; ++i) {
    const auto kind = static_cast<EventKind>(i);
    int64_t total = 0, sum = 0;
    for (const trace::Event& event : trace.events) {
      if (event.kind == kind) total += kind == EventKind::kUnwait ? 1 : event.dur_ns;
    }
    const json file = Exported(SampleReader(), {.kind = kind});
    for (const json& profile : file["profiles"]) sum += TotalOf(profile);
    EXPECT_EQ(sum, total) << trace::Name(kind);
    EXPECT_EQ(file["profiles"][0]["unit"], kind == EventKind::kUnwait ? "none" : "nanoseconds");
  }
}

TEST(ExportSpeedscope, IsAFileEvenWithoutSuchEvents) {
  trace::Trace trace = SampleTrace();
  std::erase_if(trace.events, [](const trace::Event& e) { return e.kind == EventKind::kCall; });
  const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace(trace), "t");
  const json file = Exported(reader.value(), {.kind = EventKind::kCall});
  ASSERT_EQ(file["profiles"].size(), 1u);
  EXPECT_TRUE(file["profiles"][0]["samples"].empty());
}

}  // namespace
}  // namespace culprit::export_::TEST_FILE
