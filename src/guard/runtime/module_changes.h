// SPDX-License-Identifier: Apache-2.0
//
// Notices that libraries were loaded or unloaded. Detouring dlopen would change
// who seems to call it (search paths depend on that), so the loader's counters
// are looked at instead: at waits, at most every 50 ms. Never in a child that was
// forked from a process with threads, where another thread may have held the
// loader's lock.
#pragma once

#include <cstdint>

namespace culprit::guard::runtime {

// It is time to look; `now` in ticks.
bool MayModulesHaveChanged(uint64_t now);

// Looks. The first look says no.
bool HaveModulesChanged();

}  // namespace culprit::guard::runtime
