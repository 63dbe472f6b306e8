// SPDX-License-Identifier: Apache-2.0
//
// Laws that every simulated trace keeps, checked naively on whole traces of
// every preset.
#include "synth/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "synth/memory_sink.h"

namespace culprit::synth::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;

struct Made {
  SimulationOptions options;
  trace::Metadata metadata;
  trace::Trace trace;
  SimulationResult result;
};

Made Make(std::string_view like, uint64_t seed, uint64_t index, int64_t dur_ns = 0,
          size_t cores = 0) {
  Made made;
  made.options.preset = *FindPreset(like);
  made.options.seed = seed;
  if (dur_ns != 0) made.options.preset.dur_ns = dur_ns;
  if (cores != 0) made.options.preset.cores = cores;
  const World world(seed, made.options.preset.mean_depth);
  MemorySink sink;
  made.metadata = TraceMetadata(made.options, index);
  made.result = SimulateTrace(world, made.options, index, sink);
  made.trace = std::move(sink.trace);
  return made;
}

constexpr int64_t kSecond = 1'000'000'000;

std::vector<Made> Samples() {
  std::vector<Made> all;
  all.push_back(Make("demo", 1, 0));
  all.push_back(Make("demo", 2, 5, 5 * kSecond, 1));
  all.push_back(Make("demo", 3, 0, 6 * kSecond, 2));
  all.push_back(Make("windows-study", 4, 0, 8 * kSecond));
  all.push_back(Make("drivers", 5, 1, 20 * kSecond));
  all.push_back(Make("server", 6, 0, 2 * kSecond));
  return all;
}

class Laws : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (samples_ == nullptr) samples_ = new std::vector<Made>(Samples());
  }
  static std::vector<Made>* samples_;
};
std::vector<Made>* Laws::samples_ = nullptr;

std::map<uint32_t, std::vector<Event>> TilesByThread(const trace::Trace& trace) {
  std::map<uint32_t, std::vector<Event>> tiles;
  for (const Event& event : trace.events) {
    if (trace::IsTile(event.kind)) tiles[event.thread.value].push_back(event);
  }
  for (auto& [thread, list] : tiles) {
    std::stable_sort(list.begin(), list.end(), [](const Event& a, const Event& b) {
      return std::tuple(a.time_ns, a.end_ns()) < std::tuple(b.time_ns, b.end_ns());
    });
  }
  return tiles;
}

TEST_F(Laws, TilesCoverTheLifeOfEveryThreadWithoutGapOrOverlap) {
  for (const Made& made : *samples_) {
    const auto tiles = TilesByThread(made.trace);
    const auto& threads = made.trace.dictionary.threads();
    for (uint32_t i = 0; i < threads.size(); ++i) {
      if (threads[i].kind == trace::ThreadKind::kDevice) {
        EXPECT_EQ(tiles.count(i), 0u);
        continue;
      }
      ASSERT_EQ(tiles.count(i), 1u);
      int64_t at =
          threads[i].start_ns == trace::kNoTime ? made.metadata.begin_ns : threads[i].start_ns;
      for (const Event& tile : tiles.at(i)) {
        ASSERT_EQ(tile.time_ns, at);
        ASSERT_GE(tile.dur_ns, 0);
        at = tile.end_ns();
      }
      ASSERT_EQ(at, threads[i].end_ns == trace::kNoTime ? made.metadata.end_ns : threads[i].end_ns);
    }
  }
}

TEST_F(Laws, TilesFollowEachOtherAsAThreadCan) {
  for (const Made& made : *samples_) {
    for (const auto& [thread, tiles] : TilesByThread(made.trace)) {
      for (size_t i = 1; i < tiles.size(); ++i) {
        const Event& tile = tiles[i];
        const EventKind before = tiles[i - 1].kind;
        const bool preempted = (tile.flags & trace::kPreempted) != 0;
        if (tile.kind == EventKind::kWait) {
          ASSERT_EQ(before, EventKind::kRunning);
        } else if (tile.kind == EventKind::kRunning) {
          ASSERT_NE(before, EventKind::kWait);
          ASSERT_GT(tile.dur_ns, 0);
        } else if (!preempted) {
          ASSERT_EQ(before, EventKind::kWait);
          ASSERT_EQ(tile.stack, tiles[i - 1].stack);
        } else {
          ASSERT_NE(before, EventKind::kWait);
        }
      }
    }
  }
}

