// SPDX-License-Identifier: Apache-2.0
// Impact and contrast of random corpora against the definitions written out.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "causality/contrast.h"
#include "causality/extract.h"
#include "causality/impact.h"
#include "causality/naive_causality.h"
#include "trace/random_trace.h"
#include "waitgraph/timelines_random.h"

namespace culprit::causality::TEST_FILE {
namespace {

constexpr size_t kMaxPaths = 20'000;

struct RandomCorpus {
  std::vector<trace::Trace> traces;
  std::vector<std::string> names;
  std::vector<std::string> globs;
};

// Stacks of a few modules in any mixture instead of the schedule's own, so that the
// ways to an event pass different components.
void MixStacks(trace::Trace& trace, std::mt19937_64& random) {
  static const char* const kModules[] = {"app", "libc.so.6", "[kernel]", "gui", "net"};
  trace::Dictionary& d = trace.dictionary;
  std::vector<trace::StackId> stacks = {trace::StackId()};
  for (int i = 0; i < 14; ++i) {
    const char* module = kModules[random() % 5];
    const std::string function(1, static_cast<char>('A' + random() % 4));
    const trace::StackId caller =
        random() % 2 == 0 ? trace::StackId() : stacks[random() % stacks.size()];
    stacks.push_back(d.InternStack(caller, d.InternFrame(module, function)));
  }
  for (trace::Event& event : trace.events) event.stack = stacks[random() % stacks.size()];
}

RandomCorpus MakeCorpus(uint64_t seed) {
  static const std::vector<std::vector<std::string>> kGlobs = {
      {"app"},
      {"app!A"},
      {"app!B", "app!U"},
      {"libc*"},
      {"[kernel]!*"},
      {"app!A", "app!K"},
      {"io_schedule", "app!U"},
      {"app!D", "app!C"},
      {},
      {"app", "gui"},
      {"net!*", "libc*", "gui!A"},
      {"?", "net"},
  };
  std::mt19937_64 random(seed * 77 + 5);
  RandomCorpus corpus;
  corpus.globs = kGlobs[random() % kGlobs.size()];
  const size_t traces = 1 + random() % 3;
  for (size_t t = 0; t < traces; ++t) {
    trace::Trace trace = waitgraph::RandomSchedule({.seed = seed * 10 + t,
                                                    .threads = 2 + random() % 5,
                                                    .steps = 30 + random() % 150,
                                                    .faulty = seed % 8 >= 6})
                             .Make();
    if (seed % 2 == 1) MixStacks(trace, random);
    trace.metadata.end_ns = std::max<int64_t>(trace.metadata.end_ns, 20);
    const auto end_ns = static_cast<uint64_t>(trace.metadata.end_ns);
    for (size_t i = 0; i < 2 + random() % 5; ++i) {
      trace::Instance instance;
      instance.scenario = trace.dictionary.Intern(random() % 3 == 0 ? "Other" : "Open");
      instance.thread = trace::ThreadId(random() % 2);
      instance.t0_ns = static_cast<int64_t>(random() % end_ns);
      instance.t1_ns = std::min(trace.metadata.end_ns,
                                instance.t0_ns + 1 + static_cast<int64_t>(random() % end_ns));
      if (instance.t0_ns < instance.t1_ns) trace.instances.push_back(instance);
    }
    corpus.traces.push_back(std::move(trace));
    corpus.names.push_back("trace" + std::to_string(t));
  }
  return corpus;
}

Evidence Extract(const RandomCorpus& corpus, bool backwards = false) {
  ExtractOptions options;
  options.component.globs = corpus.globs;
  Evidence sum;
  for (size_t i = 0; i < corpus.traces.size(); ++i) {
    const size_t t = backwards ? corpus.traces.size() - 1 - i : i;
    if (corpus.traces[t].instances.empty()) continue;
    AddEvidence(ExtractTrace(corpus.traces[t], corpus.names[t], options), sum);
  }
  return sum;
}

// False if a graph unfolds into too many paths.
bool NaiveInstances(const RandomCorpus& corpus, std::vector<NaiveInstance>& instances) {
  for (size_t t = 0; t < corpus.traces.size(); ++t) {
    const trace::Trace& trace = corpus.traces[t];
    const NaiveTrace naive(trace, corpus.names[t], corpus.globs);
    for (size_t i = 0; i < trace.instances.size(); ++i) {
      NaiveInstance instance;
      instance.trace = corpus.names[t];
      instance.name = corpus.names[t] + ":" + std::to_string(i);
      instance.scenario = trace.dictionary.Text(trace.instances[i].scenario);
      instance.dur_ns = trace.instances[i].dur_ns();
      if (!naive.Chains(trace.instances[i], kMaxPaths, instance)) return false;
      instances.push_back(std::move(instance));
    }
  }
  return true;
}

TEST(RandomCorpora, HaveTheImpactOfTheDefinitions) {
  uint64_t rows = 0;
  int64_t propagated_ns = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const RandomCorpus corpus = MakeCorpus(seed);
    std::map<std::string, std::map<std::string, NaiveTimes>> expected;
    for (size_t t = 0; t < corpus.traces.size(); ++t) {
      const NaiveTrace naive(corpus.traces[t], corpus.names[t], corpus.globs);
      for (const trace::Instance& instance : corpus.traces[t].instances) {
        naive.Impact(instance, expected);
      }
    }
    const ImpactResult result = MeasureImpact(Extract(corpus), {.resamples = 0});
    std::vector<std::pair<ImpactRow, std::string>> all = {{result.whole, ""}};
    for (const ImpactRow& row : result.scenarios) all.emplace_back(row, "");
    for (const ImpactRow& row : result.components) all.emplace_back(row, row.component);
    for (const ImpactRow& row : result.cells) all.emplace_back(row, row.component);
    size_t with_time = 0;
    for (const auto& [row, component] : all) {
      const NaiveTimes& times = expected[row.scenario][component];
      ASSERT_EQ(row.d_wait_ns, times.wait_ns) << seed << " " << row.component;
      ASSERT_EQ(row.d_run_ns, times.run_ns) << seed << " " << row.component;
      ASSERT_EQ(row.d_waitdist_ns, static_cast<int64_t>(times.distinct.size())) << seed;
      if (times.wait_ns + times.run_ns > 0) ++with_time;
      propagated_ns += row.d_wait_ns - row.d_waitdist_ns;
    }
    size_t expected_rows = 0;
    for (const auto& [scenario, components] : expected) {
      for (const auto& [component, times] : components) {
        if (times.wait_ns + times.run_ns > 0) ++expected_rows;
      }
    }
    ASSERT_EQ(with_time, expected_rows) << seed;
    rows += with_time;
  }
  EXPECT_GT(rows, 10'000U);
  EXPECT_GT(propagated_ns, 1000);
}

TEST(RandomCorpora, HaveTheChainsOfTheDefinitions) {
  uint64_t places = 0;
  uint64_t skipped = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const RandomCorpus corpus = MakeCorpus(seed);
    std::vector<NaiveInstance> expected;
    if (!NaiveInstances(corpus, expected)) {
      ++skipped;
      continue;
    }
    const Evidence evidence = Extract(corpus);
    ASSERT_EQ(evidence.instances.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(evidence.InstanceName(i), expected[i].name);
      std::map<NaivePlace, NaiveCost> actual;
      for (uint64_t r = evidence.rows_begin(i); r < evidence.instances[i].rows_end; ++r) {
        NaivePlace place;
        for (ChainIndex c = evidence.rows[r].node; c != kNoChain;) {
          const ChainNode& node = evidence.forest.nodes()[c];
          place.push_back({std::string(Name(node.kind)),
                           std::string(evidence.Signature(node.first)),
                           std::string(evidence.Signature(node.second))});
          c = node.parent;
        }
        std::reverse(place.begin(), place.end());
        actual[place] = {evidence.rows[r].cost_ns, evidence.rows[r].events};
      }
      ASSERT_EQ(actual, expected[i].places) << seed << " " << expected[i].name;
      places += actual.size();
    }
  }
  EXPECT_GT(places, 20'000U);
  EXPECT_LT(skipped, 200U);
}

void ExpectSame(const ContrastResult& actual, const NaiveContrast& expected, uint64_t seed) {
  ASSERT_EQ(actual.component_ns, expected.root_ns) << seed;
  ASSERT_EQ(actual.pruned_ns, expected.pruned_ns) << seed;
  ASSERT_EQ(actual.meta_patterns, expected.metas.size()) << seed;
  ASSERT_EQ(actual.contrasts, expected.contrasts.size()) << seed;
  ASSERT_EQ(actual.patterns.size(), expected.patterns.size()) << seed;
  int64_t all_ns = 0;
  int64_t impactful_ns = 0;
  for (const ContrastPattern& pattern : actual.patterns) {
    const auto it = expected.patterns.find(pattern.tuple);
    ASSERT_NE(it, expected.patterns.end()) << seed;
    const NaivePattern& naive = it->second;
    ASSERT_EQ(pattern.cost_ns, naive.cost_ns) << seed;
    ASSERT_EQ(pattern.count, naive.count) << seed;
    ASSERT_EQ(pattern.instances, naive.instances.size()) << seed;
    ASSERT_EQ(pattern.traces, naive.traces.size()) << seed;
    ASSERT_EQ(pattern.fast_cost_ns, naive.fast_cost_ns) << seed;
    ASSERT_EQ(pattern.fast_count, naive.fast_count) << seed;
    ASSERT_EQ(pattern.slow_only, naive.fast_count == 0) << seed;
    ASSERT_TRUE(expected.contrasts.count(pattern.why.tuple) == 1) << seed;
    ASSERT_TRUE(NaiveContains(pattern.tuple, pattern.why.tuple)) << seed;
    int64_t most_ns = 0;
    for (const auto& [name, cost_ns] : naive.instances) most_ns = std::max(most_ns, cost_ns);
    ASSERT_EQ(pattern.examples.at(0).cost_ns, most_ns) << seed;
    ASSERT_EQ(naive.instances.at(pattern.examples[0].instance), most_ns) << seed;
    all_ns += naive.cost_ns;
    if (most_ns > actual.classes.t_slow_ns) impactful_ns += naive.cost_ns;
  }
  ASSERT_EQ(actual.patterns_ns, all_ns) << seed;
  ASSERT_EQ(actual.impactful_ns, impactful_ns) << seed;
}

TEST(RandomCorpora, HaveTheContrastsOfTheDefinitions) {
  uint64_t patterns = 0;
  uint64_t not_slow_only = 0;
  uint64_t compared = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    const RandomCorpus corpus = MakeCorpus(seed);
    const Evidence evidence = Extract(corpus);
    ContrastOptions options;
    options.scenario = "Open";
    options.classes.fast = {.kind = Threshold::Kind::kPercentile, .percentile = 55};
    options.classes.slow = {.kind = Threshold::Kind::kPercentile, .percentile = 60};
    options.max_segment = 1 + seed % 5;
    options.significance.deals = 0;
    const auto result = FindContrasts(evidence, options);
    std::vector<NaiveInstance> instances;
    if (!result.ok() || !NaiveInstances(corpus, instances)) continue;
    std::erase_if(instances, [](const NaiveInstance& i) { return i.scenario != "Open"; });
    const Classes& classes = result.value().classes;
    const NaiveContrast expected =
        NaiveContrasts(instances, classes.t_fast_ns, classes.t_slow_ns, options.max_segment);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(result.value(), expected, seed));
    ++compared;
    patterns += expected.patterns.size();
    for (const auto& [tuple, pattern] : expected.patterns) {
      if (pattern.fast_count > 0) ++not_slow_only;
    }
  }
  EXPECT_GT(compared, 1000U);
  EXPECT_GT(patterns, 5000U);
  EXPECT_GT(not_slow_only, 500U);
}

