// SPDX-License-Identifier: Apache-2.0
#include "trace/event_census.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "trace/random_trace.h"
#include "trace/trace_writer.h"

namespace culprit::trace::TEST_FILE {
namespace {

uint64_t Marks(const std::vector<bool>& marks) {
  return static_cast<uint64_t>(std::count(marks.begin(), marks.end(), true));
}

TEST(EventCensusTest, AWriterCountsWhatItWrites) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Trace trace = RandomTrace({.seed = seed});
    EventCensus census;
    (void)EncodeTrace(trace, {.block_events = 7, .census = &census});
    std::set<uint32_t> threads;
    std::set<uint32_t> stacks;
    uint64_t waits = 0;
    uint64_t with_waker = 0;
    for (const Event& event : trace.events) {
      if (event.thread.valid()) threads.insert(event.thread.value);
      if (event.stack.valid()) stacks.insert(event.stack.value);
      const bool wait = event.kind == EventKind::kWait;
      waits += wait ? 1 : 0;
      with_waker += wait && (event.flags & (kWakerUnknown | kWakerLost)) == 0 ? 1 : 0;
    }
    EXPECT_EQ(census.waits, waits);
    EXPECT_EQ(census.waits_with_waker, with_waker);
    EXPECT_EQ(Marks(census.threads), threads.size());
    EXPECT_EQ(Marks(census.stacks), stacks.size());
    EXPECT_TRUE(std::all_of(threads.begin(), threads.end(),
                            [&](uint32_t id) { return census.threads[id]; }));
    EXPECT_TRUE(
        std::all_of(stacks.begin(), stacks.end(), [&](uint32_t id) { return census.stacks[id]; }));
  }
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