TEST_F(Laws, RunningSpansOfACpuNeverOverlap) {
  for (const Made& made : *samples_) {
    std::map<uint16_t, std::vector<Event>> by_cpu;
    for (const Event& event : made.trace.events) {
      if (event.kind == EventKind::kRunning) by_cpu[event.cpu].push_back(event);
    }
    EXPECT_LE(by_cpu.size(), made.options.preset.cores);
    for (auto& [cpu, list] : by_cpu) {
      std::sort(list.begin(), list.end(),
                [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
      for (size_t i = 1; i < list.size(); ++i) {
        ASSERT_LE(list[i - 1].end_ns(), list[i].time_ns);
      }
    }
  }
}

// Every span has as many sampled tiles as ticks of its core fall inside it.
TEST_F(Laws, SpansAreCutExactlyAtTheTicksOfTheirCpu) {
  for (const Made& made : *samples_) {
    struct Span {
      int64_t begin_ns, end_ns;
      uint16_t cpu;
      std::vector<int64_t> cuts;
      size_t sampled;
    };
    std::vector<Span> spans;
    std::map<uint16_t, int64_t> phase;
    const int64_t period = made.metadata.sample_period_ns;
    for (const auto& [thread, tiles] : TilesByThread(made.trace)) {
      for (size_t i = 0; i < tiles.size(); ++i) {
        const Event& tile = tiles[i];
        if (tile.kind != EventKind::kRunning) continue;
        const bool sampled = (tile.flags & trace::kNotSampled) == 0;
        ASSERT_EQ(sampled, tile.stack.valid());
        const bool goes_on = i > 0 && tiles[i - 1].kind == EventKind::kRunning;
        if (!goes_on) {
          spans.push_back({tile.time_ns, tile.end_ns(), tile.cpu, {}, sampled ? 1u : 0u});
          continue;
        }
        ASSERT_TRUE(sampled && spans.back().sampled > 0);
        spans.back().cuts.push_back(tile.time_ns);
        spans.back().end_ns = tile.end_ns();
        ++spans.back().sampled;
        phase.emplace(tile.cpu, tile.time_ns % period);
      }
    }
    for (const Span& span : spans) {
      if (phase.count(span.cpu) == 0) continue;
      std::vector<int64_t> ticks;
      int64_t tick = span.begin_ns - span.begin_ns % period + phase[span.cpu] - period;
      for (; tick < span.end_ns; tick += period) {
        if (tick > span.begin_ns) ticks.push_back(tick);
      }
      ASSERT_EQ(ticks.size(), span.sampled);
      if (!ticks.empty()) ticks.pop_back();
      ASSERT_EQ(ticks, span.cuts);
    }
  }
}

TEST_F(Laws, EveryWaitHasTheOneUnwaitThatEndedIt) {
  for (const Made& made : *samples_) {
    using Key = std::tuple<int64_t, uint32_t, uint32_t>;
    std::multiset<Key> waits;
    std::multiset<Key> unwaits;
    for (const Event& event : made.trace.events) {
      if (event.kind == EventKind::kUnwait) {
        ASSERT_EQ(event.dur_ns, 0);
        ASSERT_TRUE(event.stack.valid());
        unwaits.emplace(event.time_ns, event.thread.value, event.peer.value);
      } else if (event.kind == EventKind::kWait) {
        if (event.flags & trace::kWakerUnknown) {
          ASSERT_FALSE(event.peer.valid());
          ASSERT_EQ(event.end_ns(), made.metadata.end_ns);
        } else {
          waits.emplace(event.end_ns(), event.peer.value, event.thread.value);
        }
      }
    }
    EXPECT_EQ(waits, unwaits);
  }
}

TEST_F(Laws, AWakerIsADeviceOrOnTheCpuAtThatMoment) {
  for (const Made& made : *samples_) {
    const auto tiles = TilesByThread(made.trace);
    const auto& threads = made.trace.dictionary.threads();
    for (const Event& event : made.trace.events) {
      if (event.kind != EventKind::kUnwait) continue;
      if (threads[event.thread.value].kind == trace::ThreadKind::kDevice) continue;
      const auto& list = tiles.at(event.thread.value);
      const bool running =
          std::any_of(std::lower_bound(list.begin(), list.end(), event.time_ns,
                                       [](const Event& a, int64_t t) { return a.end_ns() < t; }),
                      list.end(), [&](const Event& tile) {
                        return tile.kind == EventKind::kRunning && tile.cpu == event.cpu &&
                               tile.time_ns <= event.time_ns && event.time_ns <= tile.end_ns();
                      });
      ASSERT_TRUE(running);
    }
  }
}

TEST_F(Laws, DiskServiceIsConservedAndWakesItsRequester) {
  for (const Made& made : *samples_) {
    std::set<std::tuple<int64_t, uint32_t, uint32_t>> unwaits;
    for (const Event& event : made.trace.events) {
      if (event.kind != EventKind::kUnwait) continue;
      unwaits.emplace(event.time_ns, event.thread.value, event.peer.value);
    }
    int64_t busy_ns = 0;
    int64_t last_end_ns = 0;
    for (const Event& event : made.trace.events) {
      if (event.kind != EventKind::kHardware) continue;
      ASSERT_GE(event.time_ns, last_end_ns);
      last_end_ns = event.end_ns();
      busy_ns += event.dur_ns;
      if (event.arg1 != 0 || (event.flags & trace::kUnfinished)) continue;
      ASSERT_EQ(unwaits.count({event.end_ns(), event.thread.value, event.peer.value}), 1u);
    }
    EXPECT_GT(busy_ns, 0);
    EXPECT_EQ(busy_ns, made.result.disk_busy_ns);
  }
}

TEST_F(Laws, InstancesAreTheirMarkers) {
  for (const Made& made : *samples_) {
    ASSERT_GT(made.trace.instances.size(), 0u);
    std::map<int64_t, const Event*> begins;
    std::map<int64_t, const Event*> ends;
    for (const Event& event : made.trace.events) {
      if (event.kind != EventKind::kMarker) continue;
      ((event.flags & trace::kBegin) ? begins : ends)[event.arg1] = &event;
    }
    ASSERT_EQ(begins.size(), made.trace.instances.size());
    for (size_t i = 0; i < made.trace.instances.size(); ++i) {
      const trace::Instance& instance = made.trace.instances[i];
      const Event& begin = *begins.at(static_cast<int64_t>(i));
      EXPECT_EQ(begin.time_ns, instance.t0_ns);
      EXPECT_EQ(begin.thread, instance.thread);
      EXPECT_EQ(begin.arg0, static_cast<int64_t>(instance.scenario.value));
      const auto end = ends.find(static_cast<int64_t>(i));
      EXPECT_EQ(end == ends.end() ? made.metadata.end_ns : end->second->time_ns, instance.t1_ns);
      EXPECT_LT(instance.t0_ns, instance.t1_ns);
    }
  }
}

TEST_F(Laws, TrapsOfRealTracesAreThere) {
  size_t zero_waits_by_threads = 0;
  size_t zero_waits_by_timers = 0;
  size_t preempted = 0;
  size_t zero_ready = 0;
  size_t open_waits = 0;
  size_t truncated = 0;
  std::map<std::pair<size_t, int64_t>, int> tids;
  for (size_t i = 0; i < samples_->size(); ++i) {
    const trace::Trace& trace = (*samples_)[i].trace;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kWait && event.dur_ns == 0) {
        const bool device =
            trace.dictionary.threads()[event.peer.value].kind == trace::ThreadKind::kDevice;
        ++(device ? zero_waits_by_timers : zero_waits_by_threads);
      }
      open_waits += event.kind == EventKind::kWait && (event.flags & trace::kWakerUnknown) != 0;
      preempted += event.kind == EventKind::kReady && (event.flags & trace::kPreempted) != 0;
      zero_ready += event.kind == EventKind::kReady && event.dur_ns == 0;
    }
    for (const trace::Frame& frame : trace.dictionary.frames()) {
      const bool cut = trace.dictionary.Text(frame.function) == trace::kTruncatedFunction;
      EXPECT_EQ(cut, !frame.module.valid());
      truncated += cut;
    }
    for (const trace::Thread& thread : trace.dictionary.threads()) {
      if (thread.tid >= 0) ++tids[{i, thread.tid}];
    }
  }
  EXPECT_GT(zero_waits_by_threads, 0u);
  EXPECT_GT(zero_waits_by_timers, 0u);
  EXPECT_GT(preempted, 0u);
  EXPECT_GT(zero_ready, 0u);
  EXPECT_GT(open_waits, 0u);
  EXPECT_GT(truncated, 0u);
  EXPECT_TRUE(std::any_of(tids.begin(), tids.end(), [](const auto& row) { return row.second > 1; }))
      << "no thread id was used twice";
}

