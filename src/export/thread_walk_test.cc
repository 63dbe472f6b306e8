// SPDX-License-Identifier: Apache-2.0
#include "export/thread_walk.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "export/sample_trace.h"
#include "trace/owner_state.h"

namespace culprit::export_::TEST_FILE {
namespace {

using trace::Event;
using trace::ThreadId;

// All events by owner, the slow way.
std::vector<std::pair<ThreadId, std::vector<Event>>> Expected(const trace::Trace& trace) {
  std::vector<std::pair<ThreadId, std::vector<Event>>> expected;
  for (size_t i = 0; i <= trace.dictionary.threads().size(); ++i) {
    const bool none = i == trace.dictionary.threads().size();
    const ThreadId thread = none ? ThreadId::none() : ThreadId(i);
    std::vector<Event> events;
    for (const Event& event : trace.events) {
      if (OwnerOf(event) == thread) events.push_back(event);
    }
    trace::SortByTime(events);
    if (!none || !events.empty()) expected.emplace_back(thread, events);
  }
  return expected;
}

TEST(WalkThreads, GivesEveryThreadsEventsWhateverTheRounds) {
  const trace::Trace trace = SampleTrace();
  for (uint64_t round : {1u, 2u, 5u, 100u}) {
    std::vector<std::pair<ThreadId, std::vector<Event>>> seen;
    const auto summary = WalkThreads(
        SampleReader(), nullptr,
        [&](ThreadId thread, const std::vector<Event>& events) {
          seen.emplace_back(thread, events);
          return Status();
        },
        round);
    ASSERT_TRUE(summary.ok());
    EXPECT_EQ(summary.value().events, trace.events.size());
    EXPECT_EQ(seen, Expected(trace)) << "rounds of " << round;
  }
}

TEST(WalkThreads, EndsWithTheVisitorsError) {
  const auto summary = WalkThreads(SampleReader(), nullptr, [](ThreadId, const auto&) {
    return Status(Error{.message = "enough"});
  });
  ASSERT_FALSE(summary.ok());
  EXPECT_EQ(summary.error().message, "enough");
}

}  // namespace
}  // namespace culprit::export_::TEST_FILE
