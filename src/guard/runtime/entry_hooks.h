// SPDX-License-Identifier: Apache-2.0
//
// Which function entries are hooked for what: all of them for training, those of
// a plan for guarding, and the C library's calls that are detoured. Function ids
// of the training are given here, and told to culprit in functions.PID.
//
// Under the session's lock. A change from training to guards replaces hooks first
// and removes the rest then: on x86-64 a hook can be replaced where one could not
// be put in while threads run (patcher.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "guard/runtime/hook.h"
#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

struct HookCounts {
  uint32_t patched = 0;
  uint32_t refused = 0;
  bool writable = true;  // false: this system lets code not be changed
};

void MakePatcher();

// A call of the C library to be detoured.
struct DetourRequest {
  uint64_t entry = 0;
  uint64_t replacement = 0;
  uint64_t* original = nullptr;
  bool done = false;
};
// Returns how many are in force.
uint32_t InstallDetours(std::span<DetourRequest> requests);
void RemoveDetours(std::span<const uint64_t> entries);

// Every function of every live module that the plan does not skip. Again: what
// came since.
HookCounts InstallTraining(const LoadedPlan& plan);
// The guards of the plan; the training's hooks and other guards are removed.
HookCounts InstallGuards(const LoadedPlan& plan);
void RemoveGuards(std::span<const uint64_t> entries);
// Neither training nor guards, until another plan. Where hooks cannot come while threads run,
// those of the training are replaced by some that do nothing, for guards to replace.
void EndEntryHooks();
void RemoveEverything();

// The first places where trampolines are (wire::SlotsHeader::islands).
void FillIslands(std::atomic<uint64_t> (&begins)[wire::kIslands]);

// Writes functions.PID: whole, or in a child what its parent does not have.
bool WriteFunctions();

}  // namespace culprit::guard::runtime
