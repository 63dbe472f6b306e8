// SPDX-License-Identifier: Apache-2.0
#include "stackmine/evidence_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "corpus/sealed_bytes.h"
#include "trace/owner_state.h"
#include "trace/small_trace.h"
#include "waitgraph/timelines_random.h"

namespace culprit::stackmine::TEST_FILE {
namespace {

trace::Trace Schedule(uint64_t seed) {
  return waitgraph::RandomSchedule({.seed = seed,
                                    .threads = 3 + seed % 5,
                                    .steps = 50 + seed * 7,
                                    .faulty = seed % 4 == 3})
      .Make();
}

Evidence Reduced(uint64_t seed) {
  ReduceOptions options;
  if (seed % 3 == 1) options.area.scope = waitgraph::Scope::kGraph;
  if (seed % 3 == 2) options.area.scope = waitgraph::Scope::kThread;
  return ReduceTrace(Schedule(seed), "trace " + std::to_string(seed), options);
}

// Every other trace gets instances of its own, the rest are found.
TEST(EvidenceCodec, IsTheSameWhetherEventsComeByTimeOrByThread) {
  for (uint64_t seed = 0; seed < 80; ++seed) {
    trace::Trace trace = Schedule(seed);
    for (uint32_t t = 0; t < 3 && seed % 2 == 1; ++t) {
      trace.instances.push_back({.scenario = trace.dictionary.Intern("s"),
                                 .thread = trace::ThreadId(t),
                                 .t0_ns = trace.metadata.begin_ns,
                                 .t1_ns = trace.metadata.end_ns});
    }
    const std::string expected = EncodeEvidence(ReduceTrace(trace, "trace", ReduceOptions{}));
    std::ranges::stable_sort(trace.events, {}, [](const trace::Event& event) {
      return trace::OwnerOf(event).value + 1;
    });
    EXPECT_EQ(EncodeEvidence(ReduceTrace(trace, "trace", ReduceOptions{})), expected) << seed;
  }
}

TEST(EvidenceCodec, GivesBackTheSameEvidence) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Evidence evidence = Reduced(seed);
    const std::string bytes = EncodeEvidence(evidence);
    const std::optional<Evidence> decoded = DecodeEvidence(bytes);
    ASSERT_TRUE(decoded) << seed;
    EXPECT_EQ(EncodeEvidence(*decoded), bytes) << seed;
    EXPECT_EQ(decoded->stacks.stacks(), evidence.stacks.stacks());
    EXPECT_EQ(decoded->forest.nodes(), evidence.forest.nodes());
    EXPECT_EQ(decoded->occurrences, evidence.occurrences);
    EXPECT_EQ(decoded->distinct_wait_ns, evidence.distinct_wait_ns);
    EXPECT_EQ(decoded->distinct_run_ns, evidence.distinct_run_ns);
    EXPECT_EQ(decoded->account.aoi_ns, evidence.account.aoi_ns);
    EXPECT_EQ(decoded->scope, evidence.scope);
    EXPECT_EQ(decoded->roles.size(), evidence.roles.size());
    ASSERT_EQ(decoded->instances.size(), evidence.instances.size());
    for (size_t i = 0; i < evidence.instances.size(); ++i) {
      EXPECT_EQ(decoded->InstanceName(i), evidence.InstanceName(i));
      EXPECT_EQ(decoded->instances[i].rows_end, evidence.instances[i].rows_end);
    }
  }
}

TEST(EvidenceCodec, TheSumOfDecodedPartsIsTheSumOfTheParts) {
  Evidence sum;
  Evidence from_bytes;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Evidence part = Reduced(seed * 3);
    AddEvidence(part, sum);
    AddEvidence(*DecodeEvidence(EncodeEvidence(part)), from_bytes);
  }
  EXPECT_EQ(EncodeEvidence(sum), EncodeEvidence(from_bytes));
}

TEST(EvidenceCodec, AddingUpIsAssociative) {
  std::vector<Evidence> parts;
  for (uint64_t seed = 0; seed < 24; ++seed) parts.push_back(Reduced(seed * 3));
  Evidence one_by_one;
  for (const Evidence& part : parts) AddEvidence(part, one_by_one);
  const std::string expected = EncodeEvidence(one_by_one);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Evidence by_groups;
    for (size_t begin = 0; begin < parts.size();) {
      const size_t end = std::min(parts.size(), begin + 1 + random() % 7);
      Evidence group;
      for (; begin < end; ++begin) AddEvidence(parts[begin], group);
      AddEvidence(group, by_groups);
    }
    EXPECT_EQ(EncodeEvidence(by_groups), expected) << seed;
  }
}

TEST(EvidenceCodec, RefusesWhatWasCut) {
  const std::string bytes = EncodeEvidence(Reduced(5));
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_FALSE(DecodeEvidence(bytes.substr(0, i))) << i;
  EXPECT_FALSE(DecodeEvidence(bytes + '\0'));
}

// A checksum stands before it in practice; even so no change may lead out of a table.
TEST(EvidenceCodec, ChangedBytesGiveSoundEvidenceOrNone) {
  std::mt19937_64 random(7);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const std::string bytes = EncodeEvidence(Reduced(seed));
    for (int i = 0; i < 2000; ++i) {
      std::string changed = bytes;
      for (uint64_t n = 1 + random() % 3; n > 0; --n) {
        changed[random() % changed.size()] = static_cast<char>(random());
      }
      const std::optional<Evidence> decoded = DecodeEvidence(changed);
      if (!decoded) continue;
      EXPECT_EQ(EncodeEvidence(*DecodeEvidence(EncodeEvidence(*decoded))),
                EncodeEvidence(*decoded));
      Evidence sum;
      AddEvidence(*decoded, sum);
    }
  }
}

TEST(EvidenceCodec, OptionsComeBackAndEveryOneChangesTheKey) {
  std::vector<ReduceOptions> all(13);
  all[1].area.scope = waitgraph::Scope::kThread;
  all[2].area.with = {"a!*"};
  all[3].area.without = {"a!*"};
  all[4].area.classes = {waitgraph::WaitClass::kLock};
  all[5].area.path.max_depth = 7;
  all[6].area.max_events = 7;
  all[7].automatic.idle = {"x"};
  all[8].automatic.not_idle = {"x"};
  all[9].automatic.kernel_threads = false;
  all[10].always_automatic = true;
  all[11].scenarios = {"Open*", "Close"};
  all[12].slower_than_ns = 5;
  std::set<std::string> keys;
  for (const ReduceOptions& options : all) {
    const std::string bytes = EncodeOptions(options);
    keys.insert(bytes);
    const auto decoded = DecodeOptions(bytes);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(EncodeOptions(*decoded), bytes);
    EXPECT_FALSE(DecodeOptions(bytes.substr(0, bytes.size() - 1)));
  }
  EXPECT_EQ(keys.size(), all.size());
}

// Summaries of traces are found by kEvidenceVersion. If this fails because
// extraction now gives something else (and is right), raise kEvidenceVersion, or
// users would go on with what the old one found; then write the new digest here.
TEST(EvidenceCodec, TheVersionStandsForWhatExtractionGives) {
  std::string all;
  for (uint64_t seed = 0; seed < 100; ++seed) all += EncodeEvidence(Reduced(seed));
  EXPECT_EQ(kEvidenceVersion, 4U);
  EXPECT_EQ(corpus::ShortDigest(all), "0e0099ca1048c2086dabd169f130c899");
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
