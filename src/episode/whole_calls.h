// SPDX-License-Identifier: Apache-2.0
//
// Whole calls: what is compared must be told apart in the same way. Where one
// side of a question knows the operations of a call (futex(WAIT), futex(WAKE))
// and another does not (a recording of a tool that drops arguments, a profile of
// old), the call is taken whole, as "futex", on all of them. Counts stay exact.
// Of episodes that become equal the most frequent is kept: together they occur
// at least so often.
#pragma once

#include <set>
#include <span>
#include <string>

#include "episode/profile.h"
#include "episode/syscall_log.h"

namespace culprit::episode {

using CallNames = std::set<std::string, std::less<>>;

// Calls whose operation one side mostly lacks and another has. All have the
// profile's symbols. `another_knows`: there is a side besides that knows all.
CallNames CallsToTakeWhole(const Profile& profile, std::span<const SyscallLog* const> logs,
                           bool another_knows = false);

void TakeWhole(const CallNames& calls, Profile& profile);
void TakeWhole(const CallNames& calls, SymbolTable& symbols, SyscallLog& log);

}  // namespace culprit::episode
