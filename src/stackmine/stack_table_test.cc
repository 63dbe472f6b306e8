// SPDX-License-Identifier: Apache-2.0
#include "stackmine/stack_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace culprit::stackmine::TEST_FILE {
namespace {

// Some frames differ in their line alone: one name, so one symbol.
trace::Dictionary RandomDictionary(std::mt19937_64& random, uint32_t lines) {
  trace::Dictionary dictionary;
  std::vector<trace::FrameId> frames;
  for (uint32_t i = 0; i < 12; ++i) {
    trace::Frame frame;
    frame.module = dictionary.InternModule(
        {.name = dictionary.Intern("m" + std::to_string(i % 3)), .path = {}, .build_id = {}});
    frame.function = dictionary.Intern("f" + std::to_string(i % 5));
    frame.line = static_cast<uint32_t>(random() % lines);
    frames.push_back(dictionary.InternFrame(frame));
  }
  std::vector<trace::StackId> stacks(1);
  for (int i = 0; i < 200; ++i) {
    stacks.push_back(
        dictionary.InternStack(stacks[random() % stacks.size()], frames[random() % frames.size()]));
  }
  return dictionary;
}

std::string TextOf(const StackTable& table, StackIndex stack) {
  std::vector<FrameSymbol> frames;
  table.Frames(stack, frames);
  std::string text;
  for (const FrameSymbol frame : frames) {
    if (!text.empty()) text += ';';
    text += table.FrameName(frame);
  }
  return text;
}

TEST(StackTable, StacksOfADictionaryAreOneWhereTheirNamesAre) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const trace::Dictionary dictionary = RandomDictionary(random, seed % 2 == 0 ? 1 : 3);
    StackTable table;
    DictionaryStacks brought(dictionary, table);
    std::map<std::string, StackIndex> by_text;
    for (int i = 0; i < 400; ++i) {
      const trace::StackId id(random() % dictionary.stacks().size());
      const StackIndex stack = brought.Bring(id);
      const std::string text = dictionary.StackText(id);
      EXPECT_EQ(TextOf(table, stack), text);
      EXPECT_EQ(by_text.try_emplace(text, stack).first->second, stack) << seed;
      if (i % 50 == 7 && seed % 3 == 0) {
        brought.ExpectOthers();
        const FrameSymbol other = table.InternFrame(i % 100 == 7 ? "m1!f1" : "other", 0, true);
        const StackIndex between = table.InternStack(kNoStack, other);
        EXPECT_EQ(table.InternStack(kNoStack, other), between);
      }
    }
    std::map<std::string, StackIndex> all;
    for (StackIndex s = 0; s < table.stacks(); ++s) {
      EXPECT_TRUE(all.emplace(TextOf(table, s), s).second) << seed << ' ' << TextOf(table, s);
    }
  }
}

// The same stacks, brought in two orders.
TEST(StackTable, CanonicalOrderDependsOnNamesAlone) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const trace::Dictionary dictionary = RandomDictionary(random, seed % 2 == 0 ? 1 : 3);
    const size_t count = dictionary.stacks().size();
    StackTable forward;
    StackTable backward;
    DictionaryStacks bring_forward(dictionary, forward);
    DictionaryStacks bring_backward(dictionary, backward);
    for (size_t s = 0; s < count; ++s) {
      (void)bring_forward.Bring(trace::StackId(s));
      (void)bring_backward.Bring(trace::StackId(count - 1 - s));
    }
    std::vector<std::string> texts;
    for (StackIndex s = 0; s < forward.stacks(); ++s) texts.push_back(TextOf(forward, s));
    const std::vector<StackIndex> places = forward.MakeCanonical();
    (void)backward.MakeCanonical();
    ASSERT_EQ(forward.stacks(), backward.stacks());
    ASSERT_EQ(forward.frames(), backward.frames());
    for (StackIndex s = 0; s < forward.stacks(); ++s) {
      EXPECT_EQ(TextOf(forward, places[s]), texts[s]);
      EXPECT_EQ(TextOf(forward, s), TextOf(backward, s));
      EXPECT_EQ(forward.Leaf(s), backward.Leaf(s));
      EXPECT_EQ(forward.InternStack(forward.Parent(s), forward.Leaf(s)), s);
    }
    for (FrameSymbol f = 0; f < forward.frames(); ++f) {
      EXPECT_EQ(forward.FrameName(f), backward.FrameName(f));
      EXPECT_EQ(forward.FindFrame(forward.FrameName(f)), f);
    }
  }
}

TEST(StackTable, WhatWasAppendedIsFound) {
  StackTable table;
  const FrameSymbol a = table.InternFrame("m!a", 2, true);
  const FrameSymbol b = table.InternFrame("m!b", 2, true);
  const StackIndex outer = table.AppendStack(kNoStack, a);
  const StackIndex inner = table.InternStack(outer, b);
  const StackIndex deeper = table.AppendStack(inner, a);
  EXPECT_EQ(table.InternStack(kNoStack, a), outer);
  EXPECT_EQ(table.InternStack(outer, b), inner);
  EXPECT_EQ(table.InternStack(inner, a), deeper);
  EXPECT_EQ(table.stacks(), 3U);
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
