// SPDX-License-Identifier: Apache-2.0
//
// The truth against a naive reader: sums over all events whose stack contains
// a pattern, which knows nothing of the simulator.
#include "synth/truth.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "synth/memory_sink.h"
#include "synth/simulation.h"

namespace culprit::synth::TEST_FILE {
namespace {

using trace::Event;

constexpr int64_t kSecond = 1'000'000'000;

bool Contains(const trace::Dictionary& dictionary, trace::StackId stack,
              const std::vector<std::string_view>& pattern) {
  size_t found = 0;
  for (trace::FrameId frame : dictionary.StackFrames(stack)) {
    if (found < pattern.size() && dictionary.FrameName(frame) == pattern[found]) ++found;
  }
  return found == pattern.size();
}

// Which stacks of a trace hold a pattern; stacks are few, events many.
std::vector<bool> Matching(const trace::Dictionary& dictionary, const Behaviour& row) {
  std::vector<bool> matching(dictionary.stacks().size());
  for (size_t i = 0; i < matching.size(); ++i) {
    matching[i] = Contains(dictionary, trace::StackId(i), row.pattern);
  }
  return matching;
}

struct Corpus {
  std::vector<trace::Trace> traces;
  std::vector<TraceTruth> truths;
};

Corpus Make(std::string_view like, uint64_t seed, uint64_t count, int64_t dur_ns,
            const PlantSet& plants = AllPlants()) {
  SimulationOptions options;
  options.preset = *FindPreset(like);
  options.preset.dur_ns = dur_ns;
  options.seed = seed;
  options.plants = plants;
  const World world(seed, options.preset.mean_depth);
  Corpus corpus;
  for (uint64_t i = 0; i < count; ++i) {
    MemorySink sink;
    corpus.truths.push_back(SimulateTrace(world, options, i, sink).truth);
    corpus.traces.push_back(std::move(sink.trace));
  }
  return corpus;
}

// The instance of `event`'s thread that holds the event whole, or none.
uint32_t InstanceOf(const trace::Trace& trace, const Event& event) {
  for (uint32_t i = 0; i < trace.instances.size(); ++i) {
    const trace::Instance& instance = trace.instances[i];
    if (instance.thread == event.thread && instance.t0_ns <= event.time_ns &&
        event.end_ns() <= instance.t1_ns) {
      return i;
    }
  }
  return kNoInstance;
}

void ExpectNaiveSumsAgree(const Corpus& corpus) {
  for (size_t t = 0; t < corpus.traces.size(); ++t) {
    const trace::Trace& trace = corpus.traces[t];
    for (const Behaviour& row : Behaviours()) {
      const std::vector<bool> matching = Matching(trace.dictionary, row);
      uint64_t events = 0;
      int64_t cost_ns = 0;
      std::set<uint32_t> instances;
      for (const Event& event : trace.events) {
        if (event.kind != row.event_kind || !event.stack.valid()) continue;
        if (!matching[event.stack.value]) continue;
        ++events;
        cost_ns += event.dur_ns;
        if (row.scenario.empty()) continue;
        const uint32_t instance = InstanceOf(trace, event);
        ASSERT_NE(instance, kNoInstance) << row.name;
        EXPECT_EQ(trace.dictionary.Text(trace.instances[instance].scenario), row.scenario);
        instances.insert(instance);
      }
      const Tally& tally = corpus.truths[t][row.plant];
      EXPECT_EQ(tally.events, events) << row.name;
      EXPECT_EQ(tally.cost_ns, cost_ns) << row.name;
      EXPECT_EQ(std::set<uint32_t>(tally.instances.begin(), tally.instances.end()), instances)
          << row.name;
    }
  }
}

TEST(Truth, EqualsTheNaiveSumOnDemos) {
  for (uint64_t seed : {1, 2, 3}) ExpectNaiveSumsAgree(Make("demo", seed, 3, 6 * kSecond));
}

TEST(Truth, EqualsTheNaiveSumOnTheOtherPresets) {
  ExpectNaiveSumsAgree(Make("windows-study", 4, 1, 12 * kSecond));
  ExpectNaiveSumsAgree(Make("drivers", 5, 4, 30 * kSecond));
  ExpectNaiveSumsAgree(Make("server", 6, 2, 2 * kSecond));
}

TEST(Truth, EverythingStrikesInTheFirstTrace) {
  for (uint64_t seed : {1, 2, 3, 4, 5}) {
    const Corpus corpus = Make("demo", seed, 1, 8 * kSecond);
    for (const Behaviour& row : Behaviours()) {
      EXPECT_GT(corpus.truths[0][row.plant].events, 0u) << row.name << ", seed " << seed;
    }
  }
}

TEST(Truth, NothingStrikesWhenNothingMay) {
  const Corpus corpus = Make("demo", 1, 2, 5 * kSecond, NoPlants());
  for (const Behaviour& row : Behaviours()) {
    for (const TraceTruth& truth : corpus.truths) {
      EXPECT_EQ(truth[row.plant].events > 0, row.scenario.empty()) << row.name;
    }
  }
}

TEST(Truth, ChosenBugsStrikeAlone) {
  PlantSet plants = NoPlants();
  plants[kGlyphHotLoop] = true;
  const Corpus corpus = Make("demo", 1, 1, 8 * kSecond, plants);
  EXPECT_GT(corpus.truths[0][kGlyphHotLoop].events, 0u);
  EXPECT_EQ(corpus.truths[0][kFileTableLock].events, 0u);
}

// Slow instances are slow because of the bug and by about what it costs.
TEST(Truth, StruckInstancesAreSlowerByTheCost) {
  struct Sum {
    double dur_ns = 0;
    double count = 0;
    double Mean() const { return count == 0 ? 0 : dur_ns / count; }
  };
  std::map<Plant, Sum> struck;
  std::map<Plant, Sum> ordinary;
  std::map<Plant, double> cost_ns;
  const Corpus corpus = Make("demo", 11, 30, 8 * kSecond);
  for (size_t t = 0; t < corpus.traces.size(); ++t) {
    for (const Behaviour& row : Behaviours()) {
      if (row.scenario.empty()) continue;
      const Tally& tally = corpus.truths[t][row.plant];
      cost_ns[row.plant] += static_cast<double>(tally.planted_ns);
      const std::set<uint32_t> hit(tally.instances.begin(), tally.instances.end());
      std::set<uint32_t> hit_by_any;
      for (const Tally& other : corpus.truths[t]) {
        hit_by_any.insert(other.instances.begin(), other.instances.end());
      }
      for (uint32_t i = 0; i < corpus.traces[t].instances.size(); ++i) {
        const trace::Instance& instance = corpus.traces[t].instances[i];
        if (corpus.traces[t].dictionary.Text(instance.scenario) != row.scenario) continue;
        if (hit.count(i) == 0 && hit_by_any.count(i) != 0) continue;
        Sum& sum = hit.count(i) ? struck[row.plant] : ordinary[row.plant];
        sum.dur_ns += static_cast<double>(instance.dur_ns());
        sum.count += 1;
      }
    }
  }
  for (const auto& [plant, sum] : struck) {
    ASSERT_GT(sum.count, 0) << BehaviourOf(plant).name;
    ASSERT_GT(ordinary[plant].count, 0) << BehaviourOf(plant).name;
    const double cost = cost_ns[plant] / sum.count;
    EXPECT_GT(sum.Mean() - ordinary[plant].Mean(), 0.7 * cost) << BehaviourOf(plant).name;
    EXPECT_LT(sum.Mean() - ordinary[plant].Mean(), 1.6 * cost) << BehaviourOf(plant).name;
  }
  EXPECT_EQ(struck.size(), 7u);
}

// 003 figure 1: while the user-interface thread waits for the file table, the
// delay comes through four more threads from the System worker at the disk.
TEST(Truth, FileTableChainReachesTheDiskThroughSixThreads) {
  const Corpus corpus = Make("demo", 1, 1, 8 * kSecond);
  const trace::Trace& trace = corpus.traces[0];
  const std::vector<bool> matching = Matching(trace.dictionary, BehaviourOf(kFileTableLock));
  const Event* longest = nullptr;
  for (const Event& event : trace.events) {
    if (event.kind != trace::EventKind::kWait || !matching[event.stack.value]) continue;
    if (longest == nullptr || event.dur_ns > longest->dur_ns) longest = &event;
  }
  ASSERT_NE(longest, nullptr);
  EXPECT_GT(longest->dur_ns, 100'000'000);
  std::vector<std::string> chain;
  Event at = *longest;
  while (at.peer.valid() && chain.size() < 10) {
    const trace::Thread& waker = trace.dictionary.threads()[at.peer.value];
    if (waker.kind == trace::ThreadKind::kDevice) break;
    chain.push_back(
        std::string(trace.dictionary.Text(trace.dictionary.processes()[waker.process.value].name)) +
        "/" + std::string(trace.dictionary.Text(waker.name)));
    // Of the waker's waits that ended within this one, the last long one.
    const Event* next = nullptr;
    for (const Event& event : trace.events) {
      if (event.kind == trace::EventKind::kWait && event.thread == at.peer &&
          event.dur_ns > 5'000'000 && event.end_ns() > longest->time_ns &&
          event.end_ns() <= at.end_ns() && (next == nullptr || event.end_ns() > next->end_ns())) {
        next = &event;
      }
    }
    if (next == nullptr) break;
    at = *next;
  }
  const std::vector<std::string> expected = {"Browser/W0", "Browser/W1", "AntiVirus/Worker",
                                             "ConfigurationManager/Worker", "System/Worker"};
  EXPECT_EQ(chain, expected);
}

TEST(TruthJson, NamesWhatStruckAndLeavesOutWhatDidNot) {
  TraceTruth trace = {};
  trace[kFileTableLock] = {.events = 2, .cost_ns = 30, .planted_ns = 30, .instances = {4, 7}};
  Truth truth;
  truth.like = "demo";
  truth.Add("demo-00000", trace);
  truth.Add("demo-00001", trace);
  ASSERT_EQ(truth.bugs.size(), 1u);
  EXPECT_EQ(truth.bugs[0].traces, 2u);
  EXPECT_EQ(truth.bugs[0].cost_ns, 60);
  const std::string json = TruthJson(truth);
  EXPECT_NE(json.find("\"demo-00001:7\""), std::string::npos);
  EXPECT_NE(json.find("\"fs.sys!AcquireMDU\""), std::string::npos);
  EXPECT_EQ(json.find("glyph"), std::string::npos);
}

}  // namespace
}  // namespace culprit::synth::TEST_FILE
