// SPDX-License-Identifier: Apache-2.0
// Contrast on simulated corpora whose truth is known (docs/synth.md): the planted
// chains are among the first ten patterns with their signature sets, what is by
// design or not to be optimized is not among the patterns at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/test_folder.h"
#include "causality/contrast.h"
#include "causality/gather.h"
#include "causality/impact.h"
#include "synth/preset.h"
#include "synth/synthesis.h"

namespace culprit::TEST_FILE {
namespace {

using causality::ContrastPattern;
using causality::ContrastResult;
using causality::Evidence;

std::vector<std::string> Sorted(const std::vector<std::string_view>& names) {
  std::vector<std::string> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

bool Names(const ContrastPattern& pattern, std::string_view signature) {
  for (const auto* set : {&pattern.tuple.wait, &pattern.tuple.unwait, &pattern.tuple.running}) {
    if (std::find(set->begin(), set->end(), signature) != set->end()) return true;
  }
  return false;
}

class ContrastTruth : public ::testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    synth::SynthesisOptions options;
    options.simulation.preset = *synth::FindPreset("drivers");
    options.simulation.preset.traces = 120;
    options.simulation.seed = GetParam();
    options.folder = folder_ / "drivers";
    Progress progress;
    auto made = synth::Synthesize(options, progress);
    ASSERT_TRUE(made.ok()) << made.error().ToString();
    truth_ = std::move(made).value().truth;
    causality::GatherOptions gather;
    gather.extract.component.globs = {"*.sys"};
    // The drivers under the encryption, so that the one that matters is the leaf.
    gather.extract.component.except = {"storport.sys", "disk.sys"};
    auto evidence = causality::GatherEvidence(options.folder, gather, progress);
    ASSERT_TRUE(evidence.ok()) << evidence.error().ToString();
    evidence_ = std::move(evidence).value();
  }

  ContrastResult Contrast(std::string_view scenario) {
    auto result = causality::FindContrasts(evidence_, {.scenario = std::string(scenario)});
    EXPECT_TRUE(result.ok()) << result.error().ToString();
    return result.ok() ? std::move(result).value() : ContrastResult();
  }

  void PlantedChainsAreAmongTheFirstTenWithTheirSets();
  void WhatIsByDesignOrNotToBeOptimizedIsNoPattern();
  void ImpactIsThatOfTheWaitsPlanted();

  TestFolder folder_;
  synth::Truth truth_;
  Evidence evidence_;
};

TEST_P(ContrastTruth, IsFound) {
  PlantedChainsAreAmongTheFirstTenWithTheirSets();
  WhatIsByDesignOrNotToBeOptimizedIsNoPattern();
  ImpactIsThatOfTheWaitsPlanted();
}

void ContrastTruth::PlantedChainsAreAmongTheFirstTenWithTheirSets() {
  size_t chains = 0;
  for (const synth::PlantedTruth& bug : truth_.bugs) {
    const synth::Behaviour& planted = synth::BehaviourOf(bug.plant);
    if (!planted.chain) continue;
    ++chains;
    const ContrastResult result = Contrast(planted.scenario);
    const ContrastPattern* found = nullptr;
    for (size_t i = 0; i < result.patterns.size() && i < 10; ++i) {
      const ContrastPattern& pattern = result.patterns[i];
      const std::vector<std::string> unwait = Sorted(planted.chain->unwait);
      if (pattern.tuple.wait == Sorted(planted.chain->wait) &&
          std::includes(pattern.tuple.unwait.begin(), pattern.tuple.unwait.end(), unwait.begin(),
                        unwait.end()) &&
          pattern.tuple.running == Sorted(planted.chain->running)) {
        found = &pattern;
        break;
      }
    }
    ASSERT_NE(found, nullptr) << planted.name;
    EXPECT_TRUE(found->slow_only) << planted.name;
    EXPECT_TRUE(found->high_impact) << planted.name;
    EXPECT_LE(found->p_value, 0.01) << planted.name;
    // Its examples are instances in which it was planted, and it is in nearly all.
    const std::set<std::string> struck(bug.instances.begin(), bug.instances.end());
    for (const causality::Example& example : found->examples) {
      EXPECT_EQ(struck.count(example.instance), 1U) << example.instance;
    }
    EXPECT_GE(found->instances * 10, struck.size() * 8) << planted.name;
  }
  EXPECT_EQ(chains, 2U);
}

void ContrastTruth::WhatIsByDesignOrNotToBeOptimizedIsNoPattern() {
  const ContrastResult result = Contrast("ExplorerOpenFolder");
  for (const ContrastPattern& pattern : result.patterns) {
    EXPECT_FALSE(Names(pattern, "dp.sys!HoldUntilSettled"));
    EXPECT_FALSE(Names(pattern, "fs.sys!ReadDirect"));
  }
  EXPECT_GT(result.pruned_ns, result.component_ns / 2);
}

void ContrastTruth::ImpactIsThatOfTheWaitsPlanted() {
  const causality::ImpactResult impact = causality::MeasureImpact(evidence_);
  int64_t planted_ns = 0;
  for (const synth::PlantedTruth& bug : truth_.bugs) {
    if (bug.plant == synth::kFileTableLock) planted_ns = bug.cost_ns;
  }
  ASSERT_GT(planted_ns, 0);
  // The planted waits are top-level waits of fv.sys, beside everyday ones.
  for (const causality::ImpactRow& row : impact.cells) {
    if (row.component != "fv.sys" || row.scenario != "BrowserTabCreate") continue;
    EXPECT_GE(row.d_wait_ns, planted_ns);
    EXPECT_LT(row.d_wait_ns, planted_ns * 3 / 2);
    return;
  }
  FAIL() << "no impact of fv.sys on BrowserTabCreate";
}

INSTANTIATE_TEST_SUITE_P(Seeds, ContrastTruth, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace culprit::TEST_FILE
