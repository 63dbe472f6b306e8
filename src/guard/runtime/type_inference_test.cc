// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/type_inference.h"

#include <gtest/gtest.h>

#include <bitset>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace culprit::guard::runtime::TEST_FILE {
namespace {

struct Contexts {
  uint64_t words[wire::kContextWords] = {};
};

Contexts Bits(std::initializer_list<uint32_t> bits) {
  Contexts contexts;
  for (const uint32_t bit : bits) contexts.words[bit / 64] |= uint64_t{1} << bit % 64;
  return contexts;
}

// A plan of types alone.
class TypePlan {
 public:
  void Add(uint32_t kind, uint32_t loop, uint64_t threshold_ns, const Contexts& contexts,
           uint32_t flags = 0) {
    wire::PlanType type = {
        .kind = kind, .loop = loop, .flags = flags, .threshold_ns = threshold_ns, .contexts = {}};
    std::memcpy(type.contexts, contexts.words, sizeof(type.contexts));
    types_.push_back(type);
  }
  const PlanView& View() {
    header_.magic = wire::Magic("CGPLAN01");
    header_.version = wire::kWireVersion;
    header_.types = static_cast<uint32_t>(types_.size());
    const size_t body = types_.size() * sizeof(wire::PlanType);
    header_.bytes = sizeof(header_) + body;
    header_.checksum = Fnv1a(reinterpret_cast<const uint8_t*>(types_.data()), body);
    bytes_.assign((sizeof(header_) + body) / 8, 0);
    std::memcpy(bytes_.data(), &header_, sizeof(header_));
    std::memcpy(reinterpret_cast<uint8_t*>(bytes_.data()) + sizeof(header_), types_.data(), body);
    EXPECT_TRUE(view_.Parse(reinterpret_cast<const uint8_t*>(bytes_.data()), header_.bytes));
    return view_;
  }
  wire::PlanHeader& header() { return header_; }
  const std::vector<wire::PlanType>& types() const { return types_; }

