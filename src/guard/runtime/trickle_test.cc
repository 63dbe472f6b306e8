// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/trickle.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "guard/runtime/tracked_thread.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;
constexpr uint64_t kOne = 0xaaaadc42e9c0;
constexpr uint64_t kOther = 0xaaaadc42f000;

epoll_event Output(uint64_t data) { return {.events = EPOLLOUT, .data = {.u64 = data}}; }
epoll_event Input(uint64_t data) { return {.events = EPOLLIN, .data = {.u64 = data}}; }
epoll_event Both(uint64_t data) { return {.events = EPOLLIN | EPOLLOUT, .data = {.u64 = data}}; }

class Trickle : public TrackedThread {
 protected:
  Trickle() {
    AddType(wire::UnitKind::kIteration, 3600'000 * kMs, 0);
    MakePlan(0, kMs);
    // The loop is known from its first wait on.
    Begin(1);
    End();
  }
  // The head's wait returns with these.
  void Return(const std::vector<epoll_event>& events) {
    const auto ready = static_cast<uint32_t>(events.size());
    FollowIfDue(*state_, plan_, FirstOf(events.data(), ready), ready);
    if (ready != 0) Begin(ready);
  }
  // One iteration that works for so long.
  void Iterate(const std::vector<epoll_event>& events, uint64_t work_ns = 20 * kUs) {
    Return(events);
    const uint64_t until = ReadTicks() + TicksOfNs(work_ns);
    while (ReadTicks() < until) {
    }
    End();
  }
  void IterateTimes(int times, const std::vector<epoll_event>& events,
                    uint64_t work_ns = 20 * kUs) {
    for (int i = 0; i < times; ++i) Iterate(events, work_ns);
  }
  size_t Told() const { return Records(wire::RecordKind::kViolation).size(); }
};

TEST_F(Trickle, IsToldOnceAtItsEndWithAllItsUnits) {
  Iterate({Input(kOne)});
  const uint64_t before_ns = MonotonicNs();
  IterateTimes(300, {Output(kOne)});
  const uint64_t after_ns = MonotonicNs();
  EXPECT_EQ(Told(), 0u);
  EXPECT_NE(slot_.trickle_ticks, 0u) << "looks are wanted while it goes on";
  // The thread has nothing to do for a while: that is not the output's time.
  usleep(20'000);
  Iterate({Input(kOne)});
  ASSERT_EQ(Told(), 1u);
  const wire::Violation& violation = Violation(0);
  EXPECT_NE(violation.flags & wire::Violation::kTrickles, 0u);
  EXPECT_EQ(violation.units, 296u);
  EXPECT_EQ(violation.ready, 296u);
  EXPECT_EQ(violation.threshold_ns, kMs);
  EXPECT_GE(violation.wall_ns, 296 * 20 * kUs);
  EXPECT_GE(violation.begin_ns, before_ns);
  EXPECT_LE(violation.begin_ns + violation.wall_ns, after_ns + kMs / 10);
  EXPECT_EQ(slot_.trickle_ticks, 0u);
  Iterate({Input(kOne)});
  EXPECT_EQ(Told(), 1u);
}

TEST_F(Trickle, IsShownToLooksBeforeItIsTooSlow) {
  IterateTimes(36, {Output(kOne)}, 10 * kUs);
  EXPECT_NE(slot_.trickle_ticks, 0u);
  Iterate({Input(kOne)});
  EXPECT_EQ(slot_.trickle_ticks, 0u);
  EXPECT_EQ(Told(), 0u);
}

TEST_F(Trickle, EndsWithAWaitThatReturnsNothing) {
  IterateTimes(300, {Output(kOne)});
  Return({});
  EXPECT_EQ(Told(), 1u);
}

TEST_F(Trickle, IsOfOneOutputWhateverElseIsReady) {
  for (int i = 0; i < 300; ++i) {
    std::vector<epoll_event> events = {Output(kOne), Input(kOther)};
    if (i % 2 == 1) std::swap(events[0], events[1]);
    Iterate(events);
  }
  Iterate({Input(kOther)});
  ASSERT_EQ(Told(), 1u);
  EXPECT_EQ(Violation(0).ready, 2 * 296u);
}

TEST_F(Trickle, TwoOutputsAreTwo) {
  IterateTimes(100, {Output(kOne)});
  IterateTimes(100, {Output(kOne), Output(kOther)});
  EXPECT_EQ(Told(), 0u);
  IterateTimes(100, {Output(kOther)});
  ASSERT_EQ(Told(), 1u);
  EXPECT_EQ(Violation(0).units, 196u);
  EXPECT_NE(slot_.trickle_ticks, 0u) << "the other goes on";
  Iterate({Input(kOne)});
  ASSERT_EQ(Told(), 2u);
  EXPECT_EQ(Violation(1).units, 196u);
}

TEST_F(Trickle, AreNotOutputsOfWhichEachComesOnce) {
  for (uint64_t i = 0; i < 300; ++i) Iterate({Output(kOne + i)});
  Iterate({Input(kOne)});
  EXPECT_EQ(Told(), 0u);
}

TEST_F(Trickle, IsNotADescriptorThatAlsoHasInput) {
  for (int i = 0; i < 300; ++i) Iterate({i % 3 == 0 ? Both(kOne) : Output(kOne)});
  Iterate({Input(kOne)});
  EXPECT_EQ(Told(), 0u);
}

TEST_F(Trickle, IsNotWhatIsDoneBeforeItsThreshold) {
  IterateTimes(40, {Output(kOne)}, kUs);
  Iterate({Input(kOne)});
  EXPECT_EQ(Told(), 0u);
  EXPECT_EQ(slot_.trickle_ticks, 0u);
}

TEST_F(Trickle, IsNotAFewLongUnits) {
  IterateTimes(20, {Output(kOne)}, kMs);
  Iterate({Input(kOne)});
  EXPECT_EQ(Told(), 0u);
}

TEST_F(Trickle, IsNotAPeerThatTakesLittleAtATime) {
  for (int i = 0; i < 100; ++i) {
    usleep(300);
    Iterate({Output(kOne)});
  }
  Iterate({Input(kOne)});
  EXPECT_EQ(Told(), 0u) << "the thread slept, and had nothing to do";
}

TEST_F(Trickle, NothingIsFollowedWhileCalibrating) {
  plan_.mode = wire::Mode::kCalibrate;
  IterateTimes(300, {Output(kOne)});
  Iterate({Input(kOne)});
  EXPECT_EQ(Told(), 0u);
}

TEST_F(Trickle, IsForgottenWithItsLoop) {
  IterateTimes(300, {Output(kOne)});
  DropUnit(*state_);
  Begin(1);
  End();
  EXPECT_EQ(slot_.trickle_ticks, 0u);
  Iterate({Input(kOne)});
  EXPECT_EQ(Told(), 0u);
}

TEST_F(Trickle, BeginsWhereItComesFirst) {
  IterateTimes(100, {Input(kOther), Output(kOne)});
  EXPECT_EQ(state_->followed, 0u);
  Iterate({Output(kOne), Input(kOther)});
  EXPECT_EQ(state_->followed, 1u);
  IterateTimes(299, {Input(kOther), Output(kOne)});
  Iterate({Input(kOther)});
  EXPECT_EQ(state_->followed, 0u);
  ASSERT_EQ(Told(), 1u);
  EXPECT_EQ(Violation(0).units, 296u);
}

TEST_F(Trickle, OnlyTheEventsOfEpollAreRead) {
  constexpr WaitSpec kEpoll = {"epoll_wait", wire::WaitCall::kEpoll, WaitShape::kTimeoutMs3};
  constexpr WaitSpec kPoll = {"poll", wire::WaitCall::kPoll, WaitShape::kTimeoutMs2};
  std::vector<epoll_event> events(20, Output(kOne));
  const CallArguments arguments = {{3, reinterpret_cast<long>(events.data()), 20, -1, 0, 0}};
  EXPECT_EQ(ReadyListOf(kEpoll, arguments, 20).count, kFollowed);
  EXPECT_EQ(ReadyListOf(kEpoll, arguments, 2).count, 2u);
  EXPECT_TRUE(BeginsWithOutput(ReadyListOf(kEpoll, arguments, 20)));
  EXPECT_FALSE(BeginsWithOutput(ReadyListOf(kEpoll, arguments, 0)));
  EXPECT_EQ(ReadyListOf(kPoll, arguments, 20).count, 0u);
  EXPECT_EQ(ReadyListOf(kEpoll, CallArguments{}, 20).count, 0u);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
