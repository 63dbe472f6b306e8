// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "symbol/symbolizer.h"

namespace culprit::symbol::TEST_FILE {
namespace {

TEST(JitSymbols, FindsNamesWithSpaces) {
  Diagnostics diagnostics;
  const JitSymbols symbols = JitSymbols::Parse(
      "7f0010 20 LazyCompile:~main /app.js:1\n0x7f0040 0x10 void [C] M::F(int32)\n", diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_EQ(symbols.Lookup(0x7f0010), "LazyCompile:~main /app.js:1");
  EXPECT_EQ(symbols.Lookup(0x7f002f), "LazyCompile:~main /app.js:1");
  EXPECT_EQ(symbols.Lookup(0x7f0030), "");
  EXPECT_EQ(symbols.Lookup(0x7f004f), "void [C] M::F(int32)");
  EXPECT_EQ(symbols.Lookup(0), "");
}

TEST(JitSymbols, CountsLinesThatAreNone) {
  Diagnostics diagnostics;
  const JitSymbols symbols = JitSymbols::Parse(
      "10 8 a\n\nrubbish\n20 zz b\nffffffffffffffff 2 wraps\n30 0 empty\n40 8\n50 8 c",
      diagnostics);
  EXPECT_EQ(diagnostics.total(), 5u);
  EXPECT_EQ(diagnostics.rows().begin()->second.first_offset, 8u);
  EXPECT_EQ(symbols.Lookup(0x17), "a");
  EXPECT_EQ(symbols.Lookup(0x50), "c");
}

TEST(JitSymbols, LaterLinesHideEarlierOnes) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    std::vector<std::string> expected(64);
    for (int i = 0, n = static_cast<int>(random() % 12); i < n; ++i) {
      const unsigned start = random() % 48;
      const unsigned size = 1 + random() % 15;
      const std::string name = "f" + std::to_string(i);
      char line[64];
      std::snprintf(line, sizeof line, "%x %x %s\n", start, size, name.c_str());
      text += line;
      for (unsigned at = start; at < start + size; ++at) expected[at] = name;
    }
    Diagnostics diagnostics;
    const JitSymbols symbols = JitSymbols::Parse(text, diagnostics);
    for (size_t at = 0; at < expected.size(); ++at) {
      ASSERT_EQ(symbols.Lookup(at), expected[at]) << text << "at " << at;
    }
  }
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
