// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/timelines.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trace/conservation.h"
#include "trace/owner_state.h"
#include "trace/random_trace.h"
#include "waitgraph/timelines_random.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;
using trace::SmallTrace;
using trace::ThreadId;
using trace::ThreadKind;

TEST(Timelines, RandomSchedulesConserveTime) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const trace::Trace trace = RandomSchedule({.seed = seed}).Make();
    EXPECT_EQ(trace::CheckConservation(trace).gaps, 0U) << seed;
    EXPECT_EQ(trace::CheckConservation(trace).overlaps, 0U) << seed;
  }
}

TEST(Timelines, AtOneMomentAWaitOfLengthZeroComesFirst) {
  SmallTrace small(0, 20);
  small.Add(EventKind::kRunning, "a", 0, 10);
  small.Add(EventKind::kRunning, "a", 10, 20);
  small.Add(EventKind::kWait, "a", 10, 10);
  trace::SortByTime(small.trace.events);
  const Timelines timelines(small.trace);
  const auto tiles = timelines.tiles(small.Thread("a"));
  ASSERT_EQ(tiles.size(), 3U);
  EXPECT_EQ(timelines.event(tiles[1]).kind, EventKind::kWait);
  const auto range = timelines.TilesIn(small.Thread("a"), 10, 20);
  EXPECT_EQ(range.begin, 1U);
  EXPECT_EQ(range.end, 3U);
}

TEST(Timelines, EventsMayComeInAnyOrder) {
  SmallTrace small(0, 30);
  small.Add(EventKind::kRunning, "a", 20, 30);
  small.Add(EventKind::kWait, "a", 5, 20);
  small.Add(EventKind::kRunning, "a", 0, 5);
  const Timelines timelines(small.trace);
  const auto tiles = timelines.tiles(small.Thread("a"));
  ASSERT_EQ(tiles.size(), 3U);
  EXPECT_EQ(tiles[0], 2U);
  EXPECT_EQ(tiles[1], 1U);
  EXPECT_EQ(tiles[2], 0U);
}

// What stands at each place, as events: indexes depend on the order.
std::vector<Event> AllOf(const Timelines& timelines, std::span<const EventIndex> indexes) {
  std::vector<Event> events;
  for (const EventIndex i : indexes) events.push_back(timelines.event(i));
  return events;
}

TEST(Timelines, AreTheSameWhetherEventsComeByTimeOrByThread) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const trace::Trace by_time = RandomSchedule({.seed = seed, .faulty = seed % 2 == 1}).Make();
    trace::Trace by_thread = RandomSchedule({.seed = seed, .faulty = seed % 2 == 1}).Make();
    std::ranges::stable_sort(by_thread.events, {},
                             [](const Event& e) { return trace::OwnerOf(e).value + 1; });
    const Timelines expected(by_time);
    const Timelines timelines(by_thread);
    ASSERT_EQ(AllOf(timelines, timelines.all_tiles()), AllOf(expected, expected.all_tiles()));
    ASSERT_EQ(AllOf(timelines, timelines.all_served()), AllOf(expected, expected.all_served()));
    EXPECT_TRUE(std::ranges::equal(timelines.all_ends_ns(), expected.all_ends_ns())) << seed;
    for (size_t i = 0; i < expected.all_tiles().size(); ++i) {
      const EventIndex wait = expected.all_tiles()[i];
      const EventIndex same = timelines.all_tiles()[i];
      for (const auto find : {&Timelines::UnwaitOf, &Timelines::ServiceOf}) {
        const EventIndex a = (expected.*find)(wait);
        const EventIndex b = (timelines.*find)(same);
        ASSERT_EQ(a == kNoEvent, b == kNoEvent) << seed;
        if (a == kNoEvent) continue;
        ASSERT_EQ(expected.event(a), timelines.event(b)) << seed;
      }
    }
  }
}

// Every tile of the thread held against the window, one by one.
TEST(Timelines, RangesAreThoseOfALinearSearch) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const trace::Trace trace = RandomSchedule({.seed = seed, .faulty = seed % 4 == 3}).Make();
    const Timelines timelines(trace);
    std::mt19937_64 random(seed);
    for (size_t round = 0; round < 50; ++round) {
      const ThreadId thread(random() % trace.dictionary.threads().size());
      const auto begin_ns = static_cast<int64_t>(random() % 100);
      const int64_t end_ns = begin_ns + static_cast<int64_t>(random() % 40);
      const auto tiles = timelines.tiles(thread);
      const auto overlap = timelines.TilesIn(thread, begin_ns, end_ns);
      const auto ending = timelines.TilesEndingIn(thread, begin_ns, end_ns);
      for (size_t i = 0; i < tiles.size(); ++i) {
        const int64_t time_ns = timelines.event(tiles[i]).time_ns;
        const int64_t tile_end_ns = timelines.TileEnd(thread, i);
        const bool in = time_ns < end_ns && (tile_end_ns > begin_ns || time_ns >= begin_ns) &&
                        end_ns > begin_ns;
        EXPECT_EQ(in, i >= overlap.begin && i < overlap.end) << seed << " " << i;
        const bool ends = tile_end_ns > begin_ns && tile_end_ns <= end_ns;
        EXPECT_EQ(ends, i >= ending.begin && i < ending.end) << seed << " " << i;
      }
    }
  }
}

