// SPDX-License-Identifier: Apache-2.0
#include "causality/evidence_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "causality/contrast.h"
#include "causality/figure_one.h"
#include "causality/impact.h"
#include "corpus/sealed_bytes.h"
#include "trace/owner_state.h"
#include "waitgraph/timelines_random.h"

namespace culprit::causality::TEST_FILE {
namespace {

trace::Trace Schedule(uint64_t seed) {
  if (seed % 10 == 0) return seed % 20 == 0 ? FigureOne::Slow() : FigureOne::Fast();
  return waitgraph::RandomSchedule({.seed = seed,
                                    .threads = 3 + seed % 5,
                                    .steps = 50 + seed * 7,
                                    .faulty = seed % 4 == 3})
      .Make();
}

ExtractOptions OptionsOf(uint64_t seed) {
  ExtractOptions options;
  if (seed % 3 == 1) options.component.by = By::kProcess;
  if (seed % 3 == 2) options.component.globs = {"*o*", "*.sys"};
  return options;
}

Evidence Extracted(uint64_t seed) {
  return ExtractTrace(Schedule(seed), "trace " + std::to_string(seed), OptionsOf(seed));
}

// Every other trace gets instances of its own, the rest are found.
TEST(CausalityCodec, IsTheSameWhetherEventsComeByTimeOrByThread) {
  for (uint64_t seed = 0; seed < 80; ++seed) {
    trace::Trace trace = Schedule(seed);
    for (uint32_t t = 0; t < 3 && seed % 2 == 1; ++t) {
      trace.instances.push_back({.scenario = trace.dictionary.Intern("s"),
                                 .thread = trace::ThreadId(t),
                                 .t0_ns = trace.metadata.begin_ns,
                                 .t1_ns = trace.metadata.end_ns});
    }
    const std::string expected = EncodeEvidence(ExtractTrace(trace, "trace", OptionsOf(seed)));
    std::ranges::stable_sort(trace.events, {}, [](const trace::Event& event) {
      return trace::OwnerOf(event).value + 1;
    });
    EXPECT_EQ(EncodeEvidence(ExtractTrace(trace, "trace", OptionsOf(seed))), expected) << seed;
  }
}

// What a trace gave has no index of its components and cells yet.
TEST(CausalityCodec, AddingFindsWhatIsThereAlready) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Evidence second = Extracted(seed + 1);
    Evidence expected;
    AddEvidence(Extracted(seed), expected);
    AddEvidence(second, expected);
    Evidence sum = Extracted(seed);
    AddEvidence(second, sum);
    EXPECT_EQ(EncodeEvidence(sum), EncodeEvidence(expected)) << seed;
  }
}

TEST(CausalityCodec, GivesBackTheSameEvidence) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Evidence evidence = Extracted(seed);
    const std::string bytes = EncodeEvidence(evidence);
    const std::optional<Evidence> decoded = DecodeEvidence(bytes);
    ASSERT_TRUE(decoded) << seed;
    EXPECT_EQ(EncodeEvidence(*decoded), bytes) << seed;
    EXPECT_EQ(decoded->forest.nodes(), evidence.forest.nodes());
    EXPECT_EQ(decoded->components, evidence.components);
    EXPECT_EQ(decoded->scenario_index, evidence.scenario_index);
    Evidence indexed;  // what was extracted has no index of components and cells yet
    AddEvidence(evidence, indexed);
    EXPECT_EQ(decoded->component_index, indexed.component_index);
    EXPECT_EQ(decoded->cell_index, indexed.cell_index);
    EXPECT_EQ(decoded->propagated.size(), evidence.propagated.size());
    EXPECT_EQ(decoded->account.chain_events, evidence.account.chain_events);
    EXPECT_EQ(decoded->account.ready_ns, evidence.account.ready_ns);
    EXPECT_EQ(decoded->rows.size(), evidence.rows.size());
  }
}

