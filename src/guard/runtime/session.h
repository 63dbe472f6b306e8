// SPDX-License-Identifier: Apache-2.0
//
// The runtime's session with culprit: begun once per process (by the environment
// or by an injected call), it puts the wanted plan in force, changes plans at the
// next wait of any thread when culprit wants another, and takes everything back
// at the end. Without a sound session folder, control file and plan nothing is
// changed in the process at all.
//
// Changes are made by one thread at a time, under a lock that nobody waits for.
#pragma once

#include <atomic>
#include <cstdint>

#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/near_words.h"
#include "guard/runtime/thread_state.h"

namespace culprit::guard::runtime {

// 0: a plan is in force. Else nothing was changed (the number says why, for
// culprit: SessionFailure).
enum class SessionFailure : int {
  kNone = 0,
  kAlready = 1,  // there is a session
  kNoFolder = 2,
  kNoControl = 3,
  kNoPlan = 4,  // absent, damaged, or for another program
  kNoMemory = 5,
  kNotPatched = 6,  // this system lets no code be changed
};
// A session that culprit has ended, and that no thread of the process has left
// yet because all sleep, is taken back first: a call with the folder of an ended
// session does that alone (kNoPlan).
SessionFailure StartSession(const char* folder);

// Restores every byte; logs are written out. Threads may go on.
void StopSession();
// The same when the process ends; one that was forked from a guarded one leaves its code as it is.
void EndSessionAtExit();

// nullptr: none, the program is as it was. What it points to is reached through it
// alone, which orders the loads.
inline const LoadedPlan* CurrentPlan() { return g_near.plan.load(std::memory_order_relaxed); }

// There is something to do at the next wait.
void AskForWork();

// At a wait of a thread, `now` in ticks: some loads, unless there is something to do.
bool HasWork(uint64_t now);
void DoWork();

// The program is about to make a process or its first other thread: modules that
// it opened since its last wait are looked for now, because a child whose parent
// had threads may not ask the loader, and on x86-64 entries cannot be patched once
// threads run.
void LookBeforeProcessesOrThreads();

// The program is about to lose the right to make system calls that the runtime
// needs: what stands, stands, and nothing is changed any more.
void SealSession();

}  // namespace culprit::guard::runtime
