// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "export/firefox_tables.h"
#include "export/sample_trace.h"
#include "export/target.h"

namespace culprit::export_::TEST_FILE {
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

// A column of the published types: what its values are, and what they point to.
struct ColumnRule {
  std::string_view table;
  std::string_view column;
  enum class Type { kNumber, kBool, kObject } type = Type::kNumber;
  bool may_be_null = false;
  std::string_view target = {};  // a table of the thread, "strings", "sources", "libs" ...
  int64_t none = 0;              // -1: that number stands for nothing
};

TEST(ExportFirefox, TypesAndReferencesAreThoseOfTheFormat) {
  using Type = ColumnRule::Type;
  static const std::vector<ColumnRule> kRules = {
      {"samples", "stack", Type::kNumber, true, "stackTable"},
      {"samples", "time"},
      {"samples", "weight"},
      {"samples", "threadCPUDelta", Type::kNumber, true},
      {"markers", "data", Type::kObject, true},
      {"markers", "name", Type::kNumber, false, "strings"},
      {"markers", "startTime", Type::kNumber, true},
      {"markers", "endTime", Type::kNumber, true},
      {"markers", "phase", Type::kNumber, false, "phases"},
      {"markers", "category", Type::kNumber, false, "categories"},
      {"stackTable", "frame", Type::kNumber, false, "frameTable"},
      {"stackTable", "prefix", Type::kNumber, true, "stackTable"},
      {"frameTable", "address", Type::kNumber, false, {}, -1},
      {"frameTable", "inlineDepth"},
      {"frameTable", "category", Type::kNumber, true, "categories"},
      {"frameTable", "subcategory", Type::kNumber, true},
      {"frameTable", "func", Type::kNumber, false, "funcTable"},
      {"frameTable", "nativeSymbol", Type::kNumber, true, "nativeSymbols"},
      {"frameTable", "innerWindowID", Type::kNumber, true},
      {"frameTable", "line", Type::kNumber, true},
      {"frameTable", "column", Type::kNumber, true},
      {"funcTable", "name", Type::kNumber, false, "strings"},
      {"funcTable", "isJS", Type::kBool},
      {"funcTable", "relevantForJS", Type::kBool},
      {"funcTable", "resource", Type::kNumber, false, "resourceTable", -1},
      {"funcTable", "source", Type::kNumber, true, "sources"},
      {"funcTable", "lineNumber", Type::kNumber, true},
      {"funcTable", "columnNumber", Type::kNumber, true},
      {"resourceTable", "lib", Type::kNumber, true, "libs"},
      {"resourceTable", "name", Type::kNumber, false, "strings"},
      {"resourceTable", "host", Type::kNumber, true, "strings"},
      {"resourceTable", "type"},
      {"nativeSymbols", "libIndex", Type::kNumber, false, "libs"},
      {"nativeSymbols", "address"},
      {"nativeSymbols", "name", Type::kNumber, false, "strings"},
      {"nativeSymbols", "functionSize", Type::kNumber, true},
  };
  const json profile = Exported(SampleReader(), {});
  for (const json& thread : profile["threads"]) {
    const auto size_of = [&](std::string_view target) -> int64_t {
      if (target == "strings") return std::ssize(profile["shared"]["stringArray"]);
      if (target == "sources") return profile["shared"]["sources"]["length"];
      if (target == "libs") return std::ssize(profile["libs"]);
      if (target == "categories") return std::ssize(profile["meta"]["categories"]);
      if (target == "phases") return 4;
      return thread[std::string(target)]["length"];
    };
    for (const ColumnRule& rule : kRules) {
      const std::string where = std::string(rule.table) + "." + std::string(rule.column);
      const json& table = thread.at(std::string(rule.table));
      if (rule.column == "threadCPUDelta" && !table.contains(rule.column)) continue;
      ASSERT_TRUE(table.contains(rule.column)) << where;
      for (const json& value : table[std::string(rule.column)]) {
        if (value.is_null()) {
          EXPECT_TRUE(rule.may_be_null) << where;
          continue;
        }
        if (rule.type == Type::kBool) {
          EXPECT_TRUE(value.is_boolean()) << where;
        }
        if (rule.type == Type::kObject) {
          EXPECT_TRUE(value.contains("type")) << where;
        }
        if (rule.type != Type::kNumber) continue;
        ASSERT_TRUE(value.is_number()) << where;
        if (rule.target.empty()) continue;
        EXPECT_GE(value.get<int64_t>(), rule.none) << where;
        EXPECT_LT(value.get<int64_t>(), size_of(rule.target)) << where;
      }
    }
    EXPECT_TRUE(thread["pid"].is_string());
    EXPECT_TRUE(thread["isMainThread"].is_boolean());
    EXPECT_EQ(thread["samples"]["weightType"], "tracing-ms");
  }
  for (const char* field : {"interval", "startTime", "processType", "version", "stackwalk"}) {
    EXPECT_TRUE(profile["meta"][field].is_number()) << field;
  }
  EXPECT_TRUE(profile["meta"]["product"].is_string());
  EXPECT_TRUE(profile["meta"]["markerSchema"].is_array());
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
}  // namespace culprit::export_::TEST_FILE
