// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

namespace culprit::TEST_FILE {
namespace {

TEST(JsonWriter, WritesNestedValues) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("a", 1).Field("b", "x").Field("c", true).Field("d", 0.5);
  json.Key("e").BeginArray().Int(-1).Null().BeginObject().EndObject().EndArray().EndObject();
  EXPECT_EQ(json.text(), R"({"a":1,"b":"x","c":true,"d":0.5,"e":[-1,null,{}]})");
}

TEST(JsonWriter, IndentsForPeople) {
  JsonWriter json;
  json.BeginObject().Key("a").BeginArray().Int(1).EndArray().EndObject();
  EXPECT_EQ(json.text(), "{\n  \"a\": [\n    1\n  ]\n}\n");
}

TEST(JsonWriter, IntegersKeepEveryDigit) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginArray().Int(INT64_MIN).Uint(UINT64_MAX).EndArray();
  EXPECT_EQ(json.text(), "[-9223372036854775808,18446744073709551615]");
}

TEST(JsonWriter, WhatIsNoNumberBecomesNull) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginArray().Double(std::nan("")).Double(INFINITY).EndArray();
  EXPECT_EQ(json.text(), "[null,null]");
}

TEST(JsonWriter, HostileStringsStayValidJson) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text.push_back(static_cast<char>(random()));
    JsonWriter json(JsonWriter::Style::kCompact);
    json.BeginArray().String(text).EndArray();
    const auto parsed = nlohmann::json::parse(json.text(), nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << json.text();
  }
}

TEST(JsonWriter, ValidTextComesBackUnchanged) {
  const std::string text =
      "tab\t \"quoted\" back\\slash <script> \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \x01 \x7f";
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginArray().String(text).EndArray();
  EXPECT_EQ(nlohmann::json::parse(json.text())[0].get<std::string>(), text);
}

TEST(JsonWriter, BadBytesBecomeTheReplacementCharacter) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginArray()
      .String(
          "a\xff"
          "b")
      .String("\xed\xa0\x80")
      .String("\xc0\xaf")
      .EndArray();
  EXPECT_EQ(json.text(),
            "[\"a\xef\xbf\xbd"
            "b\",\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",\"\xef\xbf\xbd\xef\xbf\xbd\"]");
}

TEST(JsonWriterDeathTest, AValueWithoutAKeyIsABug) {
  JsonWriter json;
  json.BeginObject();
  EXPECT_DEATH(json.Int(1), "internal error");
}

}  // namespace
}  // namespace culprit::TEST_FILE
