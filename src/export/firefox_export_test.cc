// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "export/firefox_tables.h"
#include "export/sample_trace.h"
#include "export/target.h"

namespace culprit::export_ {
namespace {

using nlohmann::json;
using trace::EventKind;

json Exported(const trace::TraceReader& reader, const Options& options) {
  std::string text;
  const auto result = ExportFirefox(reader, options, [&](std::string_view piece) {
    text += piece;
    return Status();
  });
  EXPECT_TRUE(result.ok());
  return json::parse(text);
}

// "main;lock", caller first.
std::string StackText(const json& profile, const json& thread, json stack) {
  std::string text;
  for (; !stack.is_null(); stack = thread["stackTable"]["prefix"].at(stack.get<size_t>())) {
    const json& frame = thread["stackTable"]["frame"].at(stack.get<size_t>());
    const json& function = thread["frameTable"]["func"].at(frame.get<size_t>());
    const json& name = thread["funcTable"]["name"].at(function.get<size_t>());
    const std::string word = profile["shared"]["stringArray"].at(name.get<size_t>());
    text = text.empty() ? word : word + ";" + text;
  }
  return text;
}

int64_t Nanoseconds(const json& milliseconds) {
  return std::llround(milliseconds.get<double>() * 1e6);
}

TEST(ExportFirefox, EveryColumnIsAsLongAsItsTable) {
  const json profile = Exported(SampleReader(), {});
  EXPECT_EQ(profile["meta"]["preprocessedProfileVersion"], 58);
  ASSERT_EQ(profile["threads"].size(), 3u);
  size_t columns = 0;
  for (const json& thread : profile["threads"]) {
    for (const auto& [name, table] : thread.items()) {
      if (!table.is_object()) continue;
      for (const auto& [column, values] : table.items()) {
        if (!values.is_array()) continue;
        EXPECT_EQ(values.size(), table["length"]) << name << "." << column;
        ++columns;
      }
    }
  }
  EXPECT_EQ(columns, 3u * (4 + 6 + 2 + 9 + 7 + 4 + 4));
}

TEST(ExportFirefox, SamplesTileTheThread) {
  const json profile = Exported(SampleReader(), {});
  const json& ui = profile["threads"][0];
  EXPECT_EQ(ui["name"], "UI");
  EXPECT_EQ(ui["pid"], "10");
  EXPECT_EQ(ui["tid"], 11);
  EXPECT_EQ(ui["processName"], "my browser");
  EXPECT_EQ(ui["samples"]["weightType"], "tracing-ms");
  std::vector<std::string> stacks;
  int64_t at_ns = 0;
  for (size_t i = 0; i < ui["samples"]["length"]; ++i) {
    stacks.push_back(StackText(profile, ui, ui["samples"]["stack"][i]));
    EXPECT_EQ(Nanoseconds(ui["samples"]["time"][i]), at_ns);
    at_ns += Nanoseconds(ui["samples"]["weight"][i]);
  }
  EXPECT_EQ(stacks, (std::vector<std::string>{"main", "main;AcquireMDU;[wait]",
                                              "main;AcquireMDU;[ready]", "[not sampled]"}));
  EXPECT_EQ(at_ns, 800);
  EXPECT_EQ(ui["samples"]["threadCPUDelta"], json::parse("[0,100,0,0]"));
}

TEST(ExportFirefox, WaitsHaveACategoryOfTheirOwn) {
  const json profile = Exported(SampleReader(), {});
  const json& ui = profile["threads"][0];
  const json& frame = ui["stackTable"]["frame"][ui["samples"]["stack"][1].get<size_t>()];
  const json& category = ui["frameTable"]["category"][frame.get<size_t>()];
  EXPECT_EQ(profile["meta"]["categories"][category.get<size_t>()]["name"], "Wait");
}

TEST(ExportFirefox, HasMarkersForInstancesSyscallsAndDevices) {
  const json profile = Exported(SampleReader(), {});
  std::map<std::string, std::string> markers;
  for (const json& thread : profile["threads"]) {
    const json& table = thread["markers"];
    for (size_t i = 0; i < table["length"]; ++i) {
      const std::string name = profile["shared"]["stringArray"].at(table["name"][i].get<size_t>());
      markers[name] = table["data"][i]["type"].get<std::string>() + " " +
                      std::to_string(Nanoseconds(table["startTime"][i])) + " " +
                      std::to_string(Nanoseconds(table["endTime"][i]));
    }
  }
  EXPECT_EQ(markers, (std::map<std::string, std::string>{{"TabCreate", "Instance 0 900"},
                                                         {"syscall 98", "Syscall 100 400"},
                                                         {"write", "Hardware 50 200"},
                                                         {"fs.sys!AcquireMDU", "Call 460 470"}}));
}

TEST(ExportFirefox, WeightsSumToTheTotalOfEveryKind) {
  const trace::Trace trace = SampleTrace();
  for (size_t i = 0; i < trace::kEventKinds - 1; ++i) {
    const auto kind = static_cast<EventKind>(i);
    if (kind == EventKind::kUnwait) continue;
    int64_t total = 0, sum = 0;
    for (const trace::Event& event : trace.events) total += event.kind == kind ? event.dur_ns : 0;
    const json profile = Exported(SampleReader(), {.kind = kind});
    for (const json& thread : profile["threads"]) {
      for (const json& weight : thread["samples"]["weight"]) sum += Nanoseconds(weight);
    }
    EXPECT_EQ(sum, total) << trace::Name(kind);
  }
}

TEST(ExportFirefox, RefusesKindsWithoutTime) {
  const auto result = ExportFirefox(SampleReader(), {.kind = EventKind::kUnwait},
                                    [](std::string_view) { return Status(); });
  EXPECT_FALSE(result.ok());
}

TEST(ExportFirefox, DamagedBlocksAreCountedOnce) {
  auto reader = trace::TraceReader::FromBytes(DamagedBytes(0), "t");
  ASSERT_TRUE(reader.ok());
  std::string text;
  const auto result = ExportFirefox(reader.value(), {}, [&](std::string_view piece) {
    text += piece;
    return Status();
  });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().events + 4, SampleTrace().events.size());
  EXPECT_EQ(result.value().diagnostics.rows().at("events lost with a damaged block").count, 4u);
  EXPECT_TRUE(json::accept(text));
}

TEST(Milliseconds, AreExact) {
  EXPECT_EQ(Milliseconds(0), "0");
  EXPECT_EQ(Milliseconds(1), "0.000001");
  EXPECT_EQ(Milliseconds(1'500'000), "1.5");
  EXPECT_EQ(Milliseconds(10, 1'000'010), "-1");
  EXPECT_EQ(Milliseconds(INT64_MAX, INT64_MIN), "18446744073709.551615");
}

}  // namespace
}  // namespace culprit::export_