TEST(RandomTraces, OfNoMeaningAreLookedAtWithoutHarm) {
  uint64_t instances = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    trace::Trace trace =
        trace::RandomTrace({.seed = seed, .events = 400, .functions = 6, .wild = seed % 2 == 1});
    ExtractOptions options;
    options.component.by = static_cast<By>(seed % 4);
    options.always_automatic = seed % 3 == 0;
    const Evidence evidence = ExtractTrace(trace, "t", options);
    instances += evidence.instances.size();
    const ImpactResult impact = MeasureImpact(evidence);
    EXPECT_LE(impact.whole.d_waitdist_ns, impact.whole.d_wait_ns);
    for (const ScenarioFacts& scenario : DescribeScenarios(evidence)) {
      ContrastOptions contrast;
      contrast.scenario = scenario.name;
      contrast.significance.deals = 20;
      const auto result = FindContrasts(evidence, contrast);
      EXPECT_TRUE(!result.ok() || result.value().component_ns >= result.value().pruned_ns);
    }
  }
  EXPECT_GT(instances, 100U);
}

std::string Describe(const ContrastResult& result) {
  std::string text;
  for (const ContrastPattern& p : result.patterns) {
    for (const auto* set : {&p.tuple.wait, &p.tuple.unwait, &p.tuple.running}) {
      for (const std::string& name : *set) text += name + " ";
      text += "| ";
    }
    text += std::to_string(p.cost_ns) + " " + std::to_string(p.count) + " " +
            std::to_string(p.p_value) + " " + std::to_string(p.p_single) + " " +
            (p.examples.empty() ? "" : p.examples[0].instance) + "\n";
  }
  return text;
}

