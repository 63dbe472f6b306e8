// SPDX-License-Identifier: Apache-2.0
#include "guard/plan_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "guard/affordable_guards.h"
#include "guard/learn.h"
#include "guard/random_profile.h"
#include "guard/thresholds.h"

namespace culprit::guard::TEST_FILE {
namespace {

// A plan's tables, read as the runtime would.
struct Plan {
  wire::PlanHeader header;
  std::vector<wire::PlanModule> modules;
  std::vector<wire::PlanFunction> functions;
  std::vector<wire::PlanContext> contexts;
  std::vector<wire::PlanSite> sites;
  std::vector<wire::PlanType> types;
};

template <class Row>
void TakeRows(const std::string& bytes, size_t& at, uint32_t count, std::vector<Row>& rows) {
  rows.resize(count);
  ASSERT_LE(at + count * sizeof(Row), bytes.size());
  std::memcpy(rows.data(), bytes.data() + at, count * sizeof(Row));
  at += count * sizeof(Row);
}

Plan Parse(const std::string& bytes) {
  Plan plan = {};
  std::memcpy(&plan.header, bytes.data(), sizeof(plan.header));
  EXPECT_EQ(plan.header.magic, wire::Magic("CGPLAN01"));
  EXPECT_EQ(plan.header.version, wire::kWireVersion);
  EXPECT_EQ(plan.header.bytes, bytes.size());
  uint64_t checksum = 0xcbf29ce484222325ULL;
  for (size_t i = sizeof(plan.header); i < bytes.size(); ++i) {
    checksum = (checksum ^ static_cast<uint8_t>(bytes[i])) * 0x100000001b3ULL;
  }
  EXPECT_EQ(plan.header.checksum, checksum);
  size_t at = sizeof(plan.header);
  TakeRows(bytes, at, plan.header.modules, plan.modules);
  TakeRows(bytes, at, plan.header.functions, plan.functions);
  TakeRows(bytes, at, plan.header.contexts, plan.contexts);
  TakeRows(bytes, at, plan.header.sites, plan.sites);
  TakeRows(bytes, at, plan.header.types, plan.types);
  EXPECT_EQ(at, bytes.size());
  return plan;
}

Profile WithHandlers(uint64_t seed) {
  Profile profile = RandomProfile(seed, {.shapes = 20});
  // The first path is entered by nearly every other unit: the handler.
  const Context handler{profile.paths[0].function, profile.places[0].depth};
  profile.loops[0].handlers = {handler};
  for (UnitShape& shape : profile.shapes) shape.kind = wire::UnitKind::kHandler;
  ChooseTypesAndGuards(profile, {});
  profile.training.unit_train_ns = profile.training.units * 10'000;
  return profile;
}

// What a plan takes that may have all.
size_t AllThatAreWorthIt(const Profile& profile) {
  return ChooseAffordable(profile, {}).numbers.size();
}

TEST(BuildPlan, SaysWhatTheProfileSays) {
  uint64_t called = 0;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    Profile profile = WithHandlers(seed);
    ASSERT_TRUE(std::is_sorted(profile.callers.begin(), profile.callers.end()));
    for (UnitType& type : profile.types) type.stats.Add(5'000'000, 100);
    SetThresholds(profile, {});
    PlanFacts facts;
    const Plan plan = Parse(BuildPlan(profile, wire::Mode::kGuard, {}, &facts));
    EXPECT_EQ(plan.header.mode, static_cast<uint32_t>(wire::Mode::kGuard));
    ASSERT_EQ(plan.modules.size(), 1U);
    EXPECT_STREQ(plan.modules[0].file_name, "server");
    ASSERT_EQ(plan.modules[0].build_id_size, 2U);
    EXPECT_EQ(plan.modules[0].build_id[0], 0xab);
    EXPECT_EQ(plan.modules[0].build_id[1], 0x01);
    ASSERT_EQ(plan.sites.size(), 1U);
    EXPECT_EQ(plan.sites[0].return_offset, 0x5000U);
    EXPECT_EQ(plan.sites[0].base_offset, 64);
    EXPECT_EQ(plan.sites[0].holder_module, 0U);
    EXPECT_EQ(plan.sites[0].holder_offset, profile.functions[profile.loops[0].holder].offset);
    EXPECT_EQ(plan.sites[0].flags, 0U);
    ASSERT_EQ(plan.types.size(), profile.types.size());
    for (size_t i = 0; i < plan.types.size(); ++i) {
      EXPECT_EQ(plan.types[i].threshold_ns, profile.types[i].threshold_ns);
    }
    EXPECT_EQ(facts.functions, plan.functions.size());
    EXPECT_TRUE(facts.unit_ns_measured);
    EXPECT_EQ(facts.unit_ns, 5'000'000U);
    uint32_t next = 0;
    bool handler_found = false;
    uint64_t bits_seen = 0;
    for (const wire::PlanFunction& function : plan.functions) {
      EXPECT_EQ(function.first_context, next);
      next += function.contexts;
      ASSERT_LE(next, plan.contexts.size());
      for (uint32_t i = function.first_context; i < next; ++i) {
        const wire::PlanContext& context = plan.contexts[i];
        if (context.return_module != wire::kAnyReturn) {
          ++called;
          EXPECT_TRUE(
              std::binary_search(profile.callers.begin(), profile.callers.end(),
                                 ProfileCaller{context.return_module, context.return_offset}));
        } else if (i + 1 < next) {
          // The first that fits is taken: any caller comes last of its depth.
          EXPECT_NE(context.depth, plan.contexts[i + 1].depth);
        }
        if ((context.flags & wire::PlanContext::kNoBit) == 0) {
          EXPECT_LT(context.bit, plan.header.context_bits);
          ++bits_seen;
        }
        if ((context.flags & wire::PlanContext::kBoundary) != 0) {
          handler_found = true;
          EXPECT_NE(function.flags & wire::PlanFunction::kHandler, 0U);
          EXPECT_EQ(context.depth, profile.places[0].depth);
        }
      }
    }
    EXPECT_EQ(next, plan.contexts.size());
    EXPECT_EQ(bits_seen, plan.header.context_bits);
    EXPECT_TRUE(handler_found);
  }
  EXPECT_GT(called, 0U);
}

TEST(BuildPlan, FunctionsThatAreEnteredMostComeFirst) {
  const Profile profile = WithHandlers(3);
  const Plan plan =
      Parse(BuildPlan(profile, wire::Mode::kGuard, {.budget_ppm = 1'000'000}, nullptr));
  std::vector<uint64_t> hits;
  for (const wire::PlanFunction& function : plan.functions) {
    for (const Guard& guard : profile.guards) {
      const ProfileFunction& row = profile.functions[guard.function];
      if (row.offset == function.offset && row.module == function.module) {
        hits.push_back(guard.hits_per_mega_unit);
      }
    }
  }
  ASSERT_EQ(hits.size(), AllThatAreWorthIt(profile));
  EXPECT_TRUE(std::is_sorted(hits.rbegin(), hits.rend()));
  EXPECT_NE(hits.front(), hits.back());
}

TEST(BuildPlan, KeepsTheBudgetButNeverDropsABoundary) {
  Profile profile = WithHandlers(3);
  PlanFacts wide;
  BuildPlan(profile, wire::Mode::kCalibrate, {.budget_ppm = 1'000'000}, &wide);
  PlanFacts narrow;
  BuildPlan(profile, wire::Mode::kCalibrate, {.budget_ppm = 0}, &narrow);
  EXPECT_FALSE(wide.unit_ns_measured);
  EXPECT_GT(wide.unit_ns, 0U);
  EXPECT_EQ(narrow.functions, 1U);
  EXPECT_LT(narrow.guards.numbers.size(), wide.guards.numbers.size());
  EXPECT_EQ(wide.guards.numbers.size(), AllThatAreWorthIt(profile));
  PlanFacts some;
  const uint64_t middle = (narrow.cost_ppm + wide.cost_ppm) / 2;
  BuildPlan(profile, wire::Mode::kCalibrate, {.budget_ppm = middle}, &some);
  EXPECT_LE(some.cost_ppm, middle);
  EXPECT_GE(some.guards.numbers.size(), narrow.guards.numbers.size());
}

TEST(BuildPlan, TheUnitsOwnCostIsPartOfTheBudgetAndGuardsKeepHalfOfIt) {
  Profile profile = WithHandlers(3);
  profile.training.measured_units = 10'000;
  profile.training.measured_cpu_ns = uint64_t{10'000} * 1'000'000;
  PlanFacts facts;
  const PlanOptions costs = {.hit_cost_ps = 100'000, .unit_cost_ps = 4'000'000};
  BuildPlan(profile, wire::Mode::kGuard, costs, &facts);
  EXPECT_TRUE(facts.unit_ns_measured);
  EXPECT_EQ(facts.unit_ns, 1'000'000U) << "CPU time of the program for each unit";
  uint64_t cuts = 0;
  for (const Guard& guard : profile.guards) cuts += guard.boundary ? guard.hits_per_mega_unit : 0;
  ASSERT_GE(cuts, 1'000'000U);
  EXPECT_EQ(facts.unit_cost_ppm, 4000 + cuts / 10'000) << "what cuts a unit is part of it";
  EXPECT_GT(facts.cost_ppm, facts.unit_cost_ppm);
  EXPECT_EQ(facts.guards.numbers.size(), AllThatAreWorthIt(profile));
  // Half of the budget is left to guards, whatever a unit costs.
  PlanOptions tight = costs;
  tight.budget_ppm = 2 * (facts.cost_ppm - facts.unit_cost_ppm);
  ASSERT_LT(tight.budget_ppm, facts.unit_cost_ppm);
  PlanFacts dear;
  BuildPlan(profile, wire::Mode::kGuard, tight, &dear);
  EXPECT_EQ(dear.guards.numbers.size(), AllThatAreWorthIt(profile));
  EXPECT_EQ(dear.cost_ppm, facts.cost_ppm);
  tight.budget_ppm -= 20;
  BuildPlan(profile, wire::Mode::kGuard, tight, &dear);
  EXPECT_LT(dear.guards.numbers.size(), AllThatAreWorthIt(profile));
}

TEST(BuildPlan, ShortUnitsFindTheCachesAsTheyLeftThem) {
  EXPECT_EQ(kHitCost.Of(0), kHitCost.hot_ps);
  EXPECT_EQ(kHitCost.Of(kColdUnitNs / 2), (kHitCost.hot_ps + kHitCost.cold_ps) / 2);
  EXPECT_EQ(kHitCost.Of(kColdUnitNs), kHitCost.cold_ps);
  EXPECT_EQ(kHitCost.Of(UINT64_MAX), kHitCost.cold_ps);
  Profile profile = WithHandlers(3);
  profile.training.measured_units = 10'000;
  for (const uint64_t unit_ns : {kColdUnitNs / 4, 20 * kColdUnitNs}) {
    profile.training.measured_cpu_ns = 10'000 * unit_ns;
    PlanFacts by_length;
    BuildPlan(profile, wire::Mode::kGuard, {}, &by_length);
    PlanFacts given;
    BuildPlan(profile, wire::Mode::kGuard,
              {.hit_cost_ps = kHitCost.Of(unit_ns), .unit_cost_ps = kUnitCost.Of(unit_ns)}, &given);
    EXPECT_EQ(by_length.unit_ns, unit_ns);
    EXPECT_EQ(by_length.cost_ppm, given.cost_ppm);
    EXPECT_EQ(by_length.guards.numbers, given.guards.numbers);
  }
}

TEST(TrainPlan, NamesModulesToSkip) {
  const Plan plan = Parse(TrainPlan({.skip_modules = {"libssl.so.3"}, .log_bytes = 77}));
  EXPECT_EQ(plan.header.mode, static_cast<uint32_t>(wire::Mode::kTrain));
  EXPECT_EQ(plan.header.log_bytes, 77U);
  ASSERT_EQ(plan.modules.size(), 1U);
  EXPECT_STREQ(plan.modules[0].file_name, "libssl.so.3");
  EXPECT_EQ(plan.modules[0].flags, static_cast<uint32_t>(wire::PlanModule::kSkip));
  EXPECT_TRUE(plan.types.empty());
}

TEST(BuildPlan, SaysWhichWaitsHandOverAndWhichLoopsHaveNoHolder) {
  Profile profile = WithHandlers(3);
  profile.loops[0].holder = kNoIndex;
  profile.loops[0].hand_over = true;
  const Plan plan = Parse(BuildPlan(profile, wire::Mode::kGuard));
  ASSERT_EQ(plan.sites.size(), 1U);
  EXPECT_EQ(plan.sites[0].holder_module, wire::kAnyHolder);
  EXPECT_EQ(plan.sites[0].flags, wire::PlanSite::kHandOver);
}

TEST(BuildPlan, SaysWhichTypesWereHardlySeen) {
  Profile profile = WithHandlers(3);
  ASSERT_GE(profile.types.size(), 2U);
  for (UnitType& type : profile.types) type.units = 5;
  profile.types[1].units = 4;
  const Plan plan = Parse(BuildPlan(profile, wire::Mode::kGuard));
  for (size_t i = 0; i < plan.types.size(); ++i) {
    EXPECT_EQ(plan.types[i].flags, i == 1 ? uint32_t{wire::PlanType::kRare} : 0U);
  }
}

TEST(BuildPlan, SaysWhichLoopsPark) {
  Profile profile = WithHandlers(3);
  profile.loops[0].parks = true;
  const Plan plan = Parse(BuildPlan(profile, wire::Mode::kGuard));
  ASSERT_EQ(plan.sites.size(), 1U);
  EXPECT_EQ(plan.sites[0].flags, wire::PlanSite::kParks);
}

TEST(BuildPlan, SaysWhereALoopTurnsAndAlwaysPatchesThat) {
  Profile profile = RandomProfile(5, {.loops = 2});
  const Context turn = profile.loops[1].turns.at(0);
  ChooseTypesAndGuards(profile, {});
  profile.training.unit_train_ns = profile.training.units * 10'000;
  const Plan plan = Parse(BuildPlan(profile, wire::Mode::kGuard, {.budget_ppm = 0}));
  ASSERT_EQ(plan.sites.size(), 2U);
  EXPECT_EQ(plan.sites[0].flags, 0U);
  EXPECT_EQ(plan.sites[1].flags, wire::PlanSite::kTurns);
  ASSERT_EQ(plan.functions.size(), 1U);
  EXPECT_EQ(plan.functions[0].offset, profile.functions[turn.function].offset);
  uint32_t turns = 0;
  for (const wire::PlanContext& context : plan.contexts) {
    if ((context.flags & wire::PlanContext::kTurn) == 0) continue;
    ++turns;
    EXPECT_EQ(context.depth, turn.depth);
  }
  EXPECT_EQ(turns, 1U);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
