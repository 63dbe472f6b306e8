// SPDX-License-Identifier: Apache-2.0
#include "episode/units.h"

#include <algorithm>

#include "episode/spread.h"

namespace culprit::episode {
namespace {

constexpr int64_t kNoGap = -1;  // explained away

// Time of [begin, end) that the thread was off its CPU. Asked for by
// increasing begin.
class OffCpu {
 public:
  explicit OffCpu(const std::vector<Span>& spans) : spans_(spans) {}

  int64_t Within(int64_t begin_ns, int64_t end_ns) {
    while (next_ < spans_.size() && spans_[next_].end_ns() <= begin_ns) ++next_;
    int64_t sum_ns = 0;
    for (size_t i = next_; i < spans_.size() && spans_[i].time_ns < end_ns; ++i) {
      const int64_t from_ns = std::max(begin_ns, spans_[i].time_ns);
      sum_ns += std::max<int64_t>(std::min(end_ns, spans_[i].end_ns()) - from_ns, 0);
    }
    return std::min(sum_ns, end_ns - begin_ns);
  }

 private:
  const std::vector<Span>& spans_;
  size_t next_ = 0;
};

// gaps[i] stands before call i + 1.
std::vector<int64_t> GapsOf(const ThreadLog& thread, bool has_switches, Units& result) {
  std::vector<int64_t> gaps;
  gaps.reserve(thread.calls.size());
  OffCpu off_cpu(thread.off_cpu);
  for (size_t i = 0; i + 1 < thread.calls.size(); ++i) {
    const Syscall& before = thread.calls[i];
    const Syscall& after = thread.calls[i + 1];
    int64_t gap_ns = std::max<int64_t>(after.time_ns - before.end_ns(), 0);
    if (has_switches) {
      const int64_t off_ns = off_cpu.Within(before.end_ns(), before.end_ns() + gap_ns);
      if (off_ns > 0) ++result.explained;
      gap_ns -= off_ns;
    } else if (before.cpu != after.cpu) {
      ++result.explained;
      gap_ns = kNoGap;
    }
    gaps.push_back(gap_ns);
  }
  return gaps;
}

// Where the instances of a thread begin and end. Asked by increasing time.
class InstanceEdges {
 public:
  explicit InstanceEdges(const std::vector<Span>& instances) {
    for (const Span& instance : instances) {
      edges_.emplace_back(instance.time_ns, 1);
      edges_.emplace_back(instance.end_ns(), -1);
    }
    std::sort(edges_.begin(), edges_.end());
  }

  // Whether there are edges up to this time that were not asked about before.
  bool Pass(int64_t time_ns) {
    const size_t before = next_;
    while (next_ < edges_.size() && edges_[next_].first <= time_ns) {
      depth_ += edges_[next_++].second;
    }
    return next_ > before;
  }
  bool inside() const { return depth_ > 0; }

 private:
  std::vector<std::pair<int64_t, int>> edges_;
  size_t next_ = 0;
  int depth_ = 0;
};

void CutThread(const ThreadLog& thread, uint32_t index, const std::vector<int64_t>& gaps,
               const Spread& spread, bool by_instances, Units& result) {
  InstanceEdges edges(by_instances ? thread.instances : std::vector<Span>());
  edges.Pass(thread.calls.front().time_ns);
  Unit unit = {.thread = index, .first = 0, .count = 1};
  for (size_t i = 0; i < gaps.size(); ++i) {
    const bool edge = edges.Pass(thread.calls[i + 1].time_ns);
    const bool gap =
        !edges.inside() && gaps[i] != kNoGap && spread.IsOutlier(static_cast<uint64_t>(gaps[i]));
    if (edge || gap) {
      result.units.push_back(unit);
      unit = {.thread = unit.thread, .first = unit.first + unit.count, .count = 0};
    }
    ++unit.count;
  }
  result.units.push_back(unit);
  if (by_instances) result.instances += thread.instances.size();
}

}  // namespace

Units SplitUnits(const SyscallLog& log, UnitSource source) {
  Units result;
  Spread spread;
  std::vector<std::vector<int64_t>> gaps;
  for (const ThreadLog& thread : log.threads) {
    gaps.push_back(GapsOf(thread, log.has_switches, result));
    for (const int64_t gap_ns : gaps.back()) {
      if (gap_ns != kNoGap) spread.Add(static_cast<uint64_t>(gap_ns));
    }
  }
  for (size_t t = 0; t < log.threads.size(); ++t) {
    CutThread(log.threads[t], static_cast<uint32_t>(t), gaps[t], spread,
              source != UnitSource::kGaps, result);
  }
  result.gaps = spread.count();
  result.mean_gap_ns = spread.Mean();
  result.bound_ns = spread.Bound();
  return result;
}

}  // namespace culprit::episode
