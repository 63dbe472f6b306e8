// SPDX-License-Identifier: Apache-2.0
//
// The store of signatures and what they match.
#include "stackmine/signature.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "base/test_folder.h"
#include "stackmine/reduce.h"
#include "stackmine/review.h"
#include "stackmine/signature_match.h"
#include "stackmine/signature_store.h"
#include "trace/small_trace.h"

namespace culprit::stackmine::TEST_FILE {
namespace {

Signature Example(const std::string& name) {
  return {.name = name,
          .kind = StackKind::kRun,
          .status = SignatureStatus::kFixed,
          .owner = "ann",
          .note = "line one\nand \"two\"",
          .patterns = {{"a!b", "c!d"}, {"e!f"}},
          .common = {"a!b"},
          .cluster = "0123456789",
          .source = "fleet",
          .added = "2026-01-02"};
}

TEST(SignatureStore, WhatIsWrittenIsReadBack) {
  const std::vector<Signature> written = {Example("one"), Example("two")};
  EXPECT_EQ(SignaturesFromJson(SignaturesToJson(written), "f").value(), written);
}

TEST(SignatureStore, AFileThatIsNoneIsAnErrorWithAHint) {
  for (
      const char* text :
      {"", "[]", "{}", R"({"signatures":[]})", R"({"culprit_signatures":1,"signatures":[1]})",
       R"({"culprit_signatures":1,"signatures":[{"name":"x"}]})",
       R"({"culprit_signatures":1,"signatures":[{"name":"x","kind":"wait","status":"odd"}]})",
       R"({"culprit_signatures":1,"signatures":[{"name":"x","kind":"wait","status":"new","patterns":[[]]}]})",
       R"({"culprit_signatures":2,"signatures":[]})"}) {
    const auto read = SignaturesFromJson(text, "f");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().file, "f");
    EXPECT_FALSE(read.error().hint.empty());
  }
}

TEST(SignatureStore, WritersAtOnceAllTakeEffect) {
  const TestFolder folder;
  const std::string path = folder / "deep/er/store.json";
  std::vector<std::thread> writers;
  for (int w = 0; w < 8; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < 10; ++i) {
        const Status status = ChangeStore(path, [&](std::vector<Signature>& all) -> Status {
          all.push_back(Example(std::to_string(w) + "." + std::to_string(i)));
          return {};
        });
        EXPECT_TRUE(status.ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ReadStore(path).value().size(), 80u);
}

TEST(SignatureStore, AFailedChangeLeavesTheFileAsItWas) {
  const TestFolder folder;
  const std::string path = folder / "store.json";
  const auto add = [](std::vector<Signature>& all) -> Status {
    all.push_back(Example("one"));
    return {};
  };
  ASSERT_TRUE(ChangeStore(path, add).ok());
  const std::string before = ReadWholeFile(path).value();
  EXPECT_FALSE(ChangeStore(path, add).ok());  // the name is taken
  EXPECT_FALSE(ChangeStore(path, [](std::vector<Signature>&) -> Status {
                 return Error{.message = "no"};
               }).ok());
  EXPECT_EQ(ReadWholeFile(path).value(), before);
  EXPECT_NE(FindSignature(ReadStore(path).value(), "ome").error().message.find("one"),
            std::string::npos);
}

TEST(SignatureStore, AMissingFileIsAnEmptyStore) {
  EXPECT_TRUE(ReadStore("/nowhere/at/all.json").value().empty());
  EXPECT_TRUE(ReadStore("").value().empty());
  EXPECT_FALSE(ChangeStore("", [](std::vector<Signature>&) -> Status { return {}; }).ok());
}

TEST(Frames, AreReadFromOneLine) {
  EXPECT_EQ(ParseFrames("a!b; c!d ;;e"), (FrameNames{"a!b", "c!d", "e"}));
  EXPECT_TRUE(ParseFrames(" ; ").empty());
}

// `dur_ns` of waiting in each of the stacks, an instance each.
Evidence Waits(const std::string& name, const std::vector<std::pair<std::string, int64_t>>& waits) {
  trace::SmallTrace small(0, 0);
  int64_t now_ns = 0;
  for (const auto& [stack, dur_ns] : waits) {
    small.Add(trace::EventKind::kWait, "ui", now_ns, now_ns + dur_ns, stack).flags =
        trace::kWakerUnknown;
    small.AddInstance("S", "ui", now_ns, now_ns + dur_ns);
    now_ns += dur_ns;
  }
  small.trace.metadata.end_ns = now_ns;
  return ReduceTrace(small.trace, name, {});
}

MineResult Mine(const Evidence& evidence, int64_t lambda_ns) {
  MineOptions options;
  options.patterns.lambda = {.kind = LambdaRule::Kind::kCost, .cost_ns = lambda_ns};
  return MineClusters(evidence, options);
}

TEST(SignatureMatch, AClusterIsKnownByItsOwnSignatureAndByVariants) {
  const Evidence old = Waits("old", {{"app!main;app!Load;fs!Query;fs!Scan;kernel!fault", 1000},
                                     {"app!main;net!Send;net!Recv;kernel!poll", 1000}});
  const MineResult mined = Mine(old, 500);
  std::vector<Signature> signatures;
  for (const Cluster& cluster : mined.clusters) {
    signatures.push_back(SignatureOf(old, cluster));
    signatures.back().name = cluster.id;
  }
  ASSERT_EQ(signatures.size(), 2u);
  const std::vector<ClusterMatch> own = MatchClusters(old, mined, signatures, {});
  for (size_t c = 0; c < mined.clusters.size(); ++c) {
    ASSERT_NE(own[c].signature, kNoSignature);
    EXPECT_EQ(signatures[own[c].signature].name, mined.clusters[c].id);
  }
  // A new release: one more frame on the way, and something else entirely.
  const Evidence next =
      Waits("next", {{"app!main;app!Load;fs!Query;fs!Cache;fs!Scan;kernel!fault", 1000},
                     {"tool!main;zip!Inflate;kernel!read", 1000}});
  const MineResult later = Mine(next, 500);
  const std::vector<ClusterMatch> known = MatchClusters(next, later, signatures, {});
  for (size_t c = 0; c < later.clusters.size(); ++c) {
    const bool variant = next.stacks.FrameName(later.clusters[c].common.front()) == "app!main";
    EXPECT_EQ(known[c].signature != kNoSignature, variant);
  }
}

TEST(SignatureMatch, APatternByHandHasEveryStackThatContainsIt) {
  const Evidence evidence = Waits("t", {{"app!main;app!A;kernel!fault", 1000},
                                        {"app!main;app!B;app!A;x!y;kernel!fault", 300},
                                        {"app!main;app!C", 500}});
  const MineResult mined = Mine(evidence, 100'000);
  const std::vector<Signature> signatures = {
      {.name = "a", .patterns = {{"app!A", "kernel!fault"}}},
      {.name = "gone", .patterns = {{"app!A", "not!there"}}}};
  const StackLabels labels = LabelBySignature(evidence, mined, signatures,
                                              MatchClusters(evidence, mined, signatures, {}), 1);
  const Cover cover = MakeCover(evidence, labels, false);
  const std::vector<Metrics> metrics = Measure(evidence, labels, cover, 2);
  EXPECT_EQ(metrics[0].time_ns, 1300);
  EXPECT_EQ(metrics[1].time_ns, 0);
  EXPECT_EQ(cover.parts[0], 500);
}

// Six traces. The costly behaviour is only in the last one, which is neither the
// longest nor has it the longest instance.
TEST(Review, CulpritsOrderOpensTheTraceThatShowsTheCostliestBehaviourFirst) {
  Evidence evidence;
  for (int i = 0; i < 5; ++i) {
    AddEvidence(Waits("t" + std::to_string(i), {{"app!main;app!Common", 700}, {"idle!x", 900}}),
                evidence);
  }
  AddEvidence(Waits("t5", {{"app!main;app!Rare", 600}, {"app!main;app!Rare", 600}}), evidence);
  const std::vector<Signature> signatures = {{.name = "common", .patterns = {{"app!Common"}}},
                                             {.name = "rare", .patterns = {{"app!Rare"}}}};
  const MineResult mined = Mine(evidence, 1'000'000);
  const StackLabels labels = LabelBySignature(evidence, mined, signatures,
                                              MatchClusters(evidence, mined, signatures, {}), 1);
  const Cover cover = MakeCover(evidence, labels, false);
  const std::vector<Metrics> metrics = Measure(evidence, labels, cover, 2);
  const Review review = CompareReviews(evidence, cover, metrics);
  EXPECT_EQ(review.coverable_ns, 3500 + 1200);
  EXPECT_EQ(review.culprit.covered_ns, (std::vector<int64_t>{3500, 4700}));
  EXPECT_EQ(review.culprit.TracesFor(4700), 2u);
  EXPECT_EQ(review.greedy_total.TracesFor(4700), 6u);
  EXPECT_EQ(review.greedy_max.TracesFor(4700), 6u);
  const uint64_t random = *review.RandomTracesFor(4000);
  EXPECT_GT(random, 1u);
  EXPECT_LT(random, 6u);
  EXPECT_FALSE(review.culprit.TracesFor(4701).has_value());
  EXPECT_EQ(CompareReviews(evidence, cover, metrics).random.covered_ns, review.random.covered_ns);
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