 private:
  wire::PlanHeader header_ = {};
  std::vector<wire::PlanType> types_;
  std::vector<uint64_t> bytes_;
  PlanView view_;
};

TypeVerdict Infer(TypePlan& plan, uint32_t loop, uint32_t kind, const Contexts& contexts) {
  return InferType(plan.View(), {.loop = loop, .kind = kind, .contexts = contexts.words}, {});
}

TEST(TypeInference, TheNearestOfTheLoopAndKindWins) {
  TypePlan plan;
  plan.Add(1, 0, 10, Bits({1, 2, 3}));
  plan.Add(1, 0, 20, Bits({1, 2, 300}));
  plan.Add(1, 1, 30, Bits({1, 2, 300, 400}));
  plan.Add(2, 0, 40, Bits({1, 2, 300, 400}));
  EXPECT_EQ(Infer(plan, 0, 1, Bits({1, 2, 300, 400})).type, 1u);
  EXPECT_EQ(Infer(plan, 1, 1, Bits({1, 2, 300, 400})).type, 2u);
  EXPECT_EQ(Infer(plan, 0, 2, Bits({1, 2, 300, 400})).type, 3u);
  EXPECT_EQ(Infer(plan, 0, 1, Bits({1, 2, 3})).similarity_ppm, 1'000'000u);
  EXPECT_EQ(Infer(plan, 0, 1, Bits({1, 2})).similarity_ppm, 666'666u);
}

TEST(TypeInference, TiesGoToTheSmallestThreshold) {
  TypePlan plan;
  plan.Add(1, 0, 20, Bits({1, 2}));
  plan.Add(1, 0, 10, Bits({1, 3}));
  plan.Add(1, 0, 15, Bits({1, 4}));
  EXPECT_EQ(Infer(plan, 0, 1, Bits({1})).type, 1u);
}

TEST(TypeInference, WhatIsLikeNoTypeIsUnknown) {
  TypePlan plan;
  plan.header().min_similarity_ppm = 500'000;
  plan.header().unknown_ns = 99;
  plan.Add(1, 0, 10, Bits({1, 2, 3, 4}));
  EXPECT_EQ(Infer(plan, 0, 1, Bits({1, 2})).type, 0u);
  const TypeVerdict unknown = Infer(plan, 0, 1, Bits({1}));
  EXPECT_EQ(unknown.type, wire::kUnknown);
  EXPECT_EQ(unknown.similarity_ppm, 250'000u);
  EXPECT_EQ(ThresholdNs(plan.View(), unknown), 99u);
  EXPECT_EQ(Infer(plan, 5, 1, Bits({1, 2})).type, wire::kUnknown);
}

TEST(TypeInference, ATypeHardlyBelievedNeverAlarmsSoonerThanNone) {
  TypePlan plan;
  plan.header().unknown_ns = 99;
  plan.Add(1, 0, 10, Bits({1}));
  plan.Add(1, 0, 300, Bits({2}));
  EXPECT_EQ(ThresholdNs(plan.View(), {0, 899'999}), 99u);
  EXPECT_EQ(ThresholdNs(plan.View(), {0, 900'000}), 10u);
  EXPECT_EQ(ThresholdNs(plan.View(), {1, 500'000}), 300u);
}

TEST(TypeInference, ThresholdsNeverLieBelowTheFloor) {
  TypePlan plan;
  plan.header().floor_ns = 50;
  plan.Add(1, 0, 10, Bits({1}));
  plan.Add(1, 0, 70, Bits({2}));
  plan.Add(1, 0, 0, Bits({3}));
  EXPECT_EQ(ThresholdNs(plan.View(), {0, 0}), 50u);
  EXPECT_EQ(ThresholdNs(plan.View(), {1, 0}), 70u);
  EXPECT_EQ(ThresholdNs(plan.View(), {2, 0}), UINT64_MAX);
  EXPECT_EQ(ThresholdNs(plan.View(), {}), UINT64_MAX);
}

TEST(TypeInference, ARunningUnitMayStillBecomeAnyTypeThatHasItsContexts) {
  TypePlan plan;
  plan.header().unknown_ns = 5;
  plan.Add(1, 0, 10, Bits({1}));
  plan.Add(1, 0, 70, Bits({1, 2}));
  plan.Add(1, 0, 90, Bits({3}));
  const auto largest = [&](const Contexts& contexts) {
    return LargestPossibleThresholdNs(plan.View(), {0, 1, contexts.words});
  };
  EXPECT_EQ(largest(Bits({})), 90u);
  EXPECT_EQ(largest(Bits({1})), 70u);
  EXPECT_EQ(largest(Bits({1, 3})), 5u);
}

TEST(TypeInference, HitCountingTakesTheTypeThatWasHitMost) {
  TypePlan plan;
  plan.header().hit_counting = 1;
  plan.Add(1, 0, 10, Bits({0, 1}));
  plan.Add(1, 0, 20, Bits({2}));
  std::vector<uint32_t> hits(64 * wire::kContextWords);
  hits[0] = 3;
  hits[1] = 4;
  hits[2] = 13;
  const Contexts seen = Bits({0, 1, 2});
  const TypeVerdict verdict = InferType(plan.View(), {0, 1, seen.words}, hits);
  EXPECT_EQ(verdict.type, 1u);
  EXPECT_EQ(verdict.similarity_ppm, 650'000u);
}

// A query that commits by itself, where training had queries, commits and, once, a query
// of another kind that did.
TEST(TypeInference, AUnitIsOfATypeThatWasHardlySeenOnlyIfItIsMuchLikeIt) {
  TypePlan plan;
  plan.Add(0, 0, 9, Bits({0, 1, 2, 3}));
  plan.Add(0, 0, 9, Bits({0, 1, 4, 5, 6, 7, 8, 9, 10, 11}), wire::PlanType::kRare);
  const TypeVerdict query = Infer(plan, 0, 0, Bits({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(query.type, 0u);
  EXPECT_EQ(query.similarity_ppm, 500'000u);
  EXPECT_EQ(Infer(plan, 0, 0, Bits({0, 1, 4, 5, 6, 7, 8, 9, 10})).type, 1u);
  EXPECT_EQ(Infer(plan, 0, 0, Bits({0, 1, 4, 5, 6, 7, 8, 9})).type, 0u);
}

TEST(TypeInference, WhereAllTypesWereHardlySeenAUnitUnlikeThemIsUnknown) {
  TypePlan plan;
  plan.Add(0, 0, 9, Bits({0, 1}), wire::PlanType::kRare);
  EXPECT_EQ(Infer(plan, 0, 0, Bits({0, 1})).type, 0u);
  EXPECT_EQ(Infer(plan, 0, 0, Bits({0, 1, 2})).type, wire::kUnknown);
}

// It is slow, after all: so it is recognised, but its threshold is not believed.
TEST(TypeInference, WhatNoTypeDoesSaysNothingAboutWhichItIs) {
  TypePlan plan;
  plan.header().min_similarity_ppm = 500'000;
  plan.header().unknown_ns = 5'000;
  plan.Add(0, 0, 1'000, Bits({0, 1, 2, 3}));
  plan.Add(0, 0, 2'000, Bits({0, 1, 4}));
  plan.Add(0, 0, 3'000, Bits({20, 21, 22, 23}), wire::PlanType::kRare);
  plan.Add(1, 0, 4'000, Bits({24, 25}));  // of another kind
  const TypeVerdict verdict = Infer(plan, 0, 0, Bits({0, 1, 2, 3, 20, 21, 22, 23, 24, 25, 26, 27}));
  EXPECT_EQ(verdict.type, 0u);
  EXPECT_EQ(verdict.matched_ppm, 1'000'000u);
  EXPECT_EQ(verdict.similarity_ppm, 333'333u);
  EXPECT_EQ(ThresholdNs(plan.View(), verdict), 5'000u);
  // It must agree the more in the others, and not only in what all of them do.
  EXPECT_EQ(Infer(plan, 0, 0, Bits({0, 1, 20, 21, 26, 27})).type, wire::kUnknown);
  plan.Add(0, 0, 1'000, Bits({0, 1}));
  EXPECT_EQ(Infer(plan, 0, 0, Bits({0, 1, 20, 21, 26, 27})).type, wire::kUnknown);
  EXPECT_EQ(Infer(plan, 0, 0, Bits({0, 1, 20})).type, 4u) << "more than half of it is known";
  // What others do counts.
  EXPECT_EQ(Infer(plan, 0, 0, Bits({2, 4, 26, 27})).type, wire::kUnknown);
}

// A slow unit does what quick ones do, and what others do, too.
TEST(TypeInference, WhoDidMostOfATypeAndWhatHardlyAnyOtherDoesIsOfIt) {
  TypePlan plan;
  plan.header().min_similarity_ppm = 500'000;
  plan.header().unknown_ns = 5'000;
  plan.Add(0, 0, 9'000, Bits({0, 1, 40, 41}));
  for (uint32_t i = 2; i < 9; ++i) plan.Add(0, 0, 1'000, Bits({0, i, 20 + i, 50 + i, 60 + i}));
  plan.Add(0, 0, 1'000, Bits({2, 3, 4, 5, 6, 7, 8, 22, 80, 81, 82, 83, 84, 85}));
  const Contexts wide = Bits({0, 1, 40, 41, 2, 3, 4, 5, 6, 7, 8, 22, 23, 24, 25, 26, 27});
  // The last type is nearer, but the unit did not do most of what that does.
  const UnitIdentity identity = {.loop = 0, .kind = 0, .contexts = wide.words};
  EXPECT_EQ(FindNearestType(plan.types(), identity).type, 8u);
  const TypeVerdict verdict = Infer(plan, 0, 0, wide);
  EXPECT_EQ(verdict.type, 0u);
  EXPECT_EQ(ThresholdNs(plan.View(), verdict), 5'000u) << "neither sooner nor later";
  // Three of four will do, two not.
  Contexts less = wide;
  less.words[0] &= ~Bits({41}).words[0];
  EXPECT_EQ(Infer(plan, 0, 0, less).type, 0u);
  less.words[0] &= ~Bits({40}).words[0];
  const TypeVerdict unknown = Infer(plan, 0, 0, less);
  EXPECT_EQ(unknown.type, wire::kUnknown);
  EXPECT_GT(unknown.similarity_ppm, 0u) << "that of the nearest";
  // Two of ten types have each of its contexts: that is not few.
  plan.Add(0, 0, 1'000, Bits({0, 1, 40, 41, 90, 91, 92}));
  EXPECT_EQ(Infer(plan, 0, 0, wide).type, wire::kUnknown);
}

// The oracle: sets of bits, fractions compared crosswise.
uint32_t NaiveNearest(const std::vector<wire::PlanType>& types, const Contexts& unit) {
  std::set<uint32_t> counted;
  std::set<uint32_t> all;
  std::vector<std::set<uint32_t>> of_types(types.size());
  for (uint32_t bit = 0; bit < 64 * wire::kContextWords; ++bit) {
    const auto has = [&](const uint64_t* words) { return (words[bit / 64] >> bit % 64 & 1) != 0; };
    if (has(unit.words)) all.insert(bit);
    for (uint32_t i = 0; i < types.size(); ++i) {
      if (!has(types[i].contexts)) continue;
      of_types[i].insert(bit);
      if (types[i].flags == 0 && has(unit.words)) counted.insert(bit);
    }
  }
  uint32_t best = wire::kUnknown;
  uint64_t best_ppm = 0;
  for (uint32_t i = 0; i < types.size(); ++i) {
    const bool rare = types[i].flags == wire::PlanType::kRare;
    const std::set<uint32_t>& own = rare ? all : counted;
    std::set<uint32_t> either = own;
    either.insert(of_types[i].begin(), of_types[i].end());
    const uint64_t both = own.size() + of_types[i].size() - either.size();
    const uint64_t ppm = either.empty() ? 1'000'000 : both * 1'000'000 / either.size();
    if (rare && 10 * both < 9 * either.size()) continue;
    if (best == wire::kUnknown || ppm > best_ppm ||
        (ppm == best_ppm && types[i].threshold_ns < types[best].threshold_ns)) {
      best = i;
      best_ppm = ppm;
    }
  }
  return best;
}

TEST(TypeInference, AgreesWithTheOracleAndWithItsCache) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    TypePlan plan;
    const auto some_bits = [&] {
      Contexts contexts;
      for (int i = 0; i < 6; ++i) {
        const uint64_t bit = random() % 12 * 40;
        contexts.words[bit / 64] |= uint64_t{1} << bit % 64;
      }
      return contexts;
    };
    for (int i = 0; i < 20; ++i) {
      plan.Add(1, 0, 1 + random() % 5, some_bits(),
               random() % 4 == 0 ? uint32_t{wire::PlanType::kRare} : 0);
    }
    LoadedPlan loaded = {};
    loaded.generation = 1;
    loaded.view = plan.View();
    const auto state = std::make_unique<ThreadState>();
    for (int i = 0; i < 100; ++i) {
      const Contexts unit = some_bits();
      const UnitIdentity identity = {.loop = 0, .kind = 1, .contexts = unit.words};
      const TypeVerdict verdict = InferType(loaded.view, identity, {});
      EXPECT_EQ(verdict.type, NaiveNearest(plan.types(), unit));
      for (int again = 0; again < 2; ++again) {
        const TypeVerdict cached = InferTypeCached(loaded, identity, *state);
        EXPECT_EQ(cached.type, verdict.type);
        EXPECT_EQ(cached.similarity_ppm, verdict.similarity_ppm);
      }
    }
  }
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
