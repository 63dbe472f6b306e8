// SPDX-License-Identifier: Apache-2.0
#include "trace/hand_overs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "trace/small_trace.h"

namespace culprit::trace::TEST_FILE {
namespace {

// CPUs that go from thread to thread, as a scheduler would have it: by waits, by
// preemption, through idleness, now and then with a sample.
class BusyMachine {
 public:
  BusyMachine(uint64_t seed, size_t cpus, size_t threads_each)
      : random_(seed), small_(0, INT64_C(1) << 50) {
    for (size_t cpu = 0; cpu < cpus; ++cpu) {
      for (size_t i = 0; i < threads_each; ++i) {
        threads_.push_back({.name = std::to_string(cpu) + "/" + std::to_string(i)});
      }
    }
    for (size_t cpu = 0; cpu < cpus; ++cpu) {
      for (int turn = 0; turn < 400; ++turn) Turn(cpu, cpu * threads_each, threads_each);
      now_ns_ = 0;
      running_ = nullptr;
    }
  }
  Trace& trace() { return small_.trace; }

 private:
  struct Thread {
    std::string name;
    int64_t left_ns = 0;
    bool preempted = false;
  };
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  void Turn(size_t cpu, size_t first, size_t count) {
    Thread* next = &threads_[first + static_cast<size_t>(Below(static_cast<int64_t>(count)))];
    if (next == running_) return;
    const Thread* before = running_;
    if (running_ == nullptr || Below(5) == 0) {
      before = nullptr;
      now_ns_ += 1 + Below(1000);
    }
    BecomeReady(*next, static_cast<uint16_t>(cpu), before);
    Run(*next, static_cast<uint16_t>(cpu));
    running_ = next;
  }

  void BecomeReady(Thread& thread, uint16_t cpu, const Thread* before) {
    int64_t woken_ns = thread.left_ns;
    if (!thread.preempted) {
      woken_ns += Below(now_ns_ - thread.left_ns + 1);
      small_.Add(EventKind::kWait, thread.name, thread.left_ns, woken_ns, "m!wait", cpu);
    }
    Event& ready = small_.Add(EventKind::kReady, thread.name, woken_ns, now_ns_, "m!wait", cpu);
    if (thread.preempted) ready.flags = kPreempted;
    if (before != nullptr) ready.peer = small_.Thread(before->name);
  }

  void Run(Thread& thread, uint16_t cpu) {
    for (int pieces = Below(8) == 0 ? 2 : 1; pieces > 0; --pieces) {
      const int64_t end_ns = now_ns_ + 1 + Below(50'000);
      const bool sampled = Below(8) == 0;
      Event& run = small_.Add(EventKind::kRunning, thread.name, now_ns_, end_ns,
                              sampled ? "m!main;m!work" : "", cpu);
      if (!sampled) run.flags = kNotSampled;
      now_ns_ = end_ns;
    }
    thread.left_ns = now_ns_;
    thread.preempted = Below(3) == 0;
  }

  std::mt19937_64 random_;
  SmallTrace small_;
  std::vector<Thread> threads_;
  Thread* running_ = nullptr;
  int64_t now_ns_ = 0;
};

bool Before(const Event& a, const Event& b) {
  const auto key = [](const Event& event) {
    return std::tuple(event.time_ns, event.thread.value, event.dur_ns, event.kind);
  };
  return key(a) < key(b);
}

std::vector<Event> Sorted(std::vector<Event> events) {
  std::sort(events.begin(), events.end(), Before);
  return events;
}

std::vector<Event> Reread(const Trace& trace, WriterOptions options) {
  auto reader = TraceReader::FromBytes(EncodeTrace(trace, options), "memory");
  EXPECT_TRUE(reader.ok());
  Trace read = std::move(reader.value()).ReadAll();
  EXPECT_TRUE(read.diagnostics.empty());
  return Sorted(std::move(read.events));
}

TEST(HandOvers, ABusyMachineIsGivenBack) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    BusyMachine machine(seed, 1 + seed % 4, 2 + seed % 9);
    const std::vector<Event> events = Sorted(machine.trace().events);
    for (const size_t block : {3, 100, 65'536}) {
      ASSERT_EQ(Reread(machine.trace(), {.block_events = block}), events)
          << "seed " << seed << ", blocks of " << block;
    }
    ASSERT_EQ(Reread(machine.trace(), {.zstd_level = kNoCompression}), events);
  }
}

TEST(HandOvers, AreStoredOnce) {
  BusyMachine machine(7, 4, 8);
  const size_t size = EncodeTrace(machine.trace()).size();
  // Ready somewhere else: then nobody takes over.
  for (Event& event : machine.trace().events) {
    if (event.kind != EventKind::kRunning) event.cpu = 9;
  }
  EXPECT_LT(size, EncodeTrace(machine.trace()).size() * 5 / 6);
}

// The oracle: all moments of a CPU, one after the other.
struct NaiveHandOvers {
  std::vector<uint64_t> times;

  uint64_t AtOrAfter(uint64_t time, uint32_t more) const {
    for (const uint64_t each : times) {
      if (each >= time && more-- == 0) return each;
    }
    return UINT64_MAX;
  }
  uint32_t StepsTo(uint64_t from, uint64_t time, uint32_t max) const {
    uint32_t steps = 0;
    for (const uint64_t each : times) {
      if (each < from) continue;
      if (each == time) return steps <= max ? steps : HandOvers::kNowhere;
      ++steps;
    }
    return HandOvers::kNowhere;
  }
};

TEST(HandOvers, AnswerAsALookAtAllOfThem) {
  std::mt19937_64 random(3);
  std::vector<Event> events;
  NaiveHandOvers naive;
  for (int64_t end = 1; end < 6000; end += 1 + static_cast<int64_t>(random() % 20)) {
    Event run = {.time_ns = end - 1, .dur_ns = 1, .cpu = 5, .kind = EventKind::kRunning};
    Event ready = {.time_ns = 0, .dur_ns = end, .cpu = 5, .kind = EventKind::kReady};
    if (random() % 4 == 0) ready.cpu = 6;
    events.push_back(run);
    events.push_back(ready);
    if (ready.cpu == 5) naive.times.push_back(static_cast<uint64_t>(end));
  }
  HandOvers hand_overs;
  hand_overs.Find(events, 0);
  ASSERT_EQ(hand_overs.size(), naive.times.size());
  EXPECT_EQ(hand_overs.AtOrAfter(6, 0, 0), HandOvers::kNowhere) << "nobody left that CPU";
  EXPECT_EQ(hand_overs.AtOrAfter(7, 0, 0), HandOvers::kNowhere);
  uint64_t from = 0;
  for (int i = 0; i < 20'000; ++i) {
    // Mostly forward, as events are asked for.
    if (i % 500 == 0) hand_overs.BeginOwner();
    from = random() % 20 == 0 ? random() % 6100 : from + random() % 30;
    const auto more = static_cast<uint32_t>(random() % 4);
    const uint32_t at = hand_overs.AtOrAfter(5, from, more);
    ASSERT_EQ(at == HandOvers::kNowhere ? UINT64_MAX : hand_overs.TimeOf(at),
              naive.AtOrAfter(from, more));
    const uint64_t to = from + random() % 60;
    ASSERT_EQ(hand_overs.StepsTo(5, from, to, 3), naive.StepsTo(from, to, 3));
  }
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
