// SPDX-License-Identifier: Apache-2.0
#include "causality/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/parallel.h"

namespace culprit::causality {
namespace {

// Deals are worked on in parts of this many; a part's generator is its own, so
// the number of threads plays no role.
constexpr uint32_t kDealsAPart = 50;

// The law of a pattern's cost in the class, over all deals of the same size.
struct Law {
  double mean = 0;
  double deviation = 0;
  int64_t observed_ns = 0;

  // 0 where every deal gives the same.
  double Score(int64_t cost_ns) const {
    if (deviation == 0) return 0;
    return (static_cast<double>(cost_ns) - mean) / deviation;
  }
};

// Sampling without replacement. Each product stands alone: a compiler may not fuse
// it with the sum, or processors would differ in the last digit.
Law LawOf(const std::vector<PatternCost>& costs, const std::vector<bool>& in_class, size_t size) {
  const auto n = static_cast<double>(in_class.size());
  const double share = static_cast<double>(size) / n;
  double sum = 0;
  Law law;
  for (const PatternCost& cost : costs) {
    sum += static_cast<double>(cost.cost_ns);
    if (in_class[cost.instance]) law.observed_ns += cost.cost_ns;
  }
  const double average = sum / n;
  double squares = 0;
  for (const PatternCost& cost : costs) {
    const double off = static_cast<double>(cost.cost_ns) - average;
    const double square = off * off;
    squares += square;
  }
  const double without = static_cast<double>(in_class.size() - costs.size());
  const double zero_square = average * average;
  const double zeros = without * zero_square;
  squares += zeros;
  law.mean = sum * share;
  const double spread = squares / std::max(n - 1, 1.0);
  const double rest = share * (1 - share);
  const double scale = rest * n;
  law.deviation = std::sqrt(spread * scale);
  return law;
}

// A deal: `size` of the instances, all equally likely.
class Dealer {
 public:
  Dealer(size_t instances, size_t size, uint64_t seed)
      : random_(seed), order_(instances), dealt_(instances), size_(size) {
    std::iota(order_.begin(), order_.end(), 0U);
  }
  const std::vector<uint8_t>& Deal() {
    std::fill(dealt_.begin(), dealt_.end(), 0);
    for (size_t i = 0; i < size_; ++i) {
      const uint64_t j = i + ((random_() >> 32) * (order_.size() - i) >> 32);
      std::swap(order_[i], order_[j]);
      dealt_[order_[i]] = 1;
    }
    return dealt_;
  }

 private:
  std::mt19937_64 random_;
  std::vector<uint32_t> order_;
  std::vector<uint8_t> dealt_;
  size_t size_;
};

// Of one part: how often a pattern reached its own observed score, and the largest
// score of every deal.
struct Part {
  std::vector<uint32_t> reached;
  std::vector<double> largest;
};

}  // namespace

std::vector<Significance> TestPatterns(const std::vector<std::vector<PatternCost>>& patterns,
                                       const std::vector<bool>& in_class,
                                       const SignificanceOptions& options) {
  std::vector<Significance> results(patterns.size());
  const auto size = static_cast<size_t>(std::count(in_class.begin(), in_class.end(), true));
  if (options.deals == 0 || size == 0 || size == in_class.size()) return results;
  const auto side = [&](double score) { return options.two_sided ? std::abs(score) : score; };
  std::vector<Law> laws;
  for (size_t i = 0; i < patterns.size(); ++i) {
    laws.push_back(LawOf(patterns[i], in_class, size));
    results[i].score = laws[i].Score(laws[i].observed_ns);
  }
  const uint32_t parts = (options.deals + kDealsAPart - 1) / kDealsAPart;
  std::vector<Part> done(parts);
  ParallelFor(parts, options.jobs, [&](size_t p) {
    Part& part = done[p];
    part.reached.resize(patterns.size());
    const auto first = static_cast<uint32_t>(p) * kDealsAPart;
    const uint32_t deals = std::min(kDealsAPart, options.deals - first);
    Dealer dealer(in_class.size(), size, options.seed * 0x9E3779B97F4A7C15U + p);
    for (uint32_t deal = 0; deal < deals; ++deal) {
      const std::vector<uint8_t>& dealt = dealer.Deal();
      double largest = -INFINITY;
      for (size_t i = 0; i < patterns.size(); ++i) {
        int64_t cost_ns = 0;
        for (const PatternCost& cost : patterns[i]) {
          cost_ns += dealt[cost.instance] != 0 ? cost.cost_ns : 0;
        }
        const double score = side(laws[i].Score(cost_ns));
        if (score >= side(results[i].score)) ++part.reached[i];
        largest = std::max(largest, score);
      }
      part.largest.push_back(largest);
    }
  });
  std::vector<double> largest;
  for (const Part& part : done) {
    largest.insert(largest.end(), part.largest.begin(), part.largest.end());
  }
  std::sort(largest.begin(), largest.end());
  const auto all = static_cast<double>(options.deals) + 1;
  for (size_t i = 0; i < patterns.size(); ++i) {
    uint64_t reached = 0;
    for (const Part& part : done) reached += part.reached[i];
    const auto beaten = std::lower_bound(largest.begin(), largest.end(), side(results[i].score));
    results[i].p_single = (static_cast<double>(reached) + 1) / all;
    results[i].p_value = (static_cast<double>(largest.end() - beaten) + 1) / all;
  }
  return results;
}

std::string_view CorrectionText() {
  return "permutation test over instances, corrected for the number of patterns by the largest "
         "statistic of each deal (Westfall and Young, single-step maxT)";
}

}  // namespace culprit::causality