TEST(CausalityCodec, AddingUpIsAssociative) {
  std::vector<Evidence> parts;
  for (uint64_t seed = 0; seed < 24; ++seed) parts.push_back(Extracted(seed * 3));
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
      AddEvidence(*DecodeEvidence(EncodeEvidence(group)), by_groups);
    }
    EXPECT_EQ(EncodeEvidence(by_groups), expected) << seed;
  }
}

TEST(CausalityCodec, PassingOverAPartIsAsIfItHadNotBeenExtracted) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::string both = EncodeEvidence(Extracted(seed));
    for (const EvidenceParts parts : {EvidenceParts{true, false}, EvidenceParts{false, true}}) {
      ExtractOptions options = OptionsOf(seed);
      options.impact = parts.impact;
      options.chains = parts.chains;
      Evidence alone = ExtractTrace(Schedule(seed), "trace " + std::to_string(seed), options);
      // Signatures that only describe propagated waits have no number in a chain.
      KeepOnly(parts, alone);
      Evidence decoded = *DecodeEvidence(both, parts);
      if (parts.chains) {
        EXPECT_LE(alone.signatures.size(), decoded.signatures.size());
        for (size_t i = 0; i < alone.signatures.size(); ++i) {
          EXPECT_EQ(alone.signatures.Get(StringId(i)), decoded.signatures.Get(StringId(i)));
        }
        alone.signatures = StringTable();
        decoded.signatures = StringTable();
      }
      EXPECT_EQ(EncodeEvidence(decoded), EncodeEvidence(alone)) << seed;
      Evidence kept = Extracted(seed);
      KeepOnly(parts, kept);
      if (parts.chains) kept.signatures = StringTable();
      EXPECT_EQ(EncodeEvidence(kept), EncodeEvidence(alone)) << seed;
    }
  }
}

TEST(CausalityCodec, RefusesWhatWasCut) {
  const std::string bytes = EncodeEvidence(Extracted(20));
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_FALSE(DecodeEvidence(bytes.substr(0, i))) << i;
  EXPECT_FALSE(DecodeEvidence(bytes + '\0'));
}

// A checksum stands before it in practice; even so no change may lead out of a table.
TEST(CausalityCodec, ChangedBytesGiveSoundEvidenceOrNone) {
  std::mt19937_64 random(7);
  uint64_t sound = 0;
  for (uint64_t seed = 18; seed < 31; ++seed) {
    const std::string bytes = EncodeEvidence(Extracted(seed));
    for (int i = 0; i < 2000; ++i) {
      std::string changed = bytes;
      for (uint64_t n = 1 + random() % 3; n > 0; --n) {
        changed[random() % changed.size()] = static_cast<char>(random());
      }
      const std::optional<Evidence> decoded = DecodeEvidence(changed);
      if (!decoded) continue;
      ++sound;
      Evidence sum;
      AddEvidence(*decoded, sum);
      EXPECT_EQ(EncodeEvidence(*DecodeEvidence(EncodeEvidence(*decoded))),
                EncodeEvidence(*decoded));
    }
  }
  EXPECT_GT(sound, 100U);
}

TEST(CausalityCodec, OptionsComeBackAndEveryOneChangesTheKey) {
  std::vector<ExtractOptions> all(13);
  all[1].component.by = By::kCgroup;
  all[2].component.globs = {"*.sys"};
  all[3].component.except = {"*.sys"};
  all[4].automatic.idle = {"x"};
  all[5].automatic.not_idle = {"x"};
  all[6].automatic.kernel_threads = false;
  all[7].always_automatic = true;
  all[8].scenarios = {"Open*"};
  all[9].impact = false;
  all[10].chains = false;
  all[11].chain_scenarios = {"Open*"};
  all[12].max_chain_events = 100;
  std::set<std::string> keys;
  for (const ExtractOptions& options : all) {
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
TEST(CausalityCodec, TheVersionStandsForWhatExtractionGives) {
  std::string all;
  for (uint64_t seed = 0; seed < 100; ++seed) all += EncodeEvidence(Extracted(seed));
  EXPECT_EQ(kEvidenceVersion, 3U);
  EXPECT_EQ(corpus::ShortDigest(all), "060ae1cdf207ad06844fd82f7df7086e");
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