TEST(RandomCorpora, GiveTheSameInAnyOrderOfTheTraces) {
  uint64_t patterns = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const RandomCorpus corpus = MakeCorpus(seed);
    ContrastOptions options;
    options.scenario = "Open";
    options.classes.fast = {.kind = Threshold::Kind::kPercentile, .percentile = 55};
    options.classes.slow = {.kind = Threshold::Kind::kPercentile, .percentile = 60};
    options.significance.deals = 60;
    options.significance.jobs = 1 + seed % 3;
    const Evidence forwards = Extract(corpus);
    const Evidence backwards = Extract(corpus, true);
    const auto first = FindContrasts(forwards, options);
    options.significance.jobs = 2;
    const auto second = FindContrasts(backwards, options);
    ASSERT_EQ(first.ok(), second.ok());
    if (!first.ok()) continue;
    ASSERT_EQ(Describe(first.value()), Describe(second.value())) << seed;
    patterns += first.value().patterns.size();
    const ImpactResult a = MeasureImpact(forwards, {.resamples = 50, .jobs = 1});
    const ImpactResult b = MeasureImpact(backwards, {.resamples = 50, .jobs = 2});
    ASSERT_EQ(a.components.size(), b.components.size());
    for (size_t i = 0; i < a.components.size(); ++i) {
      ASSERT_EQ(a.components[i].component, b.components[i].component);
      ASSERT_EQ(a.components[i].ia_wait_interval.has_value(),
                b.components[i].ia_wait_interval.has_value());
      if (!a.components[i].ia_wait_interval) continue;
      ASSERT_EQ(a.components[i].ia_wait_interval->low, b.components[i].ia_wait_interval->low);
      ASSERT_EQ(a.components[i].ia_opt_interval->high, b.components[i].ia_opt_interval->high);
    }
  }
  EXPECT_GT(patterns, 500U);
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
