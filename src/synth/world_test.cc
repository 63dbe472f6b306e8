// SPDX-License-Identifier: Apache-2.0
#include "synth/world.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "synth/behaviour.h"
#include "synth/call_graph.h"
#include "synth/scenario.h"

namespace culprit::synth::TEST_FILE {
namespace {

std::vector<std::string> FramesOf(const World& world, WorldStack stack) {
  std::vector<std::string> frames;
  for (; stack != kNoStack; stack = world.stacks()[stack].parent) {
    const World::Frame& frame = world.frames()[world.stacks()[stack].frame];
    frames.insert(frames.begin(), frame.module + "!" + frame.function);
  }
  return frames;
}

bool Contains(const std::vector<std::string>& frames,
              const std::vector<std::string_view>& pattern) {
  size_t found = 0;
  for (const std::string& frame : frames) {
    if (found < pattern.size() && frame == pattern[found]) ++found;
  }
  return found == pattern.size();
}

TEST(CallGraph, HasThousandsOfFunctionsOfDistinctNames) {
  const CallGraph graph(1);
  EXPECT_GT(graph.size(), 5000u);
  std::set<std::pair<uint32_t, std::string>> names;
  for (FunctionIndex i = 0; i < graph.size(); ++i) {
    EXPECT_TRUE(names.emplace(graph.function(i).module, graph.function(i).name).second);
  }
}

TEST(CallGraph, WalksOfOneStartShareFunctions) {
  const CallGraph graph(1);
  Random random(9);
  std::set<FunctionIndex> second;
  for (int i = 0; i < 400; ++i) {
    std::vector<FunctionIndex> walk;
    graph.Walk("Browser", 2, random, walk);
    ASSERT_EQ(walk.size(), 2u);
    second.insert(walk[1]);
  }
  // Six entries with six callees each.
  EXPECT_LE(second.size(), 36u);
  EXPECT_GE(second.size(), 10u);
}

TEST(World, IsAFunctionOfItsSeed) {
  const World a(7, 37);
  const World b(7, 37);
  const World c(8, 37);
  ASSERT_EQ(a.stacks().size(), b.stacks().size());
  const WorldStack last = static_cast<WorldStack>(a.stacks().size() - 1);
  EXPECT_EQ(FramesOf(a, last), FramesOf(b, last));
  EXPECT_NE(a.frames()[a.frames().size() / 2].function, c.frames()[a.frames().size() / 2].function);
}

TEST(World, EveryStackOfAPlantHoldsItsPattern) {
  const World world(3, 37);
  const PlantStacks& p = world.plants();
  const std::vector<std::pair<Plant, const StackPool*>> pools = {
      {kFileTableLock, &p.ui_restore_session}, {kShortPathName, &p.short_path_fault},
      {kGlyphHotLoop, &p.find_glyph},          {kGraphicsHardFault, &p.menu_lock},
      {kAcceptRetryLoop, &p.accept_retry},     {kDiskProtection, &p.hold_until_settled},
      {kDirectDiskRead, &p.read_direct},       {kUserInput, &p.wait_for_input},
      {kHousekeeping, &p.housekeeping}};
  ASSERT_EQ(pools.size() + 1, static_cast<size_t>(kPlantCount));
  for (const auto& [plant, pool] : pools) {
    for (WorldStack stack : pool->stacks) {
      EXPECT_TRUE(Contains(FramesOf(world, stack), BehaviourOf(plant).pattern))
          << BehaviourOf(plant).name;
    }
  }
}

TEST(World, OrdinaryStacksHoldNoPattern) {
  const World world(3, 37);
  std::vector<const Code*> codes;
  for (size_t kind = 0; kind < static_cast<size_t>(Kind::kCount); ++kind) {
    codes.push_back(&world.code(static_cast<Kind>(kind)));
  }
  for (size_t i = 0; i < kNamedScenarios + 16; ++i) codes.push_back(&world.ScenarioCode(i));
  size_t checked = 0;
  for (const Code* code : codes) {
    for (const StackPool* pool :
         {&code->compute, &code->lock_wait, &code->lock_release, &code->request,
          &code->request_wait, &code->take, &code->reply, &code->disk_read, &code->disk_write,
          &code->sleep, &code->start}) {
      for (WorldStack stack : pool->stacks) {
        const std::vector<std::string> frames = FramesOf(world, stack);
        for (const Behaviour& row : Behaviours()) {
          ASSERT_FALSE(Contains(frames, row.pattern)) << row.name;
        }
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 4000u);
}

// 001 figure 5: the same bug along different call paths.
TEST(World, ShortPathNameHasFourOrMoreWaysToTheFault) {
  const World world(3, 37);
  std::set<std::vector<std::string>> ways;
  for (WorldStack stack : world.plants().short_path_fault.stacks) {
    const std::vector<std::string> frames = FramesOf(world, stack);
    const auto from = std::find(frames.begin(), frames.end(), "kernel32!GetShortPathName");
    const auto to = std::find(frames.begin(), frames.end(), "kernel!MmAccessFault");
    ASSERT_LT(from, to);
    ways.emplace(from, to);
  }
  EXPECT_GE(ways.size(), 4u);
}

TEST(World, SomeStacksRecurse) {
  const World world(3, 37);
  size_t recursive = 0;
  for (WorldStack stack : world.ScenarioCode(kWebPageNavigation).compute.stacks) {
    const std::vector<std::string> frames = FramesOf(world, stack);
    recursive += std::set<std::string>(frames.begin(), frames.end()).size() < frames.size();
  }
  EXPECT_GT(recursive, 0u);
}

TEST(Scenario, GeneratedNamesAreDistinct) {
  std::set<std::string> names;
  for (size_t i = 0; i < 3000; ++i) EXPECT_TRUE(names.insert(GeneratedScenarioName(i)).second);
}

}  // namespace
}  // namespace culprit::synth::TEST_FILE
