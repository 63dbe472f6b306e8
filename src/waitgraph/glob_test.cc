// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/glob.h"

#include <gtest/gtest.h>

#include <random>

#include "base/glob.h"
#include "trace/small_trace.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

bool Naive(std::string_view glob, std::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*') {
    return Naive(glob.substr(1), text) || (!text.empty() && Naive(glob, text.substr(1)));
  }
  return !text.empty() && (glob[0] == '?' || glob[0] == text[0]) &&
         Naive(glob.substr(1), text.substr(1));
}

TEST(Glob, AgreesWithTheDefinitionOnSmallTexts) {
  std::mt19937_64 random(1);
  const auto text_of = [&](std::string_view letters, size_t max) {
    std::string text;
    for (size_t n = random() % (max + 1); n > 0; --n) text += letters[random() % letters.size()];
    return text;
  };
  for (int i = 0; i < 50'000; ++i) {
    const std::string glob = text_of("ab*?", 6);
    const std::string text = text_of("ab", 8);
    EXPECT_EQ(MatchesGlob(glob, text), Naive(glob, text)) << glob << " " << text;
  }
}

TEST(Glob, ManyStarsAreNoTrap) {
  const std::string text(5000, 'a');
  std::string glob;
  for (int i = 0; i < 200; ++i) glob += "a*";
  EXPECT_FALSE(MatchesGlob(glob + "b", text));
}

TEST(Glob, BracketsStandForThemselves) {
  EXPECT_TRUE(MatchesGlob("[ext4]!*", "[ext4]!ext4_sync_file"));
  EXPECT_FALSE(MatchesGlob("[ext4]!*", "e!f"));
}

TEST(StackFilter, TakesModuleAndFunctionOrOneOfThem) {
  trace::SmallTrace small(0, 1);
  const trace::StackId lock = small.Stack("app!Main;libssl.so!SSL_read;fs.sys!Acquire");
  const trace::StackId run = small.Stack("app!Main;app!Work");
  const auto passes = [&](std::vector<std::string> with, std::vector<std::string> without,
                          trace::StackId stack) {
    return StackFilter(small.trace.dictionary, with, without).Passes(stack);
  };
  EXPECT_TRUE(passes({"*.sys!*"}, {}, lock));
  EXPECT_FALSE(passes({"*.sys!*"}, {}, run));
  EXPECT_TRUE(passes({"SSL_read"}, {}, lock));
  EXPECT_TRUE(passes({"libssl*"}, {}, lock));
  EXPECT_FALSE(passes({"libssl*!Acquire"}, {}, lock));
  EXPECT_TRUE(passes({"nothing", "Work"}, {}, run));
  EXPECT_FALSE(passes({}, {"*!Main"}, run));
  EXPECT_TRUE(passes({}, {"fs.sys!*"}, run));
  EXPECT_FALSE(passes({"app!*"}, {"fs.sys!*"}, lock));
}

TEST(StackFilter, NoStackPassesUnlessAFrameIsAskedFor) {
  const trace::Dictionary dictionary;
  EXPECT_TRUE(StackFilter(dictionary, {}, {"*"}).Passes({}));
  EXPECT_FALSE(StackFilter(dictionary, {"*"}, {}).Passes({}));
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
