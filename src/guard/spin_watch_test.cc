// SPDX-License-Identifier: Apache-2.0
#include "guard/spin_watch.h"

#include <gtest/gtest.h>

namespace culprit::guard::TEST_FILE {
namespace {

constexpr int64_t kPid = 10;
constexpr int64_t kTid = 11;
constexpr uint64_t kHalf = 500'000'000;
constexpr uint32_t kGet = 0;   // 10 to 20 us
constexpr uint32_t kTail = 1;  // 300 ns after every get

Profile OneLoop() {
  Profile profile;
  profile.loops.resize(1);
  profile.types.resize(2);
  for (uint64_t i = 0; i < 1000; ++i) profile.types[kGet].stats.Add(10'000 + 10 * i);
  profile.types[kTail].stats.Add(300, 1'000);
  return profile;
}

// A thread that lives by half seconds, and the watch that looks after each.
class Thread {
 public:
  explicit Thread(const Profile& profile = OneLoop()) { watch_.Use(profile); }

  // Shares of the half second, and how long units of which type take.
  struct Half {
    double cpu = 1;
    double delay = 0;
    uint64_t units = 500'000;
    uint32_t type = wire::kUnknown;
    uint64_t unit_ns = 400;
    uint64_t samples = 100;
    uint64_t other_samples = 0;  // of kGet and its length
    uint64_t read_bytes = 0;
  };
  std::optional<Spin> Live(const Half& half) {
    const uint64_t begin_ns = now_ns_;
    now_ns_ += kHalf;
    units_ += half.units;
    read_bytes_ += half.read_bytes;
    life_.cpu_ns += static_cast<uint64_t>(half.cpu * kHalf);
    life_.run_delay_ns += static_cast<uint64_t>(half.delay * kHalf);
    wire::Sample sample = {};
    sample.tid = kTid;
    sample.begin_ns = begin_ns + 1;
    for (uint64_t i = 0; i < half.samples + half.other_samples; ++i) {
      const bool other = i >= half.samples;
      sample.type = other ? kGet : half.type;
      sample.wall_ns = other ? 12'000 : half.unit_ns;
      watch_.Add(kPid, sample);
    }
    const ThreadUnits thread = {.tid = kTid, .loop = 0, .units = units_};
    if (!watch_.IsFast(kPid, thread, now_ns_)) return std::nullopt;
    return watch_.Look(kPid, thread, life_, read_bytes_, now_ns_);
  }
  // How many spins are told in so many halves.
  int Live(const Half& half, int halves) {
    int told = 0;
    for (int i = 0; i < halves; ++i) told += Live(half).has_value() ? 1 : 0;
    return told;
  }
  SpinWatch& watch() { return watch_; }
  uint64_t now_ns() const { return now_ns_; }

 private:
  SpinWatch watch_;
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t units_ = 0;
  uint64_t read_bytes_ = 4096;
  ThreadLife life_;
};

TEST(SpinWatch, TellsALoopThatTurnsThroughShortUnitsOnce) {
  Thread thread;
  EXPECT_EQ(thread.Live({.cpu = 0.2, .units = 100, .type = kGet, .unit_ns = 12'000}, 10), 0);
  std::optional<Spin> told;
  int halves = 0;
  while (!told && halves < 20) {
    told = thread.Live({});
    ++halves;
  }
  ASSERT_TRUE(told);
  EXPECT_LE(halves, 6) << "two seconds, and the looks before them";
  EXPECT_EQ(told->tid, kTid);
  EXPECT_EQ(told->wall_ns, SpinWatch::kSpinNs);
  EXPECT_EQ(told->cpu_ns, SpinWatch::kSpinNs);
  EXPECT_EQ(told->units, 2'000'000u);
  EXPECT_EQ(told->begin_ns + told->wall_ns, thread.now_ns());
  // Nine tenths of the time of training were in units of 11 us and more.
  EXPECT_GT(told->usual_ns, 10'500u);
  EXPECT_LT(told->usual_ns, 12'000u);
  EXPECT_EQ(thread.Live({}, 1000), 0) << "it goes on";
}

TEST(SpinWatch, TellsTheNextSpinOfAThreadLater) {
  Thread thread;
  EXPECT_EQ(thread.Live({}, 10), 1);
  thread.Live({.cpu = 0.1, .units = 100}, 3);
  EXPECT_EQ(thread.Live({}, 20), 0) << "so soon";
  thread.Live({.cpu = 0.1, .units = 100}, 120);
  EXPECT_EQ(thread.Live({}, 10), 1);
}

TEST(SpinWatch, AnIterationOfManyEventsIsShortByTheEvent) {
  Thread thread;
  // 100 us each, for 300 ready events that nobody serves: samples are per event.
  EXPECT_EQ(thread.Live({.units = 5000, .unit_ns = 330}, 10), 1);
}

TEST(SpinWatch, ALoopThatSleepsDoesNotSpin) {
  Thread thread;
  EXPECT_EQ(thread.Live({.cpu = 0.85}, 20), 0);
}

TEST(SpinWatch, WhoWaitsForTheCpuDoesNotSleep) {
  Thread thread;
  EXPECT_EQ(thread.Live({.cpu = 0.5, .delay = 0.48}, 10), 1);
  Thread starved;
  EXPECT_EQ(starved.Live({.cpu = 0.1, .delay = 0.88}, 10), 0) << "hardly anything of it is seen";
}

TEST(SpinWatch, ABusyLoopThatDoesItsWorkDoesNotSpin) {
  Thread gets;
  EXPECT_EQ(gets.Live({.units = 50'000, .type = kGet, .unit_ns = 6'000}, 20), 0);
  // Nothing but the shortest work there is, faster than ever.
  Profile profile = OneLoop();
  profile.types.emplace_back().stats.Add(1'000, 3'000);
  Thread pings(profile);
  EXPECT_EQ(pings.Live({.type = 2, .unit_ns = 600}, 20), 0);
  // New work that takes as long as known work.
  Thread others;
  EXPECT_EQ(others.Live({.units = 50'000, .unit_ns = 8'000}, 20), 0);
  // Some of what it does is work.
  Thread some;
  EXPECT_EQ(some.Live({.samples = 70, .other_samples = 30}, 20), 0);
}

TEST(SpinWatch, UnitsOfAKnownTypeThatStopBeforeTheirWorkSpin) {
  Thread thread;
  EXPECT_EQ(thread.Live({.type = kGet, .unit_ns = 400}, 10), 1);
  Thread few;
  EXPECT_EQ(few.Live({.samples = 90, .other_samples = 10}, 10), 1)
      << "a client is served now and then";
  // What comes after all work now comes after none.
  Thread tails;
  EXPECT_EQ(tails.Live({.type = kTail, .unit_ns = 300}, 10), 1);
}

TEST(SpinWatch, WhoReadsGetsSomewhere) {
  // Requests that training never saw, shorter than any.
  Thread thread;
  EXPECT_EQ(thread.Live({.units = 500'000, .read_bytes = 10'000'000}, 20), 0);
  EXPECT_EQ(thread.Live({.units = 500'000, .read_bytes = 100'000}, 10), 1);
}

TEST(SpinWatch, ASpinThatFollowsHardWorkIsSeen) {
  Thread thread;
  EXPECT_EQ(thread.Live({.units = 50'000, .type = kGet, .unit_ns = 9'000}, 100), 0);
  EXPECT_EQ(thread.Live({}, 10), 1);
}

TEST(SpinWatch, WithoutSamplesOrMeasuredTypesNothingIsTold) {
  Thread silent;
  EXPECT_EQ(silent.Live({.samples = 0}, 20), 0);
  Thread unmeasured((Profile()));
  EXPECT_EQ(unmeasured.Live({}, 20), 0);
  Thread few;
  EXPECT_EQ(few.Live({.units = 300}, 20), 0) << "so few units a second are no spin";
}

TEST(SpinWatch, IsSuspectFromTheFirstSamplesUntilItIsTold) {
  Thread thread;
  const auto suspect = [&] { return thread.watch().IsSuspect(kPid, kTid, thread.now_ns()); };
  thread.Live({}, 2);
  EXPECT_FALSE(suspect());
  thread.Live({});
  EXPECT_TRUE(suspect());
  thread.Live({}, 6);
  EXPECT_FALSE(suspect()) << "told";
  thread.watch().KeepOnly(kPid, {kTid, kTid + 1});
  EXPECT_EQ(thread.Live({}, 10), 0) << "still told";
  thread.watch().KeepOnly(kPid, {});
  EXPECT_EQ(thread.Live({}, 10), 1) << "a new thread of its number";
  thread.watch().Forget(kPid);
  EXPECT_EQ(thread.Live({}, 10), 1) << "another of the same number";
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
