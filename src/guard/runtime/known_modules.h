// SPDX-License-Identifier: Apache-2.0
//
// The modules of the process as the runtime numbers them for culprit
// (modules.PID), for plans and for unwinding. A module keeps its index for the
// life of the process; one that was unloaded stays in the list, dead, and gets a
// new index if it comes again.
//
// RefreshModules under the session's lock; ModuleAt from any thread at any time,
// signal handlers included: the list only grows, and its entries never move.
#pragma once

#include <atomic>
#include <cstdint>

#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

inline constexpr uint32_t kMaxModules = 1024;

struct KnownModule {
  LoadedModule loaded;
  std::atomic<bool> live;
};

// True: there are new ones, or some are gone.
bool RefreshModules();

uint32_t KnownModules();
const KnownModule& ModuleByIndex(uint32_t index);

// nullptr: no live module has the address.
const KnownModule* ModuleAt(uint64_t address);

// The live module of that name and build-id; nullptr: none. `foreign` is set when
// one has the name and another build-id.
const KnownModule* FindPlanModule(const wire::PlanModule& module, bool& foreign);

// Writes modules.PID anew.
bool WriteModules();

}  // namespace culprit::guard::runtime
