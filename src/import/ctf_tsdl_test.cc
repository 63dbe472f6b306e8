// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_tsdl.h"

#include <gtest/gtest.h>

#include "import/ctf_json.h"
#include "import/ctf_lexer.h"

namespace culprit::import_::TEST_FILE {
namespace {

std::vector<std::string> Words(std::string_view text) {
  CtfLexer lexer(text);
  std::vector<std::string> words;
  for (CtfToken token = lexer.Next(); token.kind != CtfToken::Kind::kEnd; token = lexer.Next()) {
    words.push_back(token.kind == CtfToken::Kind::kNumber ? std::to_string(token.number)
                                                          : std::string(token.text));
  }
  return words;
}

TEST(CtfLexer, CutsTextIntoWords) {
  EXPECT_EQ(Words("a_1 := 0x1F; /* no */ 017 // no\n \"s\\\"t\" ... 'A' 12ULL"),
            (std::vector<std::string>{"a_1", ":=", "31", ";", "15", "s\\\"t", "...", "65", "12"}));
  EXPECT_EQ(UnescapeCtf("a\\n\\x41\\101\\\"\\q\\"), "a\nAA\"q\\");
  EXPECT_EQ(Words("/* never closed").size(), 0u);
  EXPECT_EQ(Words("\"never closed").size(), 1u);
}

const CtfField& PayloadField(const CtfSchema& schema, size_t event, size_t member) {
  const CtfField& payload = schema.fields[schema.events.at(event).payload];
  return schema.fields[payload.members.at(member).field];
}

TEST(CtfTsdl, ReadsEveryKindOfType) {
  Diagnostics clean;
  const CtfSchema good = ParseCtfTsdl(R"(
trace { byte_order = be; };
typealias integer { size = 32; align = 16; signed = true; byte_order = le; } := const int;
typedef integer { size = 8; } byte;
struct point { byte x; const int y[3]; } align(64);
variant choice { byte A; string B; };
stream { id = 3; };
event { id = 7; name = "e"; stream_id = 3; fields := struct {
  floating_point { exp_dig = 11; mant_dig = 53; align = 8; } f;
  struct point p, q;
  enum : byte { A, B = 5 ... 9, "C c", D = 'x' } tag;
  variant choice <tag> v;
  byte grid[2][4];
  string { encoding = UTF8; } s[stream.event.header.id];
}; };)",
                                      clean);
  EXPECT_TRUE(clean.empty()) << clean.rows().begin()->first;
  EXPECT_TRUE(good.big_endian);
  ASSERT_EQ(good.events.size(), 1u);
  EXPECT_EQ(good.events[0].id, 7u);
  EXPECT_EQ(good.events[0].stream_id, 3u);
  EXPECT_EQ(PayloadField(good, 0, 0).bits, 64u);
  const CtfField& point = PayloadField(good, 0, 2);
  EXPECT_EQ(point.align, 64u);
  const CtfField& y = good.fields[point.members[1].field];
  EXPECT_EQ(y.length, 3u);
  EXPECT_EQ(y.align, 16u);
  const CtfField& tag = PayloadField(good, 0, 3);
  ASSERT_EQ(tag.labels.size(), 4u);
  EXPECT_EQ(tag.labels[1].range.high, 9);
  EXPECT_EQ(tag.labels[2].range.low, 10);
  EXPECT_EQ(tag.labels[3].range.low, 'x');
  EXPECT_EQ(PayloadField(good, 0, 4).reference.path, std::vector<std::string>{"tag"});
  const CtfField& grid = PayloadField(good, 0, 5);
  EXPECT_EQ(grid.length, 2u);
  EXPECT_EQ(good.fields[grid.element].length, 4u);
  const CtfField& strings = PayloadField(good, 0, 6);
  EXPECT_TRUE(strings.dynamic);
  EXPECT_EQ(strings.reference.origin, CtfScope::kEventHeader);
}

TEST(CtfTsdl, SkipsWhatMakesNoSenseAndKeepsTheRest) {
  Diagnostics diagnostics;
  const CtfSchema schema = ParseCtfTsdl(
      "event { name = \"a\"; fields := struct { nonsense x; }; };\n"
      "event { name = \"b\"; };\n"
      "event { name = ; };\n"
      "stream { id = 1; };",
      diagnostics);
  ASSERT_EQ(schema.events.size(), 1u);
  EXPECT_EQ(schema.events[0].name, "b");
  EXPECT_EQ(schema.streams.size(), 1u);
  EXPECT_EQ(diagnostics.total(), 2u);
}

TEST(CtfTsdl, RefusesDepthAndBadNumbers) {
  std::string deep = "event { fields := ";
  for (int i = 0; i < 10'000; ++i) deep += "struct { ";
  Diagnostics diagnostics;
  EXPECT_TRUE(ParseCtfTsdl(deep, diagnostics).events.empty());
  for (const char* type : {"integer { size = 65; }", "integer { size = 8; align = 3; }",
                           "integer { }", "floating_point { align = 8; }"}) {
    const std::string text = std::string("event { fields := struct { ") + type + " x; }; };";
    EXPECT_TRUE(ParseCtfTsdl(text, diagnostics).events.empty()) << type;
  }
  EXPECT_EQ(diagnostics.total(), 5u);
}

TEST(CtfJson, CountsFragmentsThatMakeNoSense) {
  const std::string good =
      "\x1e{\"type\":\"data-stream-class\",\"id\":4}\n\x1e{\"type\":\"event-record-class\","
      "\"data-stream-class-id\":4,\"id\":2,\"name\":\"n\"}";
  Diagnostics diagnostics;
  const std::string bad[] = {
      "\x1e{broken",
      "\x1e{\"type\":\"preamble\",\"version\":3}",
      "\x1e{\"type\":\"what\"}",
      "\x1e[1,2]",
      "\x1e{\"type\":\"event-record-class\",\"payload-field-class\":\"no-alias\"}",
      "\x1e{\"type\":\"event-record-class\",\"payload-field-class\":{\"type\":"
      "\"fixed-length-unsigned-integer\",\"length\":0}}",
      "\x1e" + std::string(100'000, '['),
  };
  std::string text;
  for (const std::string& fragment : bad) text += fragment;
  const CtfSchema schema = ParseCtfJson(text + good, diagnostics);
  EXPECT_EQ(diagnostics.total(), std::size(bad));
  ASSERT_EQ(schema.streams.size(), 1u);
  EXPECT_EQ(schema.streams[0].id, 4u);
  ASSERT_EQ(schema.events.size(), 1u);
  EXPECT_EQ(schema.events[0].name, "n");
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
