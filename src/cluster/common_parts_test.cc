// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cluster/alignment.h"
#include "cluster/pattern_clusters.h"
#include "cluster/random_patterns.h"

namespace culprit::cluster::TEST_FILE {
namespace {

PatternSymbols Add(SymbolWords& words, std::initializer_list<const char*> names) {
  PatternSymbols symbols;
  for (const char* name : names) symbols.push_back(words.AddNamed(name));
  return symbols;
}

PatternSymbols Concat(std::initializer_list<PatternSymbols> parts) {
  PatternSymbols all;
  for (const PatternSymbols& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// 001 figure 5: three shared segments, and between them different paths.
TEST(CommonPartsTest, Figure5OfStackMine) {
  SymbolWords words;
  const PatternSymbols one = Add(words, {"App_main", "Initialize", "InitComponents",
                                         "HashTableOperate", "GetHashCode", "GetShortPathName"});
  const PatternSymbols two =
      Add(words, {"ObOpenObjectByName", "ObpLookupObjectName", "opParseDevice", "NtfsFsdCreate",
                  "NtfsCommonCreateOnNewStack"});
  const PatternSymbols three = Add(words, {"MmAccessFault", "MiIssueHardFault", "IoPageRead"});
  const PatternSymbols wow = Add(words, {"wow64Service", "wow64System", "wow64QueryAttr"});
  const PatternSymbols direct = Add(words, {"NtQueryAttributesFile"});
  const PatternSymbols swap = Add(words, {"SwapKernelStack"});
  const PatternSymbols expand = Add(words, {"ExpandKernelStack"});
  const std::vector<PatternSymbols> members = {
      Concat({one, wow, two, swap, three}), Concat({one, direct, two, expand, three}),
      Concat({one, direct, two, swap, three}), Concat({one, two, expand, three})};
  const std::vector<CommonSegment> parts = CommonParts(members, words);
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[0].shared, one);
  EXPECT_EQ(parts[1].variants, (std::vector<PatternSymbols>{wow, direct, {}}));
  EXPECT_EQ(parts[1].variant_of_member, (std::vector<uint32_t>{0, 1, 1, 2}));
  EXPECT_TRUE(parts[1].shared.empty());
  EXPECT_EQ(parts[2].shared, two);
  EXPECT_EQ(parts[3].variants, (std::vector<PatternSymbols>{swap, expand}));
  EXPECT_EQ(parts[3].variant_of_member, (std::vector<uint32_t>{0, 1, 0, 1}));
  EXPECT_EQ(parts[4].shared, three);
}

TEST(CommonPartsTest, EveryMemberCanBeReadOffTheSegments) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    RandomPatternOptions options;
    options.seed = seed;
    options.patterns = 1 + seed % 6;
    options.symbols = 3 + seed % 9;
    options.longest = 1 + seed % 12;
    const RandomPatterns made = MakeRandomPatterns(options);
    const std::vector<CommonSegment> parts = CommonParts(made.patterns, made.words);
    for (size_t m = 0; m < made.patterns.size(); ++m) {
      PatternSymbols read;
      for (size_t i = 0; i < parts.size(); ++i) {
        const CommonSegment& part = parts[i];
        if (i > 0) {
          ASSERT_NE(part.shared.empty(), parts[i - 1].shared.empty());
        }
        if (!part.shared.empty()) {
          ASSERT_TRUE(part.variants.empty() && part.variant_of_member.empty());
          read.insert(read.end(), part.shared.begin(), part.shared.end());
        } else {
          ASSERT_EQ(part.variant_of_member.size(), made.patterns.size());
          const PatternSymbols& variant = part.variants.at(part.variant_of_member[m]);
          read.insert(read.end(), variant.begin(), variant.end());
        }
      }
      // Shared frames are shown as the first member has them.
      ASSERT_EQ(read.size(), made.patterns[m].size());
      for (size_t i = 0; i < read.size(); ++i) {
        ASSERT_EQ(made.words.ClassOf(read[i]), made.words.ClassOf(made.patterns[m][i]));
        if (m == 0) {
          ASSERT_EQ(read[i], made.patterns[0][i]);
        }
      }
    }
  }
}

TEST(CommonPartsTest, NothingInCommonIsOneVaryingSegment) {
  SymbolWords words;
  const PatternSymbols a = Add(words, {"a", "b"});
  const PatternSymbols b = Add(words, {"c"});
  const std::vector<CommonSegment> parts = CommonParts({a, b}, words);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].variants, (std::vector<PatternSymbols>{a, b}));
  EXPECT_TRUE(CommonParts({}, words).empty());
  EXPECT_TRUE(CommonParts({{}, {}}, words).empty());
}

TEST(CommonPartsTest, FramesBeyondTheLongestAlignmentVary) {
  SymbolWords words;
  const Symbol frame = words.AddNamed("recurse");
  const PatternSymbols longer(kMaxFrames + 3, frame);
  const std::vector<CommonSegment> parts = CommonParts({longer, longer}, words);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].variants, (std::vector<PatternSymbols>{PatternSymbols(3, frame)}));
  EXPECT_EQ(parts[1].shared.size(), kMaxFrames);
}

}  // namespace
}  // namespace culprit::cluster::TEST_FILE
