// SPDX-License-Identifier: Apache-2.0
//
// Stage: one step of a run that many hosts share: the same verb over the tasks
// 0..count-1 of a run folder. Tasks of a stage do not depend on each other; a
// stage begins when the one before it is whole. A task is done when its output
// is in the run folder and verifies, and for no other reason: what a process
// returned or a scheduler believes does not count. So resuming after any
// failure is running what is not done, and running a task twice is harmless.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace culprit::scale {

enum class Verb : uint8_t { kMap, kReduce, kFinalize };

inline constexpr std::array<std::string_view, 3> kVerbNames = {"map", "reduce", "finalize"};

inline std::string_view VerbName(Verb verb) { return kVerbNames[static_cast<size_t>(verb)]; }

struct Stage {
  Verb verb = Verb::kMap;
  uint64_t count = 0;
  // Whether the output of a task is there and verifies. Cheap where it is not
  // there: engines ask again and again. Called from several threads.
  std::function<bool(uint64_t index)> done;
  // Does the task in this process; only engines that stay in it call this.
  // Called from several threads.
  std::function<Status(uint64_t index)> run;
};

}  // namespace culprit::scale
