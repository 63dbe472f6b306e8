// SPDX-License-Identifier: Apache-2.0
//
// ParallelFor: independent work over [0, count) on a bounded number of
// threads (oneTBB underneath). Bodies run in any order; results must go to
// slots of their own, so that outcomes never depend on the thread count. With
// jobs == 1 everything runs in order on the calling thread. Exceptions are not
// used in this project; a body reports failure through what it writes.
#pragma once

#include <cstddef>
#include <functional>

namespace culprit {

// The number of hardware threads this process may use; at least 1.
size_t HardwareThreads();

// jobs == 0 means HardwareThreads().
void ParallelFor(size_t count, size_t jobs, const std::function<void(size_t)>& body);

}  // namespace culprit
