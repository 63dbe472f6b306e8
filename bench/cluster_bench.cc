// SPDX-License-Identifier: Apache-2.0
// Clustering of made-up patterns in the shape of mined ones: 5 to 40 frames,
// families of variants, names of a common vocabulary, counts from a call graph.
//
//   cluster_bench [PATTERNS] [SECONDS]
//
// The peers are our own: the plain method of cluster/naive_clustering.h (every
// pair by full dynamic programming), and the fast aligner without the bounds.
// Both get SECONDS each and say how many pairs they did; the time for all pairs
// is projected from that. On 1,000 patterns the pairs found are compared with
// those of the plain method.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>

#include "base/check.h"
#include "cluster/naive_clustering.h"
#include "cluster/pattern_clusters.h"
#include "cluster/similar_pairs.h"

namespace {

using namespace culprit::cluster;

constexpr size_t kFunctions = 4000;
constexpr size_t kStacks = 20'000;
constexpr size_t kShortest = 5;
constexpr size_t kLongest = 40;

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

class Workload {
 public:
  explicit Workload(size_t patterns) {
    MakeFunctions();
    for (size_t i = 0; i < kStacks; ++i) counts_.AddStack(Walk(), 1 + Skewed(50));
    while (patterns_.size() < patterns) AddFamily(patterns);
  }
  const std::vector<PatternSymbols>& patterns() const { return patterns_; }
  const SymbolWords& words() const { return words_; }
  const NgramCounts& counts() const { return counts_; }

 private:
  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }
  // Small numbers are likelier.
  size_t Skewed(size_t n) { return std::min({Below(n), Below(n), Below(n)}); }

  // As in 4,000 functions of a Linux kernel, which have 2,800 distinct words, 3.9
  // a name: few words are common, most are rare.
  std::string Word() {
    const size_t number = Below(2) == 0 ? Skewed(60) : 60 + Below(3000);
    std::string word;
    for (size_t rest = number + 20; rest > 0; rest /= 20) {
      word += "bcdfghjklmnpqrstvwxz"[rest % 20];
      word += "aeiou"[rest % 5];
    }
    return word;
  }
  void MakeFunctions() {
    for (size_t f = 0; f < kFunctions; ++f) {
      std::string name;
      for (size_t w = 0; w < 2 + Below(4); ++w) name += "_" + Word();
      words_.AddNamed(name);
      callees_.emplace_back();
      for (size_t c = 0; c < 1 + Skewed(8); ++c) {
        callees_.back().push_back(static_cast<Symbol>(Below(kFunctions)));
      }
    }
  }
  PatternSymbols Walk() {
    PatternSymbols stack = {static_cast<Symbol>(Skewed(4))};
    const size_t length = kShortest + Below(kLongest - kShortest + 1);
    while (stack.size() < length) {
      const std::vector<Symbol>& next = callees_[stack.back()];
      stack.push_back(next[Skewed(next.size())]);
    }
    return stack;
  }
  // A stack without some of its frames, and variants of that: another route in
  // the middle, frames added, dropped or replaced.
  void AddFamily(size_t wanted) {
    PatternSymbols base = Walk();
    std::erase_if(base, [&](Symbol) { return Below(4) == 0; });
    const size_t members = 1 + Skewed(80);
    for (size_t m = 0; m < members && patterns_.size() < wanted; ++m) {
      PatternSymbols pattern = base;
      for (size_t edits = Below(5); edits > 0; --edits) Edit(pattern);
      while (pattern.size() < kShortest) pattern.push_back(Any());
      pattern.resize(std::min(pattern.size(), kLongest));
      patterns_.push_back(std::move(pattern));
    }
  }
  void Edit(PatternSymbols& pattern) {
    const size_t at = Below(pattern.size() + 1);
    const auto place = pattern.begin() + static_cast<ptrdiff_t>(at);
    switch (Below(3)) {
      case 0: {
        const PatternSymbols route = Walk();
        pattern.insert(place, route.begin(), route.begin() + static_cast<ptrdiff_t>(1 + Below(4)));
        break;
      }
      case 1:
        if (at < pattern.size()) pattern.erase(place);
        break;
      default:
        if (at < pattern.size()) *place = Any();
        break;
    }
  }
  Symbol Any() { return static_cast<Symbol>(Below(kFunctions)); }

  std::mt19937_64 random_{1};
  SymbolWords words_;
  NgramCounts counts_;
  std::vector<std::vector<Symbol>> callees_;
  std::vector<PatternSymbols> patterns_;
};