TEST(Timelines, TheUnwaitOfAWaitIsTheOneWithItsEndItsWakerAndItsThread) {
  uint64_t found = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const trace::Trace trace = RandomSchedule({.seed = seed, .faulty = seed % 3 == 2}).Make();
    const Timelines timelines(trace);
    for (EventIndex i = 0; i < trace.events.size(); ++i) {
      const Event& wait = trace.events[i];
      if (wait.kind != EventKind::kWait) continue;
      const auto is_it = [&](const Event& e) {
        return e.kind == EventKind::kUnwait && e.time_ns == wait.end_ns() &&
               e.thread == wait.peer && e.peer == wait.thread && wait.peer.valid();
      };
      const bool there =
          std::any_of(trace.events.begin(), trace.events.end(), is_it) && wait.thread.valid();
      const EventIndex unwait = timelines.UnwaitOf(i);
      ASSERT_EQ(there, unwait != kNoEvent) << seed << " " << i;
      if (there) {
        EXPECT_TRUE(is_it(trace.events[unwait]));
      }
      found += there ? 1 : 0;
    }
  }
  EXPECT_GT(found, 1000U);
}

TEST(Timelines, AnyTraceCanBeLaidOut) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const trace::Trace trace = trace::RandomTrace({.seed = seed, .wild = seed % 2 == 0});
    const Timelines timelines(trace);
    size_t tiles = 0;
    for (size_t t = 0; t < trace.dictionary.threads().size(); ++t) {
      tiles += timelines.tiles(ThreadId(t)).size();
    }
    EXPECT_EQ(tiles, timelines.all_tiles().size());
  }
}

TEST(Timelines, ATraceOfNothingHasNothing) {
  const trace::Trace empty;
  const Timelines timelines(empty);
  EXPECT_TRUE(timelines.tiles(ThreadId(0)).empty());
  EXPECT_TRUE(timelines.tiles(ThreadId()).empty());
  EXPECT_TRUE(timelines.served(ThreadId(7)).empty());
  EXPECT_EQ(timelines.UnwaitOf(3), kNoEvent);
}

class DiskWait : public ::testing::Test {
 protected:
  DiskWait() {
    small.Thread("[disk]", ThreadKind::kDevice);
    small.Thread("[disk 8:0]", ThreadKind::kDevice);
    small.Thread("[timer]", ThreadKind::kDevice);
    small.Thread("kworker", ThreadKind::kKernel);
    small.Add(EventKind::kWait, "a", 10, 50, "app!Read;[kernel]!io_schedule").peer =
        small.Thread("[disk]");
  }
  void Request(const std::string& by, int64_t issue_ns, int64_t complete_ns) {
    small.Add(EventKind::kHardware, "[disk 8:0]", issue_ns, complete_ns).peer = small.Thread(by);
  }
  EventIndex Service() const { return Timelines(small.trace).ServiceOf(0); }

  SmallTrace small{0, 100};
};

TEST_F(DiskWait, IsServedByTheRequestOfItsThreadThatCompletedLast) {
  Request("a", 5, 30);
  Request("a", 20, 48);
  Request("a", 12, 60);
  Request("b", 15, 50);
  EXPECT_EQ(Service(), 2U);
}

TEST_F(DiskWait, IsServedByAKernelThreadsRequestIssuedWithinIt) {
  Request("b", 15, 49);
  Request("kworker", 11, 47);
  Request("kworker", 5, 48);
  EXPECT_EQ(Service(), 2U);
}

TEST_F(DiskWait, IsNotServedByWhatCompletedBeforeOrNever) {
  Request("a", 5, 10);
  small.Add(EventKind::kHardware, "[disk 8:0]", 5, 50).flags = trace::kUnfinished;
  small.trace.events.back().peer = small.Thread("a");
  EXPECT_EQ(Service(), kNoEvent);
}

TEST_F(DiskWait, AnotherDeviceIsNotTheOneThatEndedIt) {
  small.trace.events[0].peer = small.Thread("[timer]");
  Request("a", 20, 48);
  EXPECT_EQ(Service(), kNoEvent);
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
