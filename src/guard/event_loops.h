// SPDX-License-Identifier: Apache-2.0
//
// Event loops of a training session. A wait call (known by its kind, where it
// returns to, and the stack pointer) that a thread makes again and again is the
// head of a loop; the loop is held by the innermost frame of the call's stack
// that outlived the time between two waits: no function was entered at or above
// its stack pointer. It is an event loop if its waits receive events from outside
// (epoll, poll, accept, reads, timers), or if other threads wake it again and
// again by the object it waits on (condition, semaphore, futex): the signal-wait
// relation of 002 section 4.1. A loop inside another's iterations is dropped: the
// outermost wins. But where threads are handed connections, one after the other,
// and each then waits for the requests of its own (a thread for each connection,
// from a pool), the loop over requests is the one that counts: the wait outside of
// it is known as one that hands over. Loops of all threads and processes with one
// holder are one.
//
// A loop may look for work first and wait only if there is none: a worker takes what is
// in its queue, a thread of a connection reads what has arrived. A busy one goes round
// many times without a wait. So it turns where the holder calls what leads to the wait.
// Whether that holds for a loop that waits for events from outside is seen by what it
// does between the call and the wait (learn.cc); not for one that waits by reading, as
// programs on a terminal do: there the lines that come at once are one thing to do.
//
// LoopScan (loop_scan.h) reads the logs and gathers the evidence that decides here.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "guard/loop_scan.h"
#include "guard/profile.h"

namespace culprit::guard {

struct EventLoop {
  uint32_t holder = kNoIndex;
  bool external = false;
  bool hand_over = false;
  bool holder_unwound = true;  // the runtime can find the holder on the stack
  std::vector<uint32_t> woken_by;
  // Offsets in bytes, as ProfileSite::base_offset.
  std::map<WaitSite, int32_t> sites;
  bool parks = false;          // as ProfileLoop::parks
  std::vector<Context> turns;  // ascending; of an external loop, where it may turn
};

// By falling number of waits.
std::vector<EventLoop> FindEventLoops(const LoopScan& scan, uint64_t min_iterations);

}  // namespace culprit::guard