TEST(Simulation, IsAFunctionOfSeedAndNumber) {
  const Made a = Make("demo", 1, 3, 2 * kSecond);
  const Made b = Make("demo", 1, 3, 2 * kSecond);
  const Made c = Make("demo", 1, 4, 2 * kSecond);
  EXPECT_EQ(a.trace.events, b.trace.events);
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_NE(a.trace.events, c.trace.events);
}

// The numbers of 001's study: 152,000 waits, 44,500 samples, here for a sixth
// of the time.
TEST(Simulation, WindowsStudyIsAsDenseAndDeepAsThePaper) {
  const Made made = Make("windows-study", 1, 1, 10 * kSecond);
  uint64_t waits = 0;
  uint64_t samples = 0;
  uint64_t depth = 0;
  for (const Event& event : made.trace.events) {
    const bool wait = event.kind == EventKind::kWait;
    const bool sample =
        event.kind == EventKind::kRunning && (event.flags & trace::kNotSampled) == 0;
    waits += wait;
    samples += sample;
    if (wait || sample) depth += made.trace.dictionary.stacks()[event.stack.value].depth;
  }
  EXPECT_NEAR(static_cast<double>(waits), 152'000.0 / 6, 2'500);
  EXPECT_NEAR(static_cast<double>(samples), 44'500.0 / 6, 900);
  EXPECT_NEAR(static_cast<double>(depth) / static_cast<double>(waits + samples), 37, 3);
}

TEST(Simulation, DriversHasThePapersSizeAndSpreadOfScenarios) {
  std::set<std::string> scenarios;
  uint64_t instances = 0;
  uint64_t events = 0;
  const int kTraces = 12;
  for (int i = 1; i <= kTraces; ++i) {
    const Made made = Make("drivers", 1, static_cast<uint64_t>(i));
    events += made.result.events;
    instances += made.trace.instances.size();
    for (const trace::Instance& instance : made.trace.instances) {
      scenarios.emplace(made.trace.dictionary.Text(instance.scenario));
    }
  }
  EXPECT_NEAR(static_cast<double>(instances) / kTraces, 26, 6);
  EXPECT_NEAR(static_cast<double>(events) / kTraces, 30'000, 5'000);
  EXPECT_GT(scenarios.size(), 80u);
}

TEST(Simulation, SyscallStacksCanBeLeftOut) {
  SimulationOptions options;
  options.preset = *FindPreset("server");
  options.preset.dur_ns = kSecond;
  options.syscall_stacks = false;
  const World world(1, options.preset.mean_depth);
  MemorySink sink;
  SimulateTrace(world, options, 0, sink);
  uint64_t calls = 0;
  uint64_t retries = 0;
  for (const Event& event : sink.trace.events) {
    if (event.kind != EventKind::kSyscall) continue;
    ++calls;
    retries += event.arg0 == 202 && event.arg1 == -11;
    EXPECT_FALSE(event.stack.valid());
  }
  EXPECT_GT(calls, retries);
  EXPECT_GT(retries, 2'000u);
}

}  // namespace
}  // namespace culprit::synth::TEST_FILE
