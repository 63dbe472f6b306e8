// SPDX-License-Identifier: Apache-2.0
//
// WorldBuilder: fills a World. Stacks are described by short paths of three
// kinds of steps: "module!function" is that frame; "~3fs.sys" is a random walk
// of three calls that starts in fs.sys; "*Browser" is a walk that starts in
// Browser and is as long as it takes to reach the wanted depth. A pool is some
// random variants of one path. Lives only while the World is built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "synth/call_graph.h"
#include "synth/random.h"
#include "synth/world.h"

namespace culprit::synth {

using Path = std::vector<std::string_view>;

class WorldBuilder {
 public:
  WorldBuilder(uint64_t seed, size_t mean_depth, World& world);
  void Build();

 private:
  enum class Family { kWindows, kKernel, kLinux };

  void BuildCodes();
  void BuildScenarios();
  void BuildHttpCalls();
  void BuildTabCreatePlant();
  void BuildStartupPlant();
  void BuildBugPlants();
  void BuildNoisePlants();
  Code MakeCode(Family family, const Path& thread, std::string_view module);
  // The frames between a thread's start and its loop.
  std::vector<std::string> MakeLoop(std::string_view module);
  // Variants of `root`, a filler in `module` (none: no filler), one of `tails`.
  StackPool MakePool(const Path& root, std::string_view module, const std::vector<Path>& tails,
                     size_t count);
  StackPool Variants(const Path& path, size_t count);
  WorldStack MakeStack(const Path& path);
  WorldStack Extend(WorldStack parent, std::string_view module, std::string_view function);

  const CallGraph graph_;
  Random random_;
  size_t mean_depth_;
  size_t depth_;  // wanted by what is being built
  World& world_;
  std::unordered_map<std::string, uint32_t> frames_;
  std::unordered_map<uint64_t, WorldStack> stacks_;
};

}  // namespace culprit::synth
