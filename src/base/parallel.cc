// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <malloc.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace culprit {
namespace {

// The heap of a second thread grows by a page at a time, a system call each,
// which costs short parallel loops a tenth of their time. Larger steps: what is
// not used is never touched. The bound for blocks of their own is the one that
// the C library would come to by itself; it stops looking once a step is set.
void GrowHeapsInLargeSteps() {
  static const bool done = [] {
    mallopt(M_TOP_PAD, 4 << 20);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

size_t HardwareThreads() {
  return static_cast<size_t>(std::max(1, tbb::info::default_concurrency()));
}

void ParallelFor(size_t count, size_t jobs, const std::function<void(size_t)>& body) {
  if (jobs == 0) jobs = HardwareThreads();
  if (jobs == 1 || count <= 1) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  GrowHeapsInLargeSteps();
  const auto run = [&] {
    // One index a task: an index is a whole trace, so balance beats overhead.
    tbb::parallel_for(
        tbb::blocked_range<size_t>(0, count, 1),
        [&](const tbb::blocked_range<size_t>& range) {
          for (size_t i = range.begin(); i != range.end(); ++i) body(i);
        },
        tbb::simple_partitioner());
  };
  // The library's own arena has a thread for each core, and they are still awake
  // if another loop ended just now.
  if (jobs == HardwareThreads()) {
    run();
    return;
  }
  // The library caps its workers at the number of cores, and says so on standard
  // error, unless told that more are wanted.
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism,
                                    std::max(jobs, HardwareThreads()));
  tbb::task_arena arena(static_cast<int>(std::min(jobs, count)));
  arena.execute(run);
}

}  // namespace culprit
