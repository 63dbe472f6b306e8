// SPDX-License-Identifier: Apache-2.0
//
// The writing end of ring.PID (wire.h). Any thread, signal handlers included:
// a writer never waits; a full ring loses the record, which is counted.
#pragma once

#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

// False: the ring is full, or `reach` says that the cell of a number cannot be had. `fill`
// writes the cell's kind, count and contents.
template <class Reach, class Fill>
bool WriteRecord(wire::RingHeader& ring, wire::Cell* cells, Reach reach, Fill fill) {
  uint64_t number = ring.head.load(std::memory_order_relaxed);
  for (;;) {
    if (!reach(number % wire::kRingCells)) return false;
    wire::Cell& cell = cells[number % wire::kRingCells];
    const uint64_t turn = 2 * (number / wire::kRingCells);
    const uint64_t found = cell.turn.load(std::memory_order_acquire);
    if (found == turn) {
      if (!ring.head.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) {
        continue;
      }
      fill(cell);
      cell.turn.store(turn + 1, std::memory_order_release);
      return true;
    }
    // Another took this number meanwhile, or the reader has not come by.
    const uint64_t now = ring.head.load(std::memory_order_relaxed);
    if (now == number) return false;
    number = now;
  }
}

}  // namespace culprit::guard::runtime
