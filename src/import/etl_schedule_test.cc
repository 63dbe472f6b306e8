// SPDX-License-Identifier: Apache-2.0
// Random schedules, written as an ETW log file while a simulation keeps its own
// account of every wait: the import must give the same account.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "import/etl_builder.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

constexpr uint64_t kKernel = 0xfffff800'00000000;
constexpr uint64_t kApp = 0x400000;
constexpr uint16_t kCpus = 3;
constexpr uint32_t kThreads = 8;

// Thread, begin, end, who ended it, stack.
using Wait = std::tuple<int64_t, int64_t, int64_t, std::string, std::string>;

class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed) {
    builder_.Process({EtlBuilder::kStart}, kEtlProcessRundownStart, 100, "app");
    builder_.Image({EtlBuilder::kStart}, kEtlImageRundownStart, 100, kApp, 0x100000, "app");
    builder_.Image({EtlBuilder::kStart}, kEtlImageRundownStart, 0, kKernel, 0x100000, "nt");
    for (uint32_t tid = 1; tid <= kThreads; ++tid) {
      builder_.Thread({EtlBuilder::kStart}, kEtlThreadRundownStart, 100, tid);
      threads_[tid] = {};
    }
    running_.resize(kCpus, 0);
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
  }
  // Every ready thread runs once more, so that all stacks are recorded; then the
  // account of waits is complete.
  void Finish() {
    for (uint16_t cpu = 0; cpu < kCpus; ++cpu) {
      now_ += 10;
      SwitchTo(cpu, 0, State::kReady);
    }
    for (uint32_t tid = NextReady(); tid != 0; tid = NextReady()) {
      now_ += 10;
      SwitchTo(0, tid, State::kReady);
      now_ += 10;
      SwitchTo(0, 0, State::kWaiting);
    }
    const auto hexadecimal = [](uint64_t value) {
      char text[20];
      std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(value));
      return std::string(text);
    };
    for (const auto& [tid, begin, end, waker, place] : open_) {
      waits_.emplace_back(
          tid, begin, end, waker,
          "app!+0x8;app!" + hexadecimal(place) + ";nt!+0x8;nt!" + hexadecimal(place));
    }
    std::sort(waits_.begin(), waits_.end());
  }
  std::string Bytes() const { return builder_.Bytes(); }
  std::vector<Wait> waits() const { return waits_; }

 private:
  enum class State { kReady, kRunning, kWaiting };
  struct Thread {
    State state = State::kReady;
    bool was_seen = false;
    uint64_t wait_begin = 0;
    uint64_t place = 0;          // where it waits
    uint64_t late_stack_of = 0;  // the user part of its last switch-in is still to come
  };

  uint64_t Pick(uint64_t count) { return random_() % count; }

  void Step() {
    now_ += 1 + Pick(50);
    const auto cpu = static_cast<uint16_t>(Pick(kCpus));
    const uint32_t tid = running_[cpu];
    switch (Pick(4)) {
      case 0:
        return SwitchTo(cpu, NextReady(), State::kReady);
      case 1:
        return SwitchTo(cpu, Pick(2) == 0 ? NextReady() : 0, State::kWaiting);
      case 2:
        return Wake(cpu);
      default:
        if (tid != 0) TellLateStack(tid, cpu);
    }
  }

  uint32_t NextReady() {
    std::vector<uint32_t> ready;
    for (const auto& [tid, thread] : threads_) {
      if (thread.state == State::kReady) ready.push_back(tid);
    }
    return ready.empty() ? 0 : ready[Pick(ready.size())];
  }

  void SwitchTo(uint16_t cpu, uint32_t next, State left_as) {
    const uint32_t prev = running_[cpu];
    if (prev == 0 && next == 0) return;
    if (prev != 0) TellLateStack(prev, cpu);
    builder_.Switch({now_, cpu}, prev, next, left_as == State::kReady ? 1 : 5);
    if (prev != 0) {
      Thread& thread = threads_[prev];
      thread.state = left_as;
      thread.wait_begin = now_;
      thread.place = 0x10 * (1 + Pick(20));
    }
    running_[cpu] = next;
    if (next == 0) return;
    Thread& thread = threads_[next];
    thread.state = State::kRunning;
    if (!thread.was_seen) thread.place = 0x10 * (1 + Pick(20));
    thread.was_seen = true;
    builder_.Stack({now_ + 1, cpu}, now_, next, {kKernel + thread.place, kKernel + 8});
    thread.late_stack_of = now_;
  }

  void TellLateStack(uint32_t tid, uint16_t cpu) {
    Thread& thread = threads_[tid];
    if (thread.late_stack_of == 0) return;
    builder_.Stack({now_, cpu}, thread.late_stack_of, tid, {kApp + thread.place, kApp + 8});
    thread.late_stack_of = 0;
  }

  void Wake(uint16_t cpu) {
    std::vector<uint32_t> waiting;
    for (const auto& [tid, thread] : threads_) {
      if (thread.state == State::kWaiting) waiting.push_back(tid);
    }
    if (waiting.empty()) return;
    const uint32_t wakee = waiting[Pick(waiting.size())];
    const uint32_t waker = running_[cpu];
    const bool interrupt = waker == 0 || Pick(4) == 0;
    builder_.Ready({now_, cpu}, wakee, interrupt ? 1 : 0);
    Thread& thread = threads_[wakee];
    thread.state = State::kReady;
    const auto ns = [](uint64_t ticks) {
      return static_cast<int64_t>(ticks - EtlBuilder::kStart) * 100;
    };
    open_.emplace_back(wakee, ns(thread.wait_begin), ns(now_),
                       interrupt ? "[interrupt]" : "app/app (" + std::to_string(waker) + ")",
                       thread.place);
  }

  std::mt19937 random_;
  EtlBuilder builder_;
  std::map<uint32_t, Thread> threads_;
  std::vector<uint32_t> running_;  // by CPU; 0: idle
  uint64_t now_ = EtlBuilder::kStart + 1000;
  std::vector<std::tuple<int64_t, int64_t, int64_t, std::string, uint64_t>> open_;
  std::vector<Wait> waits_;
};

TEST(EtlSchedule, EveryWaitIsAsItWasSimulated) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    Simulation simulation(seed);
    simulation.Run(600);
    simulation.Finish();
    const ImportedTrace imported =
        ImportTrace(EtlImporter(), MemorySource("t.etl", simulation.Bytes()));
    ASSERT_TRUE(imported.status.ok());
    ASSERT_EQ(imported.Problem(), "") << seed;
    EXPECT_EQ(imported.Counted("switch missing from the recording, inferred"), 0u) << seed;
    std::vector<Wait> waits;
    for (const trace::Event& event : imported.trace.events) {
      if (event.kind != trace::EventKind::kWait || !event.peer.valid()) continue;
      waits.emplace_back(imported.trace.dictionary.threads()[event.thread.value].tid, event.time_ns,
                         event.end_ns(), imported.Thread(event.peer), imported.Stack(event.stack));
    }
    std::sort(waits.begin(), waits.end());
    ASSERT_GT(waits.size(), 30u);
    ASSERT_EQ(waits, simulation.waits()) << seed;
  }
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
