// SPDX-License-Identifier: Apache-2.0
#include "stackmine/anchors.h"

#include <gtest/gtest.h>

#include <cmath>

namespace culprit::stackmine::TEST_FILE {
namespace {

TEST(Bits, AreTheLogarithmWithinOneStep) {
  for (const int64_t whole : {2LL, 7LL, 1000LL, 123'456'789LL, 1LL << 40, (1LL << 62) + 12345}) {
    for (int64_t part = 1; part < whole; part = part * 3 + 1) {
      const double exact = std::log2(double(whole) / double(part)) * kBit;
      EXPECT_NEAR(Bits(part, whole), exact, 1.5) << part << " of " << whole;
      if (part > whole / 3) break;
    }
    EXPECT_EQ(Bits(whole, whole), 0u);
    EXPECT_EQ(Bits(0, whole), 0u);
  }
}

class AnchorsTest : public testing::Test {
 protected:
  void Add(const std::vector<std::string>& frames, int64_t cost_ns) {
    StackIndex stack = kNoStack;
    for (const std::string& frame : frames) {
      stack = evidence_.stacks.InternStack(stack, evidence_.stacks.InternFrame(frame, 0, true));
    }
    costs_.stacks.push_back({stack, StackKind::kWait, cost_ns});
  }
  Anchor Find(const std::string& frame) {
    const FrameSymbol symbol = *evidence_.stacks.FindFrame(frame);
    return FindAnchors(evidence_, costs_, StackKind::kWait, {symbol}, 1).front();
  }

  Evidence evidence_;
  StackCosts costs_;
};

TEST_F(AnchorsTest, AFunctionWhoseStacksShareRareFramesIsOne) {
  Add({"main", "startup", "x1", "hash", "paths", "y1", "fault"}, 100);
  Add({"main", "startup", "x2", "hash", "paths", "y2", "fault"}, 90);
  Add({"main", "startup", "x3", "hash", "paths", "y3", "fault"}, 80);
  for (int i = 0; i < 40; ++i) {
    Add({"main", "other" + std::to_string(i), "work" + std::to_string(i % 5)}, 100);
  }
  const Anchor paths = Find("paths");
  EXPECT_GE(paths.bits, kLeastBits);
  EXPECT_EQ(paths.cost_ns, 270);
  EXPECT_EQ(paths.closure.size(), 5u);
  EXPECT_EQ(Find("main").bits, 0u);
  EXPECT_EQ(Find("work1").bits, 0u);
}

TEST_F(AnchorsTest, AFewOddStacksDoNotSpoilIt) {
  for (int i = 0; i < 10; ++i) {
    Add({"main", "startup", "x" + std::to_string(i), "hash", "paths", "fault"}, 100);
  }
  Add({"service", "paths"}, 20);
  for (int i = 0; i < 40; ++i) Add({"main", "other" + std::to_string(i)}, 1000);
  EXPECT_GE(Find("paths").bits, kLeastBits);
  Add({"service2", "paths"}, 500);
  EXPECT_EQ(Find("paths").bits, 0u);
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