void Cluster(const Workload& work, Linkage linkage, const char* name) {
  const double start = CpuSeconds();
  const PatternClusters found = ClusterPatterns(work.patterns(), work.words(), work.counts(),
                                                {.linkage = linkage, .jobs = 1});
  std::printf("%-28s %8.2f s CPU, %u clusters, %zu merges, peak %.0f MB\n", name,
              CpuSeconds() - start, found.clusters, found.merges.size(), PeakMegabytes());
}

// `similarity_to(a, b)` over all pairs b < a in order, for at most `seconds`.
template <class SimilarityOf>
void AlignAll(const char* name, size_t count, double seconds, const SimilarityOf& similarity_of) {
  const double start = CpuSeconds();
  uint64_t done = 0;
  uint64_t sum = 0;
  for (Rank a = 1; a < count && CpuSeconds() - start < seconds; ++a) {
    // Spread over the whole, as lengths and families are not.
    const auto bound = static_cast<Rank>(uint64_t{a} * 7919 % count);
    for (Rank b = 0; b < count; ++b) {
      if (b == bound) continue;
      sum += similarity_of(bound, b);
      ++done;
    }
  }
  const double took = CpuSeconds() - start;
  const double all = static_cast<double>(count) * static_cast<double>(count - 1) / 2;
  std::printf("%-28s %8.0f s CPU for all pairs, projected from %.2f M pairs in %.2f s (sum %llu)\n",
              name, took / static_cast<double>(done) * all, static_cast<double>(done) / 1e6, took,
              static_cast<unsigned long long>(sum));
}

void CheckPairs(const Workload& work, size_t count, Fixed least) {
  const std::vector<PatternSymbols> some(work.patterns().begin(),
                                         work.patterns().begin() + static_cast<ptrdiff_t>(count));
  const WeightedPatterns weighted(some, work.words(), work.counts(), false);
  const std::vector<SimilarPair> found = SimilarPairs(weighted, least).Find(1);
  size_t next = 0;
  for (Rank b = 0; b < count; ++b) {
    for (Rank a = 0; a < b; ++a) {
      const Fixed similarity = NaiveSimilarity(some[weighted.IndexOf(a)], some[weighted.IndexOf(b)],
                                               work.words(), work.counts());
      if (similarity < least) continue;
      CULPRIT_CHECK(next < found.size() && found[next].a == a && found[next].b == b &&
                    found[next].similarity == similarity);
      ++next;
    }
  }
  CULPRIT_CHECK(next == found.size());
  std::printf("checked: the %zu similar pairs of %zu patterns are those of the plain method\n",
              next, count);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 15'000;
  const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 5;
  if (count < 2 || seconds <= 0) {
    std::fprintf(stderr, "usage: cluster_bench [PATTERNS] [SECONDS]\n");
    return 2;
  }
  const Workload work(count);
  size_t frames = 0;
  for (const PatternSymbols& pattern : work.patterns()) frames += pattern.size();
  std::printf("%zu patterns, %.1f frames on average, %.0f MB before clustering\n", count,
              static_cast<double>(frames) / static_cast<double>(count), PeakMegabytes());
  const Fixed least = kOne - DefaultCut(Linkage::kAverage);
  Cluster(work, Linkage::kAverage, "average linkage");
  Cluster(work, Linkage::kComplete, "complete linkage");
  Cluster(work, Linkage::kSingle, "single linkage");

  const WeightedPatterns weighted(work.patterns(), work.words(), work.counts(), false);
  const SimilarPairs similar(weighted, least);
  const double start = CpuSeconds();
  const size_t pairs = similar.Find(1).size();
  std::printf("%-28s %8.2f s CPU, %zu of %.1f M pairs reach the cut\n", "similar pairs alone",
              CpuSeconds() - start, pairs,
              static_cast<double>(count) * static_cast<double>(count - 1) / 2e6);
  const auto source = similar.MakeSource();
  AlignAll("same aligner, no bounds", count, seconds,
           [&](Rank a, Rank b) { return source->Similarity(a, b); });
  AlignAll("plain method", count, seconds, [&](Rank a, Rank b) {
    return NaiveSimilarity(work.patterns()[a], work.patterns()[b], work.words(), work.counts());
  });
  CheckPairs(work, std::min<size_t>(count, 1000), least);
  return 0;
}
