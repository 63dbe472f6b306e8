// SPDX-License-Identifier: Apache-2.0
#include "stackmine/review.h"

#include <algorithm>
#include <numeric>

namespace culprit::stackmine {
namespace {

using Order = std::vector<uint32_t>;  // traces

// The generator is part of the result, so it is written out: splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  void Shuffle(Order& order) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Next() % i]);
  }

 private:
  uint64_t state_;
};

class Reviewer {
 public:
  Reviewer(const Evidence& evidence, const Cover& cover, const std::vector<Metrics>& metrics)
      : evidence_(evidence), cover_(cover), metrics_(metrics) {}

  ReviewCurve Walk(const Order& order) const {
    std::vector<uint32_t> opened_at(evidence_.traces.size());
    for (uint32_t k = 0; k < order.size(); ++k) opened_at[order[k]] = k;
    // When each behaviour is first seen, and from that when each part of the
    // time is covered.
    std::vector<uint32_t> seen_at(metrics_.size(), UINT32_MAX);
    for (size_t label = 0; label < metrics_.size(); ++label) {
      for (const auto& [trace, time_ns] : metrics_[label].by_trace) {
        seen_at[label] = std::min(seen_at[label], opened_at[trace]);
      }
    }
    ReviewCurve curve;
    curve.covered_ns.resize(order.size());
    for (LabelSet set = 1; set < cover_.sets.size(); ++set) {
      uint32_t first = UINT32_MAX;
      for (const uint32_t label : cover_.sets[set]) first = std::min(first, seen_at[label]);
      if (first != UINT32_MAX) curve.covered_ns[first] += cover_.parts[set];
    }
    std::partial_sum(curve.covered_ns.begin(), curve.covered_ns.end(), curve.covered_ns.begin());
    return curve;
  }

  Order All() const {
    Order order(evidence_.traces.size());
    std::iota(order.begin(), order.end(), 0U);
    return order;
  }

  Order ByDelay(bool total) const {
    std::vector<int64_t> delay_ns(evidence_.traces.size());
    for (const InstanceFacts& instance : evidence_.instances) {
      int64_t& delay = delay_ns[instance.trace];
      delay = total ? delay + instance.dur_ns : std::max(delay, instance.dur_ns);
    }
    Order order = All();
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return delay_ns[a] > delay_ns[b]; });
    return order;
  }

  // Only traces that show something new; the others add nothing.
  Order ByBehaviour() const {
    std::vector<uint32_t> labels(metrics_.size());
    std::iota(labels.begin(), labels.end(), 0U);
    std::stable_sort(labels.begin(), labels.end(), [&](uint32_t a, uint32_t b) {
      return metrics_[a].time_ns > metrics_[b].time_ns;
    });
    std::vector<std::vector<uint32_t>> labels_of(evidence_.traces.size());
    for (uint32_t label = 0; label < metrics_.size(); ++label) {
      for (const auto& [trace, time_ns] : metrics_[label].by_trace) {
        labels_of[trace].push_back(label);
      }
    }
    Order order;
    std::vector<bool> seen(metrics_.size());
    for (const uint32_t label : labels) {
      const auto& traces = metrics_[label].by_trace;
      if (seen[label] || traces.empty()) continue;
      const auto best =
          std::max_element(traces.begin(), traces.end(),
                           [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
      order.push_back(best->trace);
      for (const uint32_t shown : labels_of[best->trace]) seen[shown] = true;
    }
    return order;
  }

 private:
  const Evidence& evidence_;
  const Cover& cover_;
  const std::vector<Metrics>& metrics_;
};

}  // namespace

std::optional<uint64_t> ReviewCurve::TracesFor(int64_t target_ns) const {
  const auto it = std::lower_bound(covered_ns.begin(), covered_ns.end(), target_ns);
  if (it == covered_ns.end()) return std::nullopt;
  return static_cast<uint64_t>(it - covered_ns.begin()) + 1;
}

std::optional<uint64_t> Review::RandomTracesFor(int64_t target_ns) const {
  uint64_t sum = 0;
  for (const ReviewCurve& curve : shuffles) {
    const auto traces = curve.TracesFor(target_ns);
    if (!traces) return std::nullopt;
    sum += *traces;
  }
  if (shuffles.empty()) return std::nullopt;
  return (sum + shuffles.size() / 2) / shuffles.size();
}

Review CompareReviews(const Evidence& evidence, const Cover& cover,
                      const std::vector<Metrics>& metrics, const ReviewOptions& options) {
  const Reviewer reviewer(evidence, cover, metrics);
  Review review;
  for (LabelSet set = 1; set < cover.sets.size(); ++set) review.coverable_ns += cover.parts[set];
  review.culprit = reviewer.Walk(reviewer.ByBehaviour());
  review.greedy_total = reviewer.Walk(reviewer.ByDelay(/*total=*/true));
  review.greedy_max = reviewer.Walk(reviewer.ByDelay(/*total=*/false));
  Random random(options.seed);
  Order order = reviewer.All();
  // Quotients and remainders apart: the mean is exact and nothing overflows.
  std::vector<int64_t> quotients(order.size());
  std::vector<int64_t> remainders(order.size());
  const int64_t shuffles = std::max(1U, options.shuffles);
  for (int64_t i = 0; i < shuffles; ++i) {
    random.Shuffle(order);
    review.shuffles.push_back(reviewer.Walk(order));
    for (size_t k = 0; k < order.size(); ++k) {
      quotients[k] += review.shuffles.back().covered_ns[k] / shuffles;
      remainders[k] += review.shuffles.back().covered_ns[k] % shuffles;
    }
  }
  for (size_t k = 0; k < order.size(); ++k) {
    review.random.covered_ns.push_back(quotients[k] + remainders[k] / shuffles);
  }
  return review;
}

}  // namespace culprit::stackmine
