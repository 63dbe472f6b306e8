// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "export/sample_trace.h"
#include "export/target.h"

namespace culprit::export_::TEST_FILE {
namespace {

using nlohmann::json;

std::string Exported(const trace::TraceReader& reader, Summary* summary = nullptr) {
  std::string text;
  const auto result = ExportJson(reader, {}, [&](std::string_view piece) {
    text += piece;
    return Status();
  });
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  if (summary != nullptr && result.ok()) *summary = result.value();
  return text;
}

TEST(ExportJson, HasMetadataAndTables) {
  const json document = json::parse(Exported(SampleReader()));
  const json& metadata = document["metadata"];
  EXPECT_EQ(metadata["machine"], "m1");
  EXPECT_EQ(metadata["begin_ns"], 1000);
  EXPECT_EQ(metadata["complete"], true);
  EXPECT_EQ(metadata["labels"]["release"], "\"7\"");
  EXPECT_EQ(metadata["properties"]["drops.cpu0"], "3");
  EXPECT_FALSE(metadata.contains("app"));
  EXPECT_EQ(document["processes"], json::parse(R"([{"pid":10,"name":"my browser",
                             "command_line":"browser --tab=\"a;b\""}])"));
  EXPECT_EQ(document["threads"],
            json::parse(R"([{"tid":11,"process":0,"name":"UI","kind":"user","start_ns":1000},
                            {"tid":12,"process":0,"name":"W0","kind":"user"},
                            {"tid":-1,"name":"disk","kind":"device"}])"));
  EXPECT_EQ(document["instances"],
            json::parse(R"([{"scenario":"TabCreate","thread":0,"t0_ns":1000,"t1_ns":1900}])"));
}

TEST(ExportJson, StacksLeadToTheirFrames) {
  const json document = json::parse(Exported(SampleReader()));
  std::vector<std::string> names;
  for (const json& event : document["events"]) {
    if (event["kind"] != "unwait") continue;
    for (json at = event["stack"]; !at.is_null();) {
      const json& node = document["stacks"][at.get<size_t>()];
      names.push_back(document["frames"][node["frame"].get<size_t>()]);
      at = node.contains("parent") ? node["parent"] : json();
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"app!+0x1a2b", "app!operator()(int; char)\n\uFFFD",
                                             "app!main"}));
}

TEST(ExportJson, EventsCarryOnlyFieldsThatMeanSomething) {
  const json document = json::parse(Exported(SampleReader()));
  std::map<std::string, json> by_kind;
  for (const json& event : document["events"]) by_kind.emplace(event["kind"], event);
  EXPECT_EQ(document["events"].size(), SampleTrace().events.size());
  EXPECT_EQ(by_kind["ready"], json::parse(R"({"kind":"ready","time_ns":1400,"dur_ns":50,
      "thread":0,"peer":1,"stack":1,"cpu":0,"flags":["preempted","inferred"]})"));
  EXPECT_EQ(by_kind["hardware"], json::parse(R"({"kind":"hardware","time_ns":1050,"dur_ns":150,
      "thread":2,"peer":1,"stack":1,"bytes":4096,"operation":1})"));
  EXPECT_EQ(by_kind["syscall"], json::parse(R"({"kind":"syscall","time_ns":1100,"dur_ns":300,
      "thread":0,"stack":0,"number":98,"result":-11})"));
  EXPECT_EQ(by_kind["marker"], json::parse(R"({"kind":"marker","time_ns":1000,"thread":0,
      "flags":["begin"],"name":"TabCreate","id":5})"));
  EXPECT_EQ(by_kind["unwait"], json::parse(R"({"kind":"unwait","time_ns":1400,"thread":1,
      "peer":0,"stack":3,"cpu":1})"));
}

TEST(ExportJson, ASumOfWaitsSaysOfHowMany) {
  trace::Trace trace = SampleTrace();
  const auto wait =
      std::find_if(trace.events.begin(), trace.events.end(),
                   [](const trace::Event& event) { return event.kind == trace::EventKind::kWait; });
  ASSERT_NE(wait, trace.events.end());
  wait->arg0 = 17;
  const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace(trace), "sums");
  ASSERT_TRUE(reader.ok());
  const json document = json::parse(Exported(reader.value()));
  std::vector<int64_t> sums;
  for (const json& event : document["events"]) {
    if (event.contains("sum_of")) sums.push_back(event["sum_of"]);
  }
  EXPECT_EQ(sums, std::vector<int64_t>{17});
}

TEST(ExportJson, WritesOneEventALineInTimeOrderPerBlock) {
  const trace::TraceReader reader = SampleReader();
  ASSERT_GT(reader.blocks().size(), 2u);
  const std::string text = Exported(reader);
  const size_t lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const json document = json::parse(text);
  size_t items = 0;
  for (const auto& [key, value] : document.items()) {
    if (value.is_array()) items += value.size() + 1;
  }
  EXPECT_EQ(lines, items + 1);
  size_t next = 0;
  for (const trace::BlockInfo& block : reader.blocks()) {
    for (size_t i = 1; i < block.events; ++i) {
      EXPECT_LE(document["events"][next + i - 1]["time_ns"],
                document["events"][next + i]["time_ns"]);
    }
    next += block.events;
  }
}

TEST(ExportJson, OfAnEmptyTraceIsAWholeDocument) {
  const auto reader = trace::TraceReader::FromBytes(trace::EncodeTrace({}), "empty");
  ASSERT_TRUE(reader.ok());
  const json document = json::parse(Exported(reader.value()));
  EXPECT_TRUE(document["events"].empty());
  EXPECT_TRUE(document["stacks"].empty());
}

TEST(ExportJson, OfADamagedTraceHasTheReadableBlocksAndCountsTheRest) {
  const auto reader = trace::TraceReader::FromBytes(DamagedBytes(1), "damaged");
  ASSERT_TRUE(reader.ok());
  Summary summary;
  const json document = json::parse(Exported(reader.value(), &summary));
  const size_t all = SampleTrace().events.size();
  EXPECT_EQ(document["events"].size(), all - reader.value().blocks()[1].events);
  EXPECT_EQ(summary.events, document["events"].size());
  EXPECT_FALSE(summary.diagnostics.empty());
}

TEST(ExportJson, OfATraceWithNothingReadableWritesNothing) {
  const trace::TraceReader whole = SampleReader();
  std::string bytes = SampleBytes();
  for (const trace::BlockInfo& block : whole.blocks())
    bytes[block.offset + block.length - 1] ^= 0x55;
  const auto reader = trace::TraceReader::FromBytes(bytes, "ruined");
  ASSERT_TRUE(reader.ok());
  bool written = false;
  const auto result = ExportJson(reader.value(), {}, [&](std::string_view) {
    written = true;
    return Status();
  });
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(written);
}

TEST(ExportJson, StopsWhenTheSinkFails) {
  const auto result = ExportJson(SampleReader(), {},
                                 [](std::string_view) { return Status(Error{.message = "full"}); });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "full");
}

}  // namespace
}  // namespace culprit::export_::TEST_FILE
